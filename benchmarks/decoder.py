"""How fast bytes of the log become Arrow columns, beside the memory's own speed, zlib's checksum and plain Python."""

import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks._orders_log import ORDERS, repeated, sample
from benchmarks._report import best_of, print_figures, print_table
from penstock.binlog.events.block import Block
from penstock.binlog.events.index import EventArrays, IndexState, Slot, Stop, index_events
from penstock.binlog.events.layout import Entry
from penstock.binlog.events.reader import BlockReader
from penstock.binlog.rows.changes import changes_of
from penstock.binlog.rows.decode import decode_rows
from penstock.binlog.rows.fields import table_fields
from penstock.binlog.values.column import wire_of
from penstock.model import Position
from tests.twins.index import ROWS, State, index
from tests.twins.locate import locate
from tests.twins.log import LogWriter
from tests.twins.value import read

SIZE_BYTES = 100_000_000
ROUNDS = 3
INBOX_BYTES = 1 << 18
ALL = [column.name for column in ORDERS.columns]
FEW = ["id", "amount"]
LABELS = {
    "memcpy": "memcpy (limit)",
    "zlib_crc32": "zlib.crc32 (limit)",
    "index": "index",
    "index_verified": "index, checksums verified",
    "blocks": "… and cut into blocks",
    "decode_2_columns": "… and 2 of 10 columns decoded",
    "decode_10_columns": "… and all 10 columns decoded",
    "changes": "… and the nine change columns",
    "plain_python": "plain Python, row by row",
}


def index_only(data: NDArray[np.uint8], arrays: EventArrays, *, verify: bool) -> int:
    first = int.from_bytes(data[9:13].tobytes(), "little")
    state = IndexState.start(verify=verify)
    state.seek(4 + first)
    state.slots[Slot.CHECKSUM] = 4
    why, where, count = index_events(data, first, data.size, state, arrays, 0)
    if why is not Stop.STARVED or where != data.size:
        raise RuntimeError(f"the index stopped at {where} of {data.size}: {why.name}")
    return count


def blocks(data: NDArray[np.uint8]) -> Iterator[Block]:
    """As capture does it: pieces as a socket gives them, checksums verified, blocks of 1 MiB."""
    reader = BlockReader(Position("binlog.000001", 4))
    for at in range(0, data.size, INBOX_BYTES):
        piece = data[at : at + INBOX_BYTES]
        reader.room(piece.size)[: piece.size] = piece
        reader.filled(piece.size)
        yield from reader.blocks(flush=False)
    yield from reader.blocks(flush=True)


def decode_columns(data: NDArray[np.uint8], names: list[str], rows: int) -> None:
    found = 0
    for block in blocks(data):
        events = np.flatnonzero(block.column("entry") == Entry.ROWS)
        found += decode_rows(block, events, ORDERS, names).located.rows
    if found != rows:
        raise RuntimeError(f"{found} rows were decoded, {rows} were written")


def decode_changes(data: NDArray[np.uint8]) -> None:
    fields = table_fields(ORDERS)
    for block in blocks(data):
        for _ in changes_of(block, ORDERS.name, fields, 0):
            pass


def decode_in_python(log: LogWriter) -> None:
    """The twins: one Python object per value."""
    data = bytes(log.data)
    first = int.from_bytes(data[9:13], "little")
    wires = [(wire.length_bytes, wire.width) for wire in map(wire_of, ORDERS.columns)]
    _, _, events = index(data, first, len(data), State(4 + first), 1 << 20)
    for found in events:
        if found.entry == ROWS:
            event = data[found.start : found.start + found.size]
            images = locate(event, 4, wires)
            if isinstance(images, int):
                raise TypeError(f"the event at {found.position} is broken: code {images}")
            for image in images:
                for column, (at, size) in zip(ORDERS.columns, image.fields, strict=True):
                    read(column, event[at : at + size])


def main() -> None:
    log = sample()
    data, rows = repeated(log, SIZE_BYTES)
    copy, arrays = np.empty_like(data), EventArrays.of(data.size // 1000)
    works = {
        "memcpy": lambda: np.copyto(copy, data),
        "zlib_crc32": lambda: zlib.crc32(data),
        "index": lambda: index_only(data, arrays, verify=False),
        "index_verified": lambda: index_only(data, arrays, verify=True),
        "blocks": lambda: sum(1 for _ in blocks(data)),
        "decode_2_columns": lambda: decode_columns(data, FEW, rows),
        "decode_10_columns": lambda: decode_columns(data, ALL, rows),
        "changes": lambda: decode_changes(data),
    }
    took = best_of(ROUNDS, works)
    speeds = {name: (data.size / s / 1e6, rows / s) for name, s in took.items()}
    small = best_of(1, {"plain_python": lambda: decode_in_python(log)})
    speeds |= {name: (len(log.data) / s / 1e6, len(log.images) / s) for name, s in small.items()}
    memory, (_, python_rows) = speeds["memcpy"][0], speeds["plain_python"]
    print_table(
        f"decoder: {data.size / 1e6:.0f} MB of log, {rows} rows of 10 columns, one core, best of {ROUNDS}",
        ["step", "MB/s", "rows/s", "of memcpy", "of plain Python"],
        [
            [LABELS[name], f"{mb:,.1f}", f"{r:,.0f}", f"{mb / memory:.1%}", f"{r / python_rows:,.0f}x"]
            for name, (mb, r) in speeds.items()
        ],
    )
    steps = {name: {"mb_per_s": round(mb, 1), "rows_per_s": round(r)} for name, (mb, r) in speeds.items()}
    print_figures("decoder", {"size_mb": round(data.size / 1e6), "rows": rows, "steps": steps})


if __name__ == "__main__":
    main()
