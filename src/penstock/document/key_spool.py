"""Keeps the rows of a SELECT until its read view is closed: in memory, and from some size on in a file.

A change of one row may lead to more documents than fit in memory, and the connection that reads documents is busy while
their keys come.
"""

import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

MOST_BYTES = 16 << 20  # in memory


@contextmanager
def spool_rows(
    rows: Iterable[pa.RecordBatch], most_bytes: int = MOST_BYTES
) -> Generator[Iterator[pa.RecordBatch], None, None]:
    """Read all rows now, and give them back batch by batch. Beyond `most_bytes` they are in a file without a name.

    with spool_rows(batches) as spooled:
        for batch in spooled: ...
    """
    with tempfile.SpooledTemporaryFile(max_size=most_bytes, prefix="penstock-keys-") as file:
        writer = None
        for batch in rows:
            if writer is None:
                writer = pa.ipc.new_stream(file, batch.schema)
            writer.write_batch(batch)
        if writer is None:
            yield iter(())
            return
        writer.close()
        file.seek(0)
        with pa.ipc.open_stream(file) as reader:
            yield iter(reader)
