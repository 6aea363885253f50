"""Writes the log of a `penstock binlog` request as lines: text, JSON, SQL, or the SQL that undoes it.

Blocks are rendered by several threads and written in their order.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.layout import EventType
from penstock.binlog.rows.table_changes import decode_table_changes
from penstock.cli.binlog_output import open_output, print_warning
from penstock.cli.binlog_reading import RequestedLog
from penstock.cli.ordered_work import work_in_order
from penstock.model import Position
from penstock.render.page import (
    LineContext,
    LineFormat,
    LineGroup,
    LineRole,
    PageText,
    compose_page,
    find_lines_between,
)

L = TypeVar("L", bound=LineFormat)


@dataclass(frozen=True, slots=True, eq=False)
class _RenderJob(Generic[L]):
    """A picked block to render, with what rendering needs to know of the blocks before it."""

    block: Block
    line_format: L
    between: Sequence[LineGroup]


class LineWriter:
    """Writes one log as lines.

    LineWriter(RequestedLog(request)).write_lines()
    """

    def __init__(self, log: RequestedLog) -> None:
        self._log = log

    def write_lines(self) -> None:
        """Write the log as lines of text, JSON or SQL."""
        request = self._log.request
        line_format = self._choose_format()
        line_format.shows_passwords = request.passwords
        line_format.comments_nameless = request.server is not None
        with open_output(request.target) as out:
            out.write(line_format.write_begin().encode())
            last = LineContext()
            pages = self._render_pages(line_format)
            for lines, line_format in pages:
                for piece in lines.framed_pieces(line_format, last):
                    out.write(piece)
                last = _context_after(lines, line_format, last)
                del lines
                if request.follow:
                    out.flush()
            out.write(line_format.write_end(last).encode())

    def write_flashback(self) -> None:
        """Write the SQL that undoes the log."""
        from penstock.render.flashback import FlashbackFormat, ReversedSpool  # noqa: PLC0415

        line_format = FlashbackFormat(self._log.selection.xa)
        with ReversedSpool() as spool:
            last = LineContext()
            pages = self._render_pages(line_format)
            for lines, line_format in pages:
                for tag, part in line_format.split_by_xa(lines, last):
                    spool.add(tag, part)
                last = _context_after(lines, line_format, last)
            spool.add(None, line_format.write_last(last).encode())
            line_format.check_xa_outcomes()
            with open_output(self._log.request.target) as out:
                out.write(line_format.write_begin().encode())
                for part in spool.read_backwards(line_format.is_undone):
                    out.write(part)
        if line_format.statements:
            print_warning(
                f"statements that cannot be undone: {line_format.statements}; comments in the output say which"
            )

    def _choose_format(self) -> LineFormat:
        """Return the line format that the request names."""
        match self._log.format:
            case "json":
                from penstock.render.json_lines import JsonLineFormat  # noqa: PLC0415

                return JsonLineFormat(self._log.selection.xa)
            case "sql":
                from penstock.render.sql import SqlFormat  # noqa: PLC0415

                return SqlFormat(self._log.selection.xa)
            case _:
                from penstock.render.terminal import TerminalFormat  # noqa: PLC0415

                is_plain = not self._log.request.is_terminal or "NO_COLOR" in os.environ
                return TerminalFormat(self._log.selection.xa, colours=not is_plain)

    def _render_pages(self, line_format: L) -> Iterator[tuple[PageText, L]]:
        """Yield the text of each picked block in order, and the format as it is at that block."""
        with closing(work_in_order(self._prepare_jobs(line_format), self._render_job)) as pages:
            for page, language_there in pages:
                yield self._limit_lines(page), language_there
                del page  # while the next one is waited for
                if self._log.changes_left == 0:
                    return

    def _prepare_jobs(self, line_format: L) -> Generator[_RenderJob[L], None, None]:
        """Yield the blocks to render, in order, with what depends on the blocks before."""
        for block in self._log.pick_blocks():
            line_format = line_format.for_block(copy(self._log.selection.xa))
            yield _RenderJob(block, line_format, find_lines_between(block, line_format))

    def _render_job(self, job: _RenderJob[L]) -> tuple[PageText, L]:
        """Render one block; any thread may do that."""
        log, finds_rows = self._log, job.line_format.finds_rows
        changes = decode_table_changes(job.block, log.choice, log.shapes, finds_rows=finds_rows)
        return compose_page(job.block, changes, job.between, job.line_format), job.line_format

    def _limit_lines(self, lines: PageText) -> PageText:
        """Return the lines up to the limit, and warn about what they say."""
        log = self._log
        if log.changes_left is not None:
            lines = lines.cut_after_changes(log.changes_left)
            log.changes_left -= int(np.count_nonzero(lines.page.role == LineRole.CHANGE))
        page = lines.page
        log.warn_of_incidents(page.block, page.event[page.role == LineRole.INCIDENT])
        if log.format == "sql":
            self._warn_of_loads(page.block, page.event[page.role == LineRole.STATEMENT])
        return lines

    def _warn_of_loads(self, block: Block, events: NDArray[np.int64]) -> None:
        """Warn about each LOAD DATA among these statements of a block: SQL output cannot load its file again."""
        for event in events[block.column("kind")[events] == EventType.EXECUTE_LOAD_QUERY].tolist():
            position = Position(block.file, int(block.column("position")[event]))
            self._log.show_warning(f"{position} a LOAD DATA in statement format: its rows are not in this output")


def _context_after(lines: PageText, line_format: LineFormat, before: LineContext) -> LineContext:
    """Return the context that the last line of a page leaves; `before` if it has none."""
    page = lines.page
    return line_format.context_after(page, len(page) - 1) if len(page) else before
