"""A process to be killed: puts blocks, lets two clients ack, keeps their cursors, and says what is done."""

import random
import sys
from pathlib import Path

from penstock.meta import Cursor, FileKeeper, KeptMeta
from penstock.model import Position
from penstock.store import BatchSize, EventStore, FileShelf, MixedShelf, Start
from penstock.store.shelf import Shelf
from tests.twins.blocks import block_of
from tests.unit.store.test_store import BEGIN, END, ROWS

START = Position("binlog.000001", 4)
CLIENTS = (1, 2)


def shelf_in(folder: Path, kind: str) -> Shelf:
    files = FileShelf(folder / "store", segment_bytes=4000, sync="none")
    return files if kind == "file" else MixedShelf(6000, files)


def main(folder: Path, kind: str, seed: int) -> None:
    chance = random.Random(seed)
    meta = KeptMeta("d", FileKeeper("d", folder), period_s=None)
    meta.start()
    store = EventStore(shelf_in(folder, kind), START)
    at = store.discard_incomplete()
    for client in CLIENTS:
        meta.subscribe(client)
        cursor = meta.cursor(client)
        start = Start.at(cursor.position) if cursor and cursor.position >= store.first else Start.first()
        if cursor and cursor.position > store.latest:
            start = Start.latest()  # what the crash took from the store comes from the source again
        store.add_client(str(client), start)
    print("ready", flush=True)
    while True:
        rows = [(chance.randrange(1, 90), ROWS) for _ in range(chance.randrange(4))]
        events = [(10, BEGIN), *rows, (10, END)]
        half = chance.randrange(1, len(events))
        first, _ = block_of(events[:half], start=at.offset)
        second, _ = block_of(events[half:], start=first.end.offset)
        store.put([first, second])
        at = second.end
        print("put", at.offset, flush=True)
        for client in CLIENTS:
            if chance.random() < 0.5:
                batch = store.get(str(client), BatchSize(chance.randrange(1, 9)))
                if batch is not None:
                    if batch.ack is not None:
                        meta.update_cursor(client, Cursor(batch.ack))
                        print("ack", client, batch.ack.offset, flush=True)
                    store.ack(str(client), batch.end)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
