"""The log as SQL that does the same again, transaction by transaction."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.binlog.events.block import Block
from penstock.binlog.events.incident import Incident
from penstock.binlog.events.statement import Options, StatementEvent, options_of_rows
from penstock.binlog.rows.table_changes import RowChangeKind, TableChanges
from penstock.binlog.xa.outcome import XaOutcome, XaTransactions
from penstock.errors import BinlogError, SchemaError
from penstock.model import Column, TableSchema
from penstock.model.table import is_nameless
from penstock.render import text
from penstock.render.frame import TransactionFrame, place_texts, write_headings
from penstock.render.page import LineContext, LineFormat, LineRole, PageLines, format_column, formatted_operations
from penstock.render.sql_text import (
    PREAMBLE,
    SQL_MODE,
    SqlMatchWriter,
    SqlValueWriter,
    quote_name,
    quote_table,
    write_json_function_calls,
)
from penstock.render.weave import ColumnPiece, FormattedColumn, LinePattern, write_lines

_VALUES, _MATCHES = SqlValueWriter(), SqlMatchWriter()
_ENDS = {LineRole.COMMIT: "COMMIT;\n", LineRole.ROLLBACK: "ROLLBACK;\n"}
_CHECKS = {Options.NO_FOREIGN_KEY_CHECKS: "FOREIGN_KEY_CHECKS", Options.RELAXED_UNIQUE_CHECKS: "UNIQUE_CHECKS"}
_COMMENT = text.EscapeTable.from_mapping({"\n": "\n-- ", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z"})


class SqlFormat(LineFormat):
    """Writes the log as SQL that repeats it, transaction by transaction."""

    finds_rows = True

    def __init__(self, xa: XaTransactions) -> None:
        super().__init__(xa)
        self._database = ""

    def write_begin(self) -> str:
        """Return the SET statements that the SQL needs."""
        return PREAMBLE

    def write_end(self, last: LineContext) -> str:
        """Return what ends the transaction that the log leaves open."""
        if not last.is_in_transaction():
            return ""
        xid = self.xa.xids.get(last.transaction)
        restored = _write_option_switch(Options(last.options), Options(0))
        return restored + ("COMMIT;\n" if xid is None else _xa_end_statements(LineRole.PREPARE, xid))

    def write_changes(self, changes: TableChanges) -> LinePattern:
        """Return the pieces of the statement that repeats each change; a comment if the log has no column names and
        that is allowed.
        """
        if self.comments_nameless and is_nameless(changes.table):
            return ["-- no names of columns: ", *self._write_change(changes)]
        check_names(changes.table)
        return self._write_change(changes)

    def _write_change(self, changes: TableChanges) -> LinePattern:
        """Return the pieces of the INSERT, UPDATE or DELETE for each change."""
        match changes.kind:
            case RowChangeKind.INSERT:
                return write_insert(changes, changes.shown_of(changes.after), changes.last)
            case RowChangeKind.DELETE:
                return write_delete(changes, changes.before, changes.first)
            case RowChangeKind.UPDATE:
                row = write_condition(changes, changes.before, changes.first)
                columns = changes.shown_of(changes.after)
                return write_update(changes, columns, changes.last, row, changes.shown_of(changes.partial))

    def write_statement(self, block: Block, statement: StatementEvent) -> str:
        """Return a statement with the session settings that it ran with."""
        lines: list[str] = []
        if not statement.is_in_transaction:
            lines.append(f"-- {write_headings(block, np.array([statement.event]))[0].as_py()}\n")
        if statement.is_masked:  # it would set another password, or fail
            return "".join([*lines, _comment_out(statement.text), "-- with --passwords it is a statement\n"])
        if statement.is_load:
            return "".join([*lines, _comment_out(statement.text), "-- the file that it loads is not in this output\n"])
        if statement.needs_database and statement.database and statement.database != self._database:
            self._database = statement.database
            lines.append(f"USE {quote_name(statement.database)};\n")
        if statement.drops_database:
            self._database = ""
        before, after = [f"TIMESTAMP={block.column('timestamp')[statement.event]}"], ["TIMESTAMP=DEFAULT"]
        if statement.sql_mode is not None:
            before.append(f"SQL_MODE={statement.sql_mode}")
            after.append(SQL_MODE)
        plain = statement.create_table_without_rows
        lines += [
            f"SET {', '.join(before)};\n",
            _write_option_switch(Options(0), statement.options),
            _terminate(statement.text if plain is None else plain),
            _write_option_switch(statement.options, Options(0)),
            f"SET {', '.join(after)};\n",
            # The statement has committed what it stands in; its rows belong together.
            "" if plain is None else "BEGIN;\n",
        ]
        return "".join(lines)

    def write_xa_outcome(self, block: Block, event: int, outcome: XaOutcome) -> str:
        """Return XA COMMIT or XA ROLLBACK; a comment if its rows are not in this part of the log."""
        head = write_headings(block, np.array([event]))[0].as_py()
        if outcome.prepared is None:
            return f"-- {head}\n-- {outcome.sql}: prepared before this part of the log\n"
        return f"-- {head}\n{outcome.sql};\n"

    def write_incident(self, block: Block, incident: Incident) -> str:  # noqa: ARG002 - it says where it is
        """Return an INCIDENT event, with which the source says that events may be missing from its binlog at this
        position, as a comment."""
        return f"-- {incident}\n"

    def write_notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> LinePattern:  # noqa: ARG002 - only the text
        """Return statements that produced rows as comments."""
        return [
            FormattedColumn(text.escape_texts(texts, _COMMENT), before="-- ", after="\n").pick_rows(
                np.arange(events.size)
            )
        ]

    def frame_lines(self, page: PageLines, before: LineContext) -> tuple[LinePattern, LinePattern]:
        """Return BEGIN and COMMIT around transactions, with a heading above each."""
        frame = TransactionFrame.find_on_page(page, before)
        titles = FormattedColumn(write_headings(page.block, page.event[frame.starts]), before="-- ", after="\n")
        count = len(titles.texts)
        heads = write_lines((titles.pick_rows(np.arange(count)), self._begin_statements(page, frame)), count)
        return (place_texts(heads, frame.starts), *_option_switches(page, before)), (_end_statements(page, frame),)

    def context_after(self, page: PageLines, line: int) -> LineContext:
        """Return the context in which the line after `line` is written: the open transaction, and the session options
        that `line` needed."""
        return replace(
            super().context_after(page, line), options=int(_options_of_lines(page.slice_lines(line, line + 1))[0])
        )

    def _begin_statements(self, page: PageLines, frame: TransactionFrame) -> ColumnPiece | str:
        """Return BEGIN, or XA START with its id, for each transaction that starts on the page."""
        if not self.xa.xids:
            return "BEGIN;\n"
        xids = [self.xa.xids.get(begin) for begin in page.transaction[frame.starts].tolist()]
        begins = text.texts_from_list(["BEGIN;\n" if xid is None else f"XA START {xid};\n" for xid in xids])
        return FormattedColumn(begins).pick_rows(np.arange(len(begins)))


def _options_of_lines(page: PageLines) -> NDArray[np.int64]:
    """Return the session options that each line needs; only rows need others than the session has by default."""
    return np.where(page.role == LineRole.CHANGE, options_of_rows(page.block)[page.event], 0)


def _option_switches(page: PageLines, before: LineContext) -> LinePattern:
    """Return the SET statements between lines: they switch off the checks that rows were written without, and on again
    for other lines.
    """
    options = _options_of_lines(page)
    last = np.concatenate([[before.options], options[:-1]])
    if not (options.any() or last.any()):
        return ()
    pairs, which = np.unique(np.stack([last, options]), axis=1, return_inverse=True)
    texts = [_write_option_switch(Options(old), Options(new)) for old, new in pairs.T.tolist()]
    return (FormattedColumn(text.texts_from_list(texts)).pick_rows(which.reshape(-1)),)


def _comment_out(statement: str) -> str:
    """Return a statement as SQL comment lines."""
    return "".join(f"-- {line}\n" for line in statement.splitlines())


def _end_statements(page: PageLines, frame: TransactionFrame) -> ColumnPiece:
    """Return COMMIT, ROLLBACK or the end of an XA transaction for each transaction that ends on the page."""
    texts = ["", _ENDS[LineRole.COMMIT]]
    which = frame.ends.astype(np.int64)
    for i, role, xid in frame.non_commit_ends(page):
        which[i] = len(texts)
        texts.append(_xa_end_statements(role, xid) if xid else _ENDS[role])
    return FormattedColumn(text.texts_from_list(texts)).pick_rows(which)


def _xa_end_statements(role: LineRole, xid: str) -> str:
    """Return the statements that end an XA transaction in this role."""
    last = f"XA COMMIT {xid} ONE PHASE" if role is LineRole.ONE_PHASE else f"XA PREPARE {xid}"
    return f"XA END {xid};\n{last};\n"


def _write_option_switch(old: Options, new: Options) -> str:
    """Return the SET statement that changes the session's checks (FOREIGN_KEY_CHECKS, UNIQUE_CHECKS) from `old` to
    `new`; empty where they agree. When it switches a check off, it saves the session's value in a user variable
    (@OLD_…), from which it restores the value when it switches the check on again."""
    assignments: list[str] = []
    for option, name in _CHECKS.items():
        if option & ~old & new:
            assignments.append(f"@OLD_{name}=@@{name}, {name}=0")
        elif option & old & ~new:
            assignments.append(f"{name}=@OLD_{name}")
    return f"SET {', '.join(assignments)};\n" if assignments else ""


def check_names(table: TableSchema) -> None:
    """Refuse a table whose column names the log does not have."""
    if is_nameless(table):
        raise SchemaError(
            f"the log has no column names for table {table.name}, nor DDL before its rows that tells them, so there is"
            " no SQL for them: add --host … to look them up on a server that has the table (for later logs: SET GLOBAL"
            " binlog_row_metadata = 'FULL')"
        )


def write_condition(
    changes: TableChanges, columns: tuple[Column, ...], rows: NDArray[np.int64]
) -> list[str | ColumnPiece]:
    """Return the pieces of a WHERE clause that finds one row: by its key, or by all that is known of it."""
    if not columns:
        raise _incomplete_row_error(changes, "carries no column to find its row by")
    key = changes.key_of(columns)
    pieces: list[str | ColumnPiece] = []
    for column in key or columns:
        left = (
            quote_name(column.name) if key else _MATCHES.comparison_start(column, changes.images.columns[column.name])
        )
        pieces.append(f"{' AND ' if pieces else ' WHERE '}{left}{'=' if key else ' <=> '}")
        pieces.append(format_column(changes, _MATCHES, column, rows))
    return [*pieces, ";\n" if key else " LIMIT 1;\n"]


def write_insert(changes: TableChanges, columns: Sequence[Column], rows: NDArray[np.int64]) -> LinePattern:
    """Return the pieces of an INSERT of these rows."""
    names = ", ".join(quote_name(column.name) for column in columns)
    pieces: list[str | ColumnPiece] = [f"INSERT INTO {quote_table(changes.table.name)} ({names}) VALUES ("]
    for i, column in enumerate(columns):
        pieces += (
            [", ", format_column(changes, _VALUES, column, rows)]
            if i
            else [format_column(changes, _VALUES, column, rows)]
        )
    return [*pieces, ");\n"]


def write_update(
    changes: TableChanges,
    columns: Sequence[Column],
    rows: NDArray[np.int64],
    condition: LinePattern,
    partial: Sequence[Column] = (),
) -> LinePattern:
    """Return the pieces of an UPDATE that sets all columns of the rows, since an unchanged one may update itself; of
    `partial` columns only parts are set.
    """
    if not columns and not partial:
        raise _incomplete_row_error(changes, "carries no column to set")
    assigned = [(column, format_column(changes, _VALUES, column, rows)) for column in columns]
    assigned += [(column, formatted_operations(changes, write_json_function_calls, column, rows)) for column in partial]
    pieces: list[str | ColumnPiece] = []
    for column, value in assigned:
        start = ", " if pieces else f"UPDATE {quote_table(changes.table.name)} SET "
        pieces += [f"{start}{quote_name(column.name)}=", value]
    return [*pieces, *condition]


def write_delete(changes: TableChanges, columns: tuple[Column, ...], rows: NDArray[np.int64]) -> LinePattern:
    """Return the pieces of a DELETE of these rows."""
    return [f"DELETE FROM {quote_table(changes.table.name)}", *write_condition(changes, columns, rows)]


def _incomplete_row_error(changes: TableChanges, text: str) -> BinlogError:
    """Return the error for a row that lacks columns which the statement needs."""
    offset = int(changes.block.column("position")[changes.event[0]])
    return BinlogError(
        f"{changes.block.file}:{offset} the {changes.kind.value} in {changes.table.name} {text}, so there is no SQL for"
        " it: with binlog_row_image = MINIMAL or NOBLOB, or partial JSON, the log leaves out columns; name others with"
        " --columns or --without if these did, or leave the table or this place out"
    )


def _terminate(statement: str) -> str:
    """Return a statement with its delimiter; a body with semicolons of its own gets another one, which must not be in a
    comment at the end of the line.
    """
    if ";" not in statement:
        last = statement.rpartition("\n")[2]
        return f"{statement}\n;\n" if "--" in last or "#" in last else f"{statement};\n"
    mark = "$$"
    while mark in statement:
        mark += "$"
    return f"DELIMITER {mark}\n{statement}\n{mark}\nDELIMITER ;\n"
