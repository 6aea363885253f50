"""Documents of one table from the row images of the log, without asking the database.

The values of an image are written into the document as the image has them, as slices of its text. Nothing is parsed,
and no Python object is made for a row: the text is that of a read, because one writer makes both.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.binlog.values.column import Family, kernel_family_of
from penstock.document.graph import DocumentGraph
from penstock.document.impossible_dates import mark_impossible_dates
from penstock.model import Column
from penstock.render.json_members import JsonMember, find_json_members
from penstock.render.text import texts_from_list
from penstock.render.weave import ColumnPiece, write_lines

_DATES = {Family.DATE, Family.DATETIME, Family.TIMESTAMP}
_NUMBERS = {Family.INTEGER, Family.REAL, Family.BIT, Family.YEAR}


@dataclass(frozen=True, slots=True, eq=False)
class BuiltImages:
    """What became of row images: which of them could be read and are of searchable rows, and the documents of those."""

    is_readable: NDArray[np.bool_]
    is_searchable: NDArray[np.bool_]
    documents: pa.Array  # of images that are both


class ImageBuilder:
    """Writes the documents of row images.

    built = ImageBuilder(graph).build_documents(images, rows)
    """

    def __init__(self, graph: DocumentGraph) -> None:
        """Build the documents of a graph for which there is no reason to read them back."""
        self._fields = graph.root.fields
        root = graph.spec.root
        named = {column.name.casefold(): column for column in graph.root.table.declared_columns}
        where: Mapping[str, Sequence[object]] = root.where if isinstance(root.where, Mapping) else {}
        self._values = {
            named[name.casefold()].name: [str(int(value)) for value in values]  # type: ignore[call-overload] - integers
            for name, values in where.items()
        }
        self._soft_delete = named[root.soft_delete.casefold()].name if root.soft_delete else None
        used = [part.column.name for part in self._fields if part.column is not None]
        used += [*self._values, *([self._soft_delete] if self._soft_delete else [])]
        self._columns = [named[name.casefold()] for name in dict.fromkeys(used)]

    def build_documents(self, images: pa.Array, rows: NDArray[np.int64]) -> BuiltImages:
        """Build the documents of the images in these rows, which rise."""
        names = [column.name for column in self._columns]
        members = dict(zip(names, find_json_members(images, rows, names), strict=True))
        is_readable = np.ones(rows.size, np.bool_)
        for column in self._columns:
            is_readable &= are_values_of(column, members[column.name])
        is_searchable = self._find_searchable(members, rows.size)
        chosen = np.flatnonzero(is_readable & is_searchable)
        return BuiltImages(is_readable, is_searchable, self._write_documents(members, chosen))

    def _find_searchable(self, members: Mapping[str, JsonMember], count: int) -> NDArray[np.bool_]:
        """Return which images are of rows that are searchable; a value that is not there is."""
        is_searchable = np.ones(count, np.bool_)
        for name, values in self._values.items():
            is_searchable &= _mask(pc.is_in(members[name].to_texts(), value_set=texts_from_list(values)))
        if self._soft_delete is not None:
            # NULL and zero, of a number, a date or a time alike.
            is_searchable &= ~_mask(pc.match_substring_regex(members[self._soft_delete].to_texts(), "[1-9]"))
        return is_searchable

    def _write_documents(self, members: Mapping[str, JsonMember], chosen: NDArray[np.int64]) -> pa.Array:
        """Return the documents of these images."""
        if not chosen.size:
            return texts_from_list([])
        line: list[str | ColumnPiece] = []
        for part in self._fields:
            line.append(f"{',' if line else '{'}{json.dumps(part.name, ensure_ascii=False)}:")
            if part.column is None:
                line.append(json.dumps(part.value, ensure_ascii=False))
            else:
                line.append(_write_value(part.column, members[part.column.name], chosen))
        return write_lines([*line, "}" if line else "{}"], chosen.size)


def are_values_of(column: Column, member: JsonMember) -> NDArray[np.bool_]:
    """Return which values are there and of the kind that the column has now. The others are from before the table was
    altered, or are numbers of labels that the log does not have."""
    return _FIRST_BYTES[kernel_family_of(column)[0]][member.first_bytes]


def _write_value(column: Column, member: JsonMember, rows: NDArray[np.int64]) -> ColumnPiece:
    """Return the piece of documents that shows a column."""
    family = kernel_family_of(column)[0]
    if family is Family.DECIMAL:
        return member.without_quotes().pick_rows(rows)
    if family in _DATES:
        plain = member.without_quotes()
        is_wrong = mark_impossible_dates(plain.data, plain.starts, np.diff(plain.bounds)[::2])
        return member.pick_rows(rows, is_wrong)
    return member.pick_rows(rows)


def _first_bytes(family: Family) -> NDArray[np.bool_]:
    """Return with which bytes a value of a family of types may begin."""
    allowed = '"'
    if family in _NUMBERS:
        allowed = "-0123456789"
    elif family is Family.VECTOR:
        allowed = "["
    elif family is Family.JSON:
        allowed = '"-0123456789[{tf'
    marks = np.zeros(256, np.bool_)
    marks[[ord(character) for character in f"{allowed}n"]] = True
    return marks


_FIRST_BYTES = {family: _first_bytes(family) for family in Family}


def _mask(booleans: pa.Array) -> NDArray[np.bool_]:
    """Return booleans as a mask; null is false."""
    return booleans.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
