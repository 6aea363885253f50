from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import MetaError
from penstock.meta import FileSourceRecords, SourceRecord
from penstock.model import FileIdentity

_MARKS = st.builds(
    FileIdentity,
    st.integers(0, 999).map(lambda number: f"b.{number:06}"),
    st.integers(0, 2**32 - 1),
    st.integers(0, 99),
)


@given(st.integers(0, 511), st.text(max_size=9), st.text(max_size=9), st.lists(_MARKS, max_size=9), st.booleans())
def test_what_is_kept_comes_back(
    epoch: int, address: str, server: str, files: list[FileIdentity], by_gtids: bool
) -> None:
    record = SourceRecord(epoch, address, server, {}, by_gtids)
    for identity in files:
        record = record.with_file(identity)
    again = SourceRecord.from_json(record.to_json())
    assert again == record
    assert list(again.files) == list(record.files), "in the order in which they were read"


def test_only_the_newest_files_are_remembered() -> None:
    record = SourceRecord()
    for number in range(700):
        record = record.with_file(FileIdentity(f"b.{number}", number, 1))
    assert (len(record.files), next(iter(record.files))) == (500, "b.200")


def test_in_a_file(tmp_path: Path) -> None:
    records = FileSourceRecords("shop", tmp_path)
    assert records.load() == SourceRecord()
    record = SourceRecord(2, "db:3306", "uuid", {"b.1": FileIdentity("b.1", 7, 1)}, True)
    records.save(record)
    assert FileSourceRecords("shop", tmp_path).load() == record
    records.path.write_bytes(b"{}")
    with pytest.raises(MetaError, match=r"source\.json does not say which log was followed.*raise `epoch`"):
        records.load()
