"""Why a document of an index differs from the database, by the changes of its rows that are still in the log.

The version of a stored document is the `_seq` of the change that wrote it. So the log tells which changes came since:

| version of the document       | changes in the log | cause                                                  |
|-------------------------------|--------------------|--------------------------------------------------------|
| of a change, a load, a repair | some are newer     | missed: the first newer one was not applied            |
| the same                      | none is newer      | foreign: somebody has written it with the same version |
| no position of the log        | any                | foreign: somebody has written it with another version  |
| none: the index lacks it      | some               | missed, or deleted by somebody                         |
| none: the index lacks it      | none               | foreign: never loaded, or deleted by somebody          |
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.document.build import read_keys
from penstock.document.changes import drop_unused, read_image_key
from penstock.document.difference import Difference
from penstock.document.graph import DocumentGraph
from penstock.document.queries import RootLookup, find_lookups
from penstock.document.rows import DocumentRows
from penstock.document.sql_text import Key
from penstock.errors import SchemaError
from penstock.model import Column, Position, TableName
from penstock.model import Sequence as ChangeSequence

_CHANGE_DETAILS = ("_change_type", "before", "after", "_seq", "_file", "_offset", "_gtid", "_commit_timestamp")


class CauseKind(StrEnum):
    """The way in which a document came to differ."""

    MISSED = "missed"  # a change in the log was not applied
    FOREIGN = "foreign"  # somebody else has written the index
    MISSED_OR_FOREIGN = "missed_or_foreign"
    UNKNOWN = "unknown"  # the log does not show it any more, or was not looked at far enough


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A change of a row of a document, as the log has it."""

    sequence: int
    table: str
    type: str
    position: str
    gtid: str | None
    time: str | None

    def __str__(self) -> str:
        details = [f"GTID {self.gtid}"] if self.gtid else []
        details += [f"{self.time} UTC"] if self.time else []
        return f"{self.type} of {self.table} at {self.position}" + (f" ({', '.join(details)})" if details else "")


@dataclass(slots=True)
class DocumentHistory:
    """The changes of the rows of one document that are in the log."""

    version: int | None  # of the document in the index
    newest: LoggedChange | None = None
    first_after: LoggedChange | None = None  # the version
    at_version: LoggedChange | None = None
    count_after: int = 0

    def add(self, change: LoggedChange) -> None:
        """Add a change, in whatever order they come."""
        if self.newest is None or change.sequence > self.newest.sequence:
            self.newest = change
        if self.version is None:
            return
        if change.sequence == self.version:
            self.at_version = change
        if change.sequence > self.version:
            self.count_after += 1
            if self.first_after is None or change.sequence < self.first_after.sequence:
                self.first_after = change


@dataclass(frozen=True, slots=True)
class ExaminedLog:
    """The part of the log that was looked at."""

    start: Position
    end: Position  # of the log
    is_whole: bool  # the log begins at `start`

    def describe_version(self, version: int) -> str:
        """Return the position that a version of a document means."""
        part, (prefix, _, digits) = ChangeSequence.from_int(version), self.end.file.rpartition(".")
        return f"{prefix}.{part.file_number:0{len(digits)}}:{part.offset}"


@dataclass(frozen=True, slots=True)
class DifferenceCause:
    """The reason why a document differs."""

    id: str
    kind: str  # of the difference
    cause: CauseKind
    detail: str  # for people
    changes: tuple[LoggedChange, ...] = field(default=())  # by which that is known

    def __str__(self) -> str:
        return f"why {self.kind} {self.id}: {self.detail}"


class HistoryReader:
    """Collects the changes of the rows of some documents from batches of the log.

        histories = HistoryReader(graph, rows, {"7": ((7,), version)})
        histories.add_changes(batch)

    Which rows of joined tables belong to a document is asked of the database as it is now.
    """

    def __init__(
        self, graph: DocumentGraph, rows: DocumentRows, documents: Mapping[str, tuple[Key | None, int | None]]
    ) -> None:
        """Collect the changes of documents, given by id with their key and the version that the index has."""
        self.documents = {name: DocumentHistory(version) for name, (_, version) in documents.items()}
        self._used = graph.used_columns
        roots = {key: name for name, (key, _) in documents.items() if key is not None}
        # By table: columns of its rows, and which documents have rows with which values in them.
        self._tables: dict[TableName, list[tuple[tuple[Column, ...], dict[Key, set[str]]]]] = {
            graph.root.table.name: [(graph.root.key, {key: {name} for key, name in roots.items()})]
        }
        for lookup in find_lookups(graph):
            values = _read_values(lookup, rows, roots)
            self._tables.setdefault(lookup.table, []).append((lookup.columns, values))

    @property
    def used_columns(self) -> dict[TableName, frozenset[str]]:
        """Return the columns that are needed of the rows of each table: those by which documents are found, and those
        that they use, since a change names only the changed ones of the columns that are read."""
        return {
            table: self._used[table] | {column.name for columns, _ in ways for column in columns}
            for table, ways in self._tables.items()
        }

    def add_changes(self, changes: pa.Table) -> None:
        """Add the changes of a batch, in the columns of a stream with a filter."""
        for table, ways in self._tables.items():
            own = changes.filter(pc.equal(changes.column("_table"), str(table)))
            for images, change in _read_details(drop_unused(own, self._used[table]), table):
                names = {name for image in images for name in _find_documents(table, image, ways)}
                for name in names:
                    self.documents[name].add(change)


def _read_values(lookup: RootLookup, rows: DocumentRows, roots: Mapping[Key, str]) -> dict[Key, set[str]]:
    """Return by which values rows of a joined table belong to documents now."""
    values: dict[Key, set[str]] = {}
    if not roots:
        return values
    if lookup.names_roots:
        return {key: {name} for key, name in roots.items()}
    with rows.open_view():
        table = rows.read(lookup.select_values(list(roots)))
    width = len(lookup.graph.root.key)
    for row in read_keys(table, table.num_columns):
        key, value = row[:width], row[width:]
        if key in roots and None not in value:
            values.setdefault(value, set()).add(roots[key])
    return values


def _read_details(changes: pa.Table, table: TableName) -> Iterator[tuple[list[dict[str, Any]], LoggedChange]]:
    """Yield the images of each change, and where it is."""
    columns = (changes.column(name).to_pylist() for name in _CHANGE_DETAILS)
    for kind, before, after, sequence, file, offset, gtid, moment in zip(*columns, strict=True):
        images = [json.loads(text) for text in (before, after) if text is not None]
        if len(images) == 2:
            images[1] = images[0] | images[1]  # what a minimal image does not have was not changed
        time = None if moment is None else f"{moment:%Y-%m-%d %H:%M:%S}"
        yield images, LoggedChange(sequence, str(table), kind, f"{file}:{offset}", gtid, time)


def _find_documents(
    table: TableName, image: dict[str, Any], ways: Sequence[tuple[tuple[Column, ...], dict[Key, set[str]]]]
) -> Iterator[str]:
    """Yield the documents that a row belongs to."""
    for columns, documents in ways:
        try:
            key = read_image_key(table, image, columns)
        except SchemaError:
            continue  # the table has other columns now
        if key is not None:
            yield from documents.get(key, ())


def find_cause(difference: Difference, history: DocumentHistory, part: ExaminedLog) -> DifferenceCause:
    """Return why a document differs, as far as a part of the log tells it."""
    if difference.version is None:
        cause, text, change = _explain_missing(history, part)
    else:
        cause, text, change = _explain_stored(difference.version, history, part)
    return DifferenceCause(difference.id, difference.kind, cause, text, () if change is None else (change,))


def _explain_missing(history: DocumentHistory, part: ExaminedLog) -> tuple[CauseKind, str, LoggedChange | None]:
    """Explain a document that the index does not have."""
    change = history.newest
    if change is not None:
        text = f"the last change of its rows is {change}: it was missed, or somebody has deleted the document since"
        return CauseKind.MISSED_OR_FOREIGN, text, change
    if part.is_whole:
        text = (
            f"nobody has changed its rows in the log, which begins at {part.start}: the document was never loaded, or"
            " somebody has deleted it around `penstock sync`"
        )
        return CauseKind.FOREIGN, text, None
    return CauseKind.UNKNOWN, f"nobody has changed its rows since {part.start}; {_OLDER}", None


_OLDER = "the log before that was not looked at, because of the limits of --explain"


def _explain_stored(
    version: int, history: DocumentHistory, part: ExaminedLog
) -> tuple[CauseKind, str, LoggedChange | None]:
    """Explain a document that the index has with another content, or besides."""
    epoch, where = ChangeSequence.from_int(version).epoch, part.describe_version(version)
    is_position = ChangeSequence.from_int(version).file_number > 0 and epoch <= part.end.epoch
    if not is_position or (epoch == part.end.epoch and version > int(ChangeSequence.from_position(part.end))):
        last = f"; the last change of its rows is {history.newest}" if history.newest is not None else ""
        text = (
            f"its version {version} is no position of the log, which ends at {part.end}: somebody else wrote it{last}"
        )
        return CauseKind.FOREIGN, text, history.newest
    if (change := history.first_after) is not None:
        others = f" and {history.count_after - 1:,} more" if history.count_after > 1 else ""
        return CauseKind.MISSED, f"its version is that of {where}, and it lacks {change}{others}", change
    if version < int(ChangeSequence.from_position(part.start)):
        limit = "the log does not go back further" if part.is_whole else _OLDER
        text = f"its version is that of {where}, and nobody has changed its rows since {part.start}; {limit}"
        return CauseKind.UNKNOWN, text, None
    if (change := history.at_version) is not None:
        text = (
            f"its version is that of the last change of its rows, {change}: somebody else has written it since with the"
            " same version, around `penstock sync`"
        )
        return CauseKind.FOREIGN, text, change
    text = (
        f"nobody has changed its rows since its version, {where}, at which it was loaded or repaired: somebody else has"
        " written it since with the same version, around `penstock sync`"
    )
    return CauseKind.FOREIGN, text, None
