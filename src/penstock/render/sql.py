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
from penstock.render.frame import Frame, heading, placed
from penstock.render.page import LineContext, LineFormat, Page, Role, operations, values
from penstock.render.sql_text import (
    PREAMBLE,
    SQL_MODE,
    SqlMatches,
    SqlValues,
    call_sql_functions,
    name_text,
    table_text,
)
from penstock.render.weave import Chosen, Line, Written, weave

_VALUES, _MATCHES = SqlValues(), SqlMatches()
_ENDS = {Role.COMMIT: "COMMIT;\n", Role.ROLLBACK: "ROLLBACK;\n"}
_CHECKS = {Options.NO_FOREIGN_KEY_CHECKS: "FOREIGN_KEY_CHECKS", Options.RELAXED_UNIQUE_CHECKS: "UNIQUE_CHECKS"}
_COMMENT = text.Escapes.of({"\n": "\n-- ", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z"})


class SqlLines(LineFormat):
    finds_rows = True

    def __init__(self, xa: XaTransactions) -> None:
        super().__init__(xa)
        self._database = ""

    def begin(self) -> str:
        return PREAMBLE

    def end(self, last: LineContext) -> str:
        if not last.is_open():
            return ""
        xid = self.xa.xids.get(last.transaction)
        restored = _switched(Options(last.options), Options(0))
        return restored + ("COMMIT;\n" if xid is None else _xa_end(Role.PREPARE, xid))

    def changes(self, changes: TableChanges) -> Line:
        if self.comments_nameless and is_nameless(changes.table):
            return ["-- no names of columns: ", *self._statement(changes)]
        check_names(changes.table)
        return self._statement(changes)

    def _statement(self, changes: TableChanges) -> Line:
        match changes.kind:
            case RowChangeKind.INSERT:
                return insert(changes, changes.shown_of(changes.after), changes.last)
            case RowChangeKind.DELETE:
                return delete(changes, changes.before, changes.first)
            case RowChangeKind.UPDATE:
                row = where(changes, changes.before, changes.first)
                columns = changes.shown_of(changes.after)
                return update(changes, columns, changes.last, row, changes.shown_of(changes.partial))

    def statement(self, block: Block, statement: StatementEvent) -> str:
        lines: list[str] = []
        if not statement.is_in_transaction:
            lines.append(f"-- {heading(block, np.array([statement.event]))[0].as_py()}\n")
        if statement.is_masked:  # it would set another password, or fail
            return "".join([*lines, _commented(statement.text), "-- with --passwords it is a statement\n"])
        if statement.is_load:
            return "".join([*lines, _commented(statement.text), "-- the file that it loads is not in this output\n"])
        if statement.needs_database and statement.database and statement.database != self._database:
            self._database = statement.database
            lines.append(f"USE {name_text(statement.database)};\n")
        if statement.drops_database:
            self._database = ""
        before, after = [f"TIMESTAMP={block.column('timestamp')[statement.event]}"], ["TIMESTAMP=DEFAULT"]
        if statement.sql_mode is not None:
            before.append(f"SQL_MODE={statement.sql_mode}")
            after.append(SQL_MODE)
        plain = statement.create_table_without_rows
        lines += [
            f"SET {', '.join(before)};\n",
            _switched(Options(0), statement.options),
            _delimited(statement.text if plain is None else plain),
            _switched(statement.options, Options(0)),
            f"SET {', '.join(after)};\n",
            # The statement has committed what it stands in; its rows belong together.
            "" if plain is None else "BEGIN;\n",
        ]
        return "".join(lines)

    def outcome(self, block: Block, event: int, outcome: XaOutcome) -> str:
        head = heading(block, np.array([event]))[0].as_py()
        if outcome.prepared is None:
            return f"-- {head}\n-- {outcome.sql}: prepared before this part of the log\n"
        return f"-- {head}\n{outcome.sql};\n"

    def incident(self, block: Block, incident: Incident) -> str:  # noqa: ARG002 - it says where it is
        return f"-- {incident}\n"

    def notes(self, block: Block, events: NDArray[np.int64], texts: pa.Array) -> Line:  # noqa: ARG002 - only the text
        return [Written(text.escaped(texts, _COMMENT), before="-- ", after="\n").at(np.arange(events.size))]

    def frame(self, page: Page, before: LineContext) -> tuple[Line, Line]:
        frame = Frame.of(page, before)
        titles = Written(heading(page.block, page.event[frame.starts]), before="-- ", after="\n")
        count = len(titles.texts)
        heads = weave((titles.at(np.arange(count)), self._begins(page, frame)), count)
        return (placed(heads, frame.starts), *_switches(page, before)), (_ends(page, frame),)

    def context_after(self, page: Page, line: int) -> LineContext:
        return replace(super().context_after(page, line), options=int(_options(page.part(line, line + 1))[0]))

    def _begins(self, page: Page, frame: Frame) -> Chosen | str:
        if not self.xa.xids:
            return "BEGIN;\n"
        xids = [self.xa.xids.get(begin) for begin in page.transaction[frame.starts].tolist()]
        begins = text.of_list(["BEGIN;\n" if xid is None else f"XA START {xid};\n" for xid in xids])
        return Written(begins).at(np.arange(len(begins)))


def _options(page: Page) -> NDArray[np.int64]:
    """Return what of the session's options each line needs: only rows need other ones than it has by itself."""
    return np.where(page.role == Role.CHANGE, options_of_rows(page.block)[page.event], 0)


def _switches(page: Page, before: LineContext) -> Line:
    """Switch off the checks that rows were written without, and all of them on again for what is no row."""
    options = _options(page)
    last = np.concatenate([[before.options], options[:-1]])
    if not (options.any() or last.any()):
        return ()
    pairs, which = np.unique(np.stack([last, options]), axis=1, return_inverse=True)
    texts = [_switched(Options(old), Options(new)) for old, new in pairs.T.tolist()]
    return (Written(text.of_list(texts)).at(which.reshape(-1)),)


def _commented(statement: str) -> str:
    return "".join(f"-- {line}\n" for line in statement.splitlines())


def _ends(page: Page, frame: Frame) -> Chosen:
    texts = ["", _ENDS[Role.COMMIT]]
    which = frame.ends.astype(np.int64)
    for i, role, xid in frame.unusual_ends(page):
        which[i] = len(texts)
        texts.append(_xa_end(role, xid) if xid else _ENDS[role])
    return Written(text.of_list(texts)).at(which)


def _xa_end(role: Role, xid: str) -> str:
    last = f"XA COMMIT {xid} ONE PHASE" if role is Role.ONE_PHASE else f"XA PREPARE {xid}"
    return f"XA END {xid};\n{last};\n"


def _switched(old: Options, new: Options) -> str:
    """From the options of the session to others; what the session had of its own is kept aside."""
    found: list[str] = []
    for option, name in _CHECKS.items():
        if option & ~old & new:
            found.append(f"@OLD_{name}=@@{name}, {name}=0")
        elif option & old & ~new:
            found.append(f"{name}=@OLD_{name}")
    return f"SET {', '.join(found)};\n" if found else ""


def check_names(table: TableSchema) -> None:
    if is_nameless(table):
        raise SchemaError(
            f"the log has no column names for table {table.name}, nor DDL before its rows that tells them, so there is"
            " no SQL for them: add --host … to look them up on a server that has the table (for later logs: SET GLOBAL"
            " binlog_row_metadata = 'FULL')"
        )


def where(changes: TableChanges, columns: tuple[Column, ...], rows: NDArray[np.int64]) -> list[str | Chosen]:
    """A condition that finds one row: by its key, or by all that is known of it."""
    if not columns:
        raise _incomplete(changes, "carries no column to find its row by")
    key = changes.key_of(columns)
    pieces: list[str | Chosen] = []
    for column in key or columns:
        left = name_text(column.name) if key else _MATCHES.left_side(column, changes.images.columns[column.name])
        pieces.append(f"{' AND ' if pieces else ' WHERE '}{left}{'=' if key else ' <=> '}")
        pieces.append(values(changes, _MATCHES, column, rows))
    return [*pieces, ";\n" if key else " LIMIT 1;\n"]


def insert(changes: TableChanges, columns: Sequence[Column], rows: NDArray[np.int64]) -> Line:
    names = ", ".join(name_text(column.name) for column in columns)
    pieces: list[str | Chosen] = [f"INSERT INTO {table_text(changes.table.name)} ({names}) VALUES ("]
    for i, column in enumerate(columns):
        pieces += [", ", values(changes, _VALUES, column, rows)] if i else [values(changes, _VALUES, column, rows)]
    return [*pieces, ");\n"]


def update(
    changes: TableChanges,
    columns: Sequence[Column],
    rows: NDArray[np.int64],
    condition: Line,
    partial: Sequence[Column] = (),
) -> Line:
    """All columns are set: one that keeps its value may be of a kind that updates itself. Of those that are `partial`
    only parts are."""
    if not columns and not partial:
        raise _incomplete(changes, "carries no column to set")
    assigned = [(column, values(changes, _VALUES, column, rows)) for column in columns]
    assigned += [(column, operations(changes, call_sql_functions, column, rows)) for column in partial]
    pieces: list[str | Chosen] = []
    for column, value in assigned:
        start = ", " if pieces else f"UPDATE {table_text(changes.table.name)} SET "
        pieces += [f"{start}{name_text(column.name)}=", value]
    return [*pieces, *condition]


def delete(changes: TableChanges, columns: tuple[Column, ...], rows: NDArray[np.int64]) -> Line:
    return [f"DELETE FROM {table_text(changes.table.name)}", *where(changes, columns, rows)]


def _incomplete(changes: TableChanges, what: str) -> BinlogError:
    place = int(changes.block.column("position")[changes.event[0]])
    return BinlogError(
        f"{changes.block.file}:{place} the {changes.kind.value} in {changes.table.name} {what}, so there is no SQL for"
        " it: with binlog_row_image = MINIMAL or NOBLOB, or partial JSON, the log leaves out columns; name others with"
        " --columns or --without if these did, or leave the table or this place out"
    )


def _delimited(statement: str) -> str:
    """A body with semicolons of its own, such as a trigger's, needs another delimiter in the command line client; and
    none counts in a comment that goes to the end of the line."""
    if ";" not in statement:
        last = statement.rpartition("\n")[2]
        return f"{statement}\n;\n" if "--" in last or "#" in last else f"{statement};\n"
    mark = "$$"
    while mark in statement:
        mark += "$"
    return f"DELIMITER {mark}\n{statement}\n{mark}\nDELIMITER ;\n"
