"""The last row image of each document that a batch of changes touches, and the operations that follow from them.

Images are in the order of `_seq`; those with one `_seq`, as in a transaction that was prepared before, are in the order
of the batch. A document whose last image is the row before a delete, or before its key changed, is gone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.document.changes import drop_unused, keep_rows
from penstock.document.graph import DocumentGraph
from penstock.document.image_build import ImageBuilder, are_values_of
from penstock.document.image_ids import read_key, write_ids, write_routings
from penstock.document.sql_text import Key
from penstock.model import Column
from penstock.render.json_members import JsonMember, find_json_members
from penstock.render.text import TEXT
from penstock.search.index import OPERATIONS
from penstock.snapshot.key_order import number_keys

DOCUMENTS_PER_PART = 20_000
_NEEDED = ["_change_type", "before", "after", "_changed", "_seq"]
_NULL = ord("n")


@dataclass(slots=True)
class ImagePart:
    """Operations that follow from row images, and the documents that must be read back after all."""

    operations: pa.Table
    read_back: dict[Key, int] = field(default_factory=dict[Key, int])  # with their versions
    routings: dict[Key, set[str | None]] = field(default_factory=dict[Key, set[str | None]])  # that they had


class ImageReader:
    """Reads the row images of changes for documents that are built from them.

    images = ImageReader(graph).read_changes(batch)
    if images is not None:
        for part in images.build_parts(): ...
    """

    def __init__(self, graph: DocumentGraph) -> None:
        self._table, self._key, self._routing = graph.root.table.name, graph.root.key, graph.routing
        self._used = graph.used_columns[self._table]
        self._builder = ImageBuilder(graph)

    def read_changes(self, changes: pa.Table) -> "BatchImages | None":
        """Return the last images of a batch; None when it has statements, or images without a key: those are for a
        reader that asks the database."""
        kinds = changes.column("_change_type")
        if pc.any(pc.equal(kinds, "ddl")).as_py():
            return None
        is_own = pc.equal(changes.column("_table"), str(self._table)).to_numpy()
        own = keep_rows(changes.select(_NEEDED), is_own.astype(np.bool_))
        rows = _sort_changes(drop_unused(own, self._used))
        before, after = (self._read_side(rows, name) for name in ("before", "after"))
        if before is None or after is None:
            return None
        sequences = rows.column("_seq").to_numpy()
        return BatchImages(self._builder, self._key, (before, after), sequences, own.num_rows)

    def _read_side(self, rows: pa.Table, name: str) -> "_ImageSide | None":
        """Return the images of one side with their ids; None when one has no key, or no routing."""
        objects = _as_one_array(rows.column(name))
        numbers = np.flatnonzero(objects.is_valid().to_numpy(zero_copy_only=False))
        columns = (*self._key, *([self._routing] if self._routing is not None else []))
        members = find_json_members(objects, numbers, [column.name for column in columns])
        if not all(are_values_of(column, member).all() for column, member in zip(columns, members, strict=True)):
            return None
        key = members[: len(self._key)]
        if any((member.first_bytes == _NULL).any() for member in key):
            return None
        routings = None if self._routing is None else write_routings(self._routing, members[-1])
        return _ImageSide(objects, numbers, key, write_ids(self._key, key), routings)


@dataclass(frozen=True, slots=True, eq=False)
class _ImageSide:
    """The images before changes, or those after."""

    objects: pa.Array  # one for each change; null where it has no such image
    rows: NDArray[np.int64]  # changes that have one
    key: Sequence[JsonMember]
    ids: pa.Array
    routings: pa.Array | None


class BatchImages:
    """The last row image of each document that a batch touches."""

    def __init__(
        self,
        builder: ImageBuilder,
        key: tuple[Column, ...],
        sides: tuple[_ImageSide, _ImageSide],
        sequences: NDArray[np.int64],
        changes: int,
    ) -> None:
        self._builder, self._key, self._after = builder, key, sides[1]
        self.changes, self.unused = changes, changes - sequences.size
        names = pa.concat_arrays([side.ids for side in sides]).dictionary_encode()
        codes = names.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        rows = np.concatenate([side.rows for side in sides])
        is_after = np.repeat([False, True], [side.rows.size for side in sides])
        order = np.argsort(2 * rows + is_after)
        last = np.empty(len(names.dictionary), np.int64)
        last[codes[order]] = order  # the last of those with one code stays
        in_order = np.argsort(2 * rows[last] + is_after[last])
        last = last[in_order]
        self.ids = names.dictionary.take(pa.array(in_order))
        self.versions = sequences[rows[last]]
        self._rows = np.where(is_after[last], rows[last], -1)  # of the image; -1: the document is gone
        self._routings = None
        before, after = sides
        if before.routings is not None and after.routings is not None:
            numbers = np.empty(in_order.size, np.int64)
            numbers[in_order] = np.arange(in_order.size)
            texts = pa.concat_arrays([before.routings, after.routings])
            self._routings = _SeenRoutings.find(numbers[codes], texts, last)

    def __len__(self) -> int:
        return len(self.ids)

    def build_parts(self) -> Iterator[ImagePart]:
        """Yield the operations for all documents, in parts of bounded size. The operations of one document follow each
        other, deletes first."""
        for first in range(0, len(self), DOCUMENTS_PER_PART):
            yield self._build_part(np.arange(first, min(first + DOCUMENTS_PER_PART, len(self))))

    def _build_part(self, numbers: NDArray[np.int64]) -> ImagePart:
        """Return the operations for these documents."""
        rows = self._rows[numbers]
        alive = numbers[rows >= 0]
        built = self._builder.build_documents(self._after.objects, rows[rows >= 0])
        written = alive[built.is_readable & built.is_searchable]
        gone = np.concatenate([numbers[rows < 0], alive[built.is_readable & ~built.is_searchable]])
        part = ImagePart(self._make_operations(written, gone, built.documents))
        for number in alive[~built.is_readable].tolist():
            key = read_key(self._key, self._after.key, int(np.searchsorted(self._after.rows, self._rows[number])))
            part.read_back[key] = int(self.versions[number])
            if self._routings is not None:
                part.routings[key] = self._routings.list_of(number)
        return part

    def _make_operations(self, written: NDArray[np.int64], gone: NDArray[np.int64], documents: pa.Array) -> pa.Table:
        """Return the operations for documents that are written and for those that are gone."""
        deletes, old_routings = gone, pa.nulls(gone.size, TEXT)
        new_routings = pa.nulls(written.size, TEXT)
        if self._routings is not None:
            deletes, old_routings = self._routings.find_left(written, gone)
            new_routings = self._routings.final.take(pa.array(written))
        numbers = np.concatenate([deletes, written])
        order = pa.array(np.argsort(numbers, kind="stable"))
        columns = {
            "id": self.ids.take(pa.array(numbers)),
            "version": pa.array(self.versions[numbers]),
            "routing": pa.concat_arrays([old_routings, new_routings]),
            "document": pa.concat_arrays([pa.nulls(deletes.size, TEXT), documents]),
        }
        return pa.table([columns[part.name].take(order).cast(part.type) for part in OPERATIONS], schema=OPERATIONS)


@dataclass(frozen=True, slots=True, eq=False)
class _SeenRoutings:
    """The routings that each document had in a batch, each once, and the last of them."""

    documents: NDArray[np.int64]  # by number, rising
    routings: pa.Array
    final: pa.Array  # by the number of the document

    @classmethod
    def find(cls, documents: NDArray[np.int64], routings: pa.Array, last: NDArray[np.int64]) -> "_SeenRoutings":
        """Find the routings of images that belong to these documents; `last` are the last images of the documents."""
        pairs = number_keys([pa.array(documents), routings])
        _, first = np.unique(pairs, return_index=True)
        first = first[np.argsort(documents[first], kind="stable")]
        return cls(documents[first], routings.take(pa.array(first)), routings.take(pa.array(last)))

    def list_of(self, document: int) -> set[str | None]:
        """Return the routings that one document had."""
        first, stop = np.searchsorted(self.documents, [document, document + 1]).tolist()
        return set(self.routings.slice(first, stop - first).to_pylist())

    def find_left(self, written: NDArray[np.int64], gone: NDArray[np.int64]) -> tuple[NDArray[np.int64], pa.Array]:
        """Return the documents and routings where documents were and are no more."""
        final = self.final.take(pa.array(self.documents))
        is_final = pc.or_(
            pc.fill_null(pc.equal(self.routings, final), False), pc.and_(pc.is_null(final), pc.is_null(self.routings))
        )
        is_left = np.isin(self.documents, gone)
        is_left |= np.isin(self.documents, written) & ~is_final.to_numpy(zero_copy_only=False)
        return self.documents[is_left], self.routings.filter(pa.array(is_left))


def _sort_changes(rows: pa.Table) -> pa.Table:
    """Return changes in the order of `_seq`; those with one stay as they are to each other."""
    sequences = rows.column("_seq").to_numpy()
    if (sequences[1:] >= sequences[:-1]).all():
        return rows
    return rows.take(pa.array(np.argsort(sequences, kind="stable")))


def _as_one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return texts as one array, with bounds for any size."""
    return pa.concat_arrays([pa.array([], TEXT), *(chunk.cast(TEXT) for chunk in column.chunks)])
