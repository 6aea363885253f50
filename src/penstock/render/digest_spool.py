"""Digests of documents or rows, of the database and of what is kept equal to it, spooled to files and compared part by
part.

Invariant: a part holds all documents with certain ids, of both sides, and has a bounded size. So memory does not grow
with the number of documents, and the order in which either side yields them does not matter.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.render.digest import digest_texts

DIGESTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("low", pa.int64(), nullable=False),
        pa.field("high", pa.int64(), nullable=False),
        pa.field("routing", pa.string()),
    ]
)
DOCUMENTS_PER_PART = 250_000
_MOST_PARTS = 256


def digest_documents(ids: pa.Array, documents: pa.Array, routings: pa.Array) -> pa.Table:
    """Return the digests of documents as a table of DIGESTS."""
    digests = digest_texts(documents)
    return pa.Table.from_arrays([ids, pa.array(digests[:, 0]), pa.array(digests[:, 1]), routings], schema=DIGESTS)


class DigestSpool:
    """Spools the digests of one side of a comparison to files, by parts of their ids.

        with DigestSpool(parts=count_parts(documents)) as spool:
            spool.add(digest_documents(ids, documents, routings))
            table = spool.read_part(0)

    One thread adds; parts are read when all is added.
    """

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.rows = 0
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-verify-")
        self._writers: dict[int, Any] = {}

    def add(self, digests: pa.Table) -> None:
        """Add digests of documents."""
        self.rows += digests.num_rows
        ids = digests.column("id").combine_chunks()
        of_part = (digest_texts(ids)[:, 0].view(np.uint64) % np.uint64(self.parts)).astype(np.int64)
        for part in np.unique(of_part).tolist():
            rows = digests if self.parts == 1 else digests.filter(pa.array(of_part == part))
            if part not in self._writers:
                self._writers[part] = pa.ipc.new_stream(self._path(part), DIGESTS)
            self._writers[part].write_table(rows)

    def read_part(self, part: int) -> pa.Table:
        """Return the digests of one part; nothing can be added to it any more."""
        writer = self._writers.pop(part, None)
        if writer is not None:
            writer.close()
        if not Path(self._path(part)).exists():
            return DIGESTS.empty_table()
        with pa.memory_map(self._path(part)) as file, pa.ipc.open_stream(file) as reader:
            return reader.read_all()

    def close(self) -> None:
        """Remove the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _path(self, part: int) -> str:
        """Return the file of a part."""
        return str(Path(self._folder.name) / f"{part}.arrow")


def count_parts(documents: int) -> int:
    """Return into how many parts this number of documents is divided."""
    return min(_MOST_PARTS, 1 + documents // DOCUMENTS_PER_PART)


def find_unequal(source: DigestSpool, stored: DigestSpool) -> Iterator[dict[str, set[str | None]]]:
    """Yield, part by part, the ids of documents that only one side has, or that have different digests, or that the
    stored side has several times, each with the routings by which it has them. The source has no id twice."""
    names = ("id", "routing_stored", "low_stored")
    for part in range(source.parts):
        left, right = source.read_part(part), stored.read_part(part)
        joined = left.join(right, "id", join_type="full outer", right_suffix="_stored")
        is_equal = pc.and_(
            pc.and_(_same(joined, "low"), _same(joined, "high")),
            pc.or_kleene(
                _same(joined, "routing"),
                pc.and_(pc.is_null(joined.column("routing")), pc.is_null(joined.column("routing_stored"))),
            ),
        )
        if _has_repeated(right):
            counts = right.group_by("id").aggregate([("id", "count")])
            repeated = counts.filter(pc.greater(counts.column("id_count"), 1)).column("id").combine_chunks()
            is_equal = pc.and_(is_equal, pc.invert(pc.is_in(joined.column("id"), value_set=repeated)))
        unequal = joined.filter(pc.invert(pc.fill_null(is_equal, fill_value=False)))
        routings: dict[str, set[str | None]] = {}
        for name, routing, low in zip(*(unequal.column(column).to_pylist() for column in names), strict=True):
            routings.setdefault(name, set()).update({routing} if low is not None else ())
        yield routings


def _has_repeated(digests: pa.Table) -> bool:
    """Return whether an id is there more than once."""
    return pc.count_distinct(digests.column("id")).as_py() < digests.num_rows


def _same(joined: pa.Table, name: str) -> pa.ChunkedArray:
    """Return where both sides have the same value; null where one has none."""
    return pc.equal(joined.column(name), joined.column(f"{name}_stored"))
