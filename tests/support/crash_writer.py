"""A process to be killed: captures a made-up log, serves two clients, keeps their cursors, and says what is done.

The log is the same in every run: what a position holds follows from its offset. So a run that resumes after a crash
can be held against all runs before it. Killed from outside at any moment, or by itself inside of one step of a write.
"""

import random
import sys
from collections.abc import Iterable
from pathlib import Path

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.instance.clients import Clients
from penstock.meta import FileMetaBackend, PersistentMetaManager
from penstock.meta.record import ClientRecord
from penstock.model import Position
from penstock.store import BatchSize, EventStore, FileStorage, TieredStorage
from penstock.store.block_storage import BlockStorage
from tests.twins.blocks import block_of
from tests.twins.faults import kill_in, say

BEGIN, ROWS, END = Entry.BEGIN, Entry.ROWS, Entry.END
START = Position("binlog.000001", 4)
CLIENTS = (1, 2)
SEGMENT_BYTES = 6000
PERIOD_S = 0.01
# What a kill can fall into: a call of the system, before it, after it, or with half of its work done.
STEPS = {
    "pwritev": ("before", "half", "after"),  # a block
    "ftruncate": ("before", "after"),  # a block that is taken back
    "unlink": ("before", "after"),  # files that all have acked
    "fdatasync": ("before", "after"),
    "fsync": ("before", "half", "after"),  # the new meta.dat, and its folder
    "link": ("before", "after"),  # the present meta.dat to its second name
    "replace": ("before", "after"),  # that to the previous one, and the new one to the present
}


def storage_in(folder: Path, kind: str) -> BlockStorage:
    files = FileStorage(folder / "store", segment_bytes=SEGMENT_BYTES, sync="batch")
    return TieredStorage(9000, files) if kind == "mixed" else files


class SayingKeeper(FileMetaBackend):
    """Says what is kept."""

    def save(self, changed: Iterable[ClientRecord]) -> None:
        cursors = [(record.client_id, record.cursor) for record in changed if record.cursor is not None]
        super().save(changed)
        for client, cursor in cursors:
            say("kept", client, cursor.position.offset)


def transaction_at(offset: int) -> list[tuple[int, int]]:
    chance = random.Random(offset)
    return [(10, BEGIN), *[(chance.randrange(1, 90), ROWS) for _ in range(chance.randrange(4))], (10, END)]


def captured(at: Position) -> list[Block]:
    """The next transaction of the log, in two blocks."""
    events = transaction_at(at.offset)
    half = random.Random(at.offset + 1).randrange(1, len(events))
    first, _ = block_of(events[:half], start=at.offset)
    second, _ = block_of(events[half:], start=first.end.offset)
    return [first, second]


def main(folder: Path, kind: str, seed: int, fault: str) -> None:
    chance = random.Random(seed)
    with PersistentMetaManager("d", SayingKeeper("d", folder), period_s=PERIOD_S if kind == "later" else None) as meta:
        store = EventStore(storage_in(folder, kind), START)
        lowest = meta.lowest_cursor()
        if lowest is not None and store.latest < lowest.position:
            store.restart_at(lowest.position)  # as an instance does
        at = store.discard_incomplete()
        clients = Clients(store, meta)
        clients.start()
        for client in CLIENTS:
            cursor = meta.cursor(client)
            clients.subscribe(client)
            if cursor is None:
                say("begins", client)
        say("ready", at.offset)
        if fault:
            step, when, count = fault.split(":")
            kill_in(step, when, int(count))
        while True:
            if chance.random() < 0.1:  # the connection to the source breaks inside of a transaction
                store.put(captured(at)[0])
                at = store.discard_incomplete()
            blocks = captured(at)
            store.put(blocks)
            at = blocks[-1].end
            say("put", at.offset)
            for client in CLIENTS:
                if chance.random() < 0.6:
                    serve(clients, client, chance)


def serve(clients: Clients, client: int, chance: random.Random) -> None:
    got = clients.get(client, BatchSize(chance.randrange(1, 12)))
    if got is None:
        return
    batch_id, batch = got
    say("got", client, batch.start.offset, batch.end.offset)
    if chance.random() < 0.1:
        clients.rollback(client)
        say("rolled", client)
        return
    clients.ack(client, batch_id)
    if batch.ack is not None:
        say("ack", client, batch.ack.offset)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
