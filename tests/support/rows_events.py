"""Random rows events, and their tables as the kernels take them."""

from hypothesis import strategies as st

from penstock.binlog.values.column import wire_size_of
from penstock.model import TableSchema
from tests.twins.log import LogWriter
from tests.twins.strategy import tables, write_rows


@st.composite
def rows_events(draw: st.DrawFn, count: st.SearchStrategy[int]) -> tuple[TableSchema, list[bytes], bool]:
    log = LogWriter(is_checksummed=draw(st.booleans()))
    table = draw(tables(count))
    events = list[bytes]()
    for _ in range(draw(st.integers(1, 3))):
        first = len(log.data)
        draw(write_rows(log, 7, table))
        events.append(bytes(log.data[first:]))
    return table, events, log.is_checksummed


def wires_of(table: TableSchema) -> list[tuple[int, int]]:
    return [(wire.length_bytes, wire.width) for wire in map(wire_size_of, table.columns)]
