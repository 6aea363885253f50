"""A process to be killed: an instance with one client, which says what it got and what it acked."""

import sys

import numpy as np

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.decode import decode_rows
from penstock.config import InstanceSettings
from penstock.instance import Instance
from penstock.store import Batch, BatchSize, Start

CLIENT = 1001


def ids_in(batch: Batch) -> list[int]:
    """Of the rows of the one table that the client sees, in the order of the log."""
    return [number for block in batch.blocks for number in _ids(block)]


def _ids(block: Block) -> list[int]:
    events = np.flatnonzero(block.column("entry") == Entry.ROWS)
    ids: list[int] = []
    for number in block.tables:
        of_table = events[block.column("table_id")[events] == number]
        for rows in decode_rows(block, of_table, block.schema_of(number), ["id"]):
            ids += rows.columns["id"].to_pylist()
    return ids


def main(settings: InstanceSettings, table: str) -> None:
    instance = Instance(settings)
    instance.start()
    instance.clients.subscribe(CLIENT, table, Start.latest())
    print("ready", flush=True)
    while True:
        got = instance.clients.get(CLIENT, BatchSize(7), 0.1)
        if got is not None:
            batch_id, batch = got
            for number in ids_in(batch):
                print("got", number, flush=True)
            instance.clients.ack(CLIENT, batch_id)
            print("acked", flush=True)


if __name__ == "__main__":
    main(InstanceSettings.model_validate_json(sys.argv[1]), sys.argv[2])
