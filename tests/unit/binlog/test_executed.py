"""The set of transactions up to a position, however the log is cut."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.gtid import render_gtids
from penstock.binlog.events.reader import BlockReader
from penstock.model import GtidSet
from tests.twins.feed import START, feed
from tests.twins.log import LogWriter
from tests.twins.strategy import examples, logs

_BASE = {True: "7-1-100", False: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"}


@examples(60)
@given(logs(files=2), st.lists(st.integers(1, 300), max_size=30), st.data())
def test_each_block_knows_what_came_before(log: LogWriter, sizes: list[int], data: st.DataObject) -> None:
    base = GtidSet.parse(_BASE[log.is_mariadb])
    reader = BlockReader(replace(START, gtids=base))
    reader.expect_checksum(is_on=log.is_checksummed)
    expected = base
    for block in feed(reader, bytes(log.data), sizes):
        assert block.executed == expected
        part = block.slice(data.draw(st.integers(0, len(block) - 1)), len(block))
        first = len(block) - len(part)
        texts = render_gtids(block.gtids.copy(), block.tags).to_pylist()
        for i, text in enumerate(texts):
            if block.column("boundary")[i]:
                if text is not None:
                    expected = _with(expected, text)
                if i >= first:
                    assert part.boundary_after(i - first).gtids == expected
            elif i >= first:
                assert part.executed_before(i - first) == expected


def _with(known: GtidSet, text: str) -> GtidSet:
    if known.is_mariadb:
        domain, server, number = map(int, text.split("-"))
        return known.with_range(str(domain), (number, number), server)
    source, _, number = text.rpartition(":")
    return known.with_range(source, (int(number), int(number)))
