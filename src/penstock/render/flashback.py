"""The SQL that undoes the log: the last transaction first, in each the last change first.

The log is read forwards once. What each block needs to be undone goes, compressed, into a temporary file, which is then
read backwards: memory holds one block and two numbers per block, whatever the size of the log.
"""

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from penstock.binlog.events.block import Block
from penstock.errors import BinlogError
from penstock.inspect.changes import Changes, Kind
from penstock.inspect.statement import Statement
from penstock.render import text
from penstock.render.frame import OUTSIDE, Frame, heading, placed
from penstock.render.page import LineFormat, Page, Role
from penstock.render.sql import check_names, delete, insert, update, where
from penstock.render.sql_text import PREAMBLE
from penstock.render.weave import Chosen, Line, Written, weave

_COMMIT = text.of_list(["", "COMMIT;\n"])


class FlashbackLines(LineFormat):
    """Each page comes out reversed; the pages themselves are to be written in reverse."""

    def __init__(self) -> None:
        self._open = OUTSIDE
        self.statements = 0  # that cannot be undone

    def begin(self) -> str:
        return PREAMBLE

    def closing(self) -> str:
        """Of a log that ends inside a transaction: the last text to be added, so the first to be read."""
        return "BEGIN;\n" if self._open != OUTSIDE else ""

    def changes(self, changes: Changes) -> Line:
        check_names(changes.table)
        _check_images(changes)
        match changes.kind:
            case Kind.INSERT:
                return delete(changes, changes.after, changes.last)
            case Kind.DELETE:
                return insert(changes, changes.shown_of(changes.before), changes.first)
            case Kind.UPDATE:
                row = where(changes, changes.after, changes.last)
                return update(changes, changes.shown_of(changes.before), changes.first, row)

    def statement(self, block: Block, statement: Statement) -> str:
        self.statements += 1
        place = int(block.column("position")[statement.event])
        return f"-- {block.file}:{place} cannot be undone: {' '.join(statement.text.split())}\n"

    def frame(self, page: Page) -> pa.Array:
        if not len(page):
            return page.texts
        frame = Frame.of(page, self._open)
        self._open = frame.still_open
        rolled_back = np.flatnonzero(frame.ends & (page.role == Role.ROLLBACK))
        if rolled_back.size:
            raise BinlogError(
                f"{page.block.file}:{int(page.transaction[rolled_back[0]])} the transaction ends in ROLLBACK, so only"
                " its changes in tables without transactions stayed, and the log does not say which these are: leave it"
                " out with --since and --until"
            )
        heads = text.join("-- ", heading(page.block, page.event[frame.ends]), "\nBEGIN;\n")
        backwards = np.arange(len(page))[::-1].copy()
        begins = placed(heads, frame.ends)
        lines = (
            Chosen(begins.column, begins.rows[backwards]),
            Written(page.texts).at(backwards),
            Written(_COMMIT).at(frame.starts[backwards].astype(np.int64)),
        )
        return weave(lines, len(page))


def _check_images(changes: Changes) -> None:
    if changes.absent:
        place = int(changes.block.column("position")[changes.event[0]])
        raise BinlogError(
            f"{changes.block.file}:{place} the {changes.kind.value} in {changes.table.name} does not carry column"
            f" {changes.absent[0]}: with binlog_row_image = MINIMAL or NOBLOB the log leaves out values, and what it"
            " does not have cannot be put back"
        )


class Spool:
    """Texts that come out in the reverse of the order in which they went in."""

    def __init__(self) -> None:
        self._file: Any = tempfile.TemporaryFile(prefix="penstock-flashback-")  # noqa: SIM115 - closed by __exit__
        self._sizes: list[tuple[int, int]] = []  # on disk, and as text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, data: bytes | memoryview) -> None:
        if len(data):
            packed = pa.compress(data, "lz4", asbytes=True)
            self._file.write(packed)
            self._sizes.append((len(packed), len(data)))

    def backwards(self) -> Iterator[bytes]:
        end = self._file.seek(0, 2)
        while self._sizes:
            size, whole = self._sizes.pop()
            end -= size
            self._file.seek(end)
            yield pa.decompress(self._file.read(size), whole, "lz4", asbytes=True)
