"""XA transactions and notes in a log that the twins write, and the log in any cut as lines."""

import struct
from collections.abc import Sequence
from typing import Any

from penstock.binlog.events.annotation import AnnotationPicker
from penstock.binlog.rows.table_changes import ColumnChoice, decode_table_changes
from penstock.inspect.selection import EventSelection, compile_table_patterns
from penstock.inspect.shapes import SchemaLookup
from penstock.render.json_lines import JsonLineFormat
from penstock.render.page import LineContext, compose_page, find_lines_between
from penstock.render.sql import SqlFormat
from penstock.render.terminal import TerminalFormat
from tests.support.shop_log import NOTE, PRODUCT
from tests.twins import event as ev
from tests.twins.feed import read
from tests.twins.log import LogWriter
from tests.twins.row import INSERT

_PREPARED_XA = 0x40


def xid_text(name: bytes) -> str:
    return f"X'{name.hex()}',X'',1"


def xa_rows(log: LogWriter, name: bytes, images: Sequence[Sequence[Any]], *, is_one_phase: bool = False) -> None:
    """Rows of shop.product, prepared."""
    log.begin(is_standalone=True)
    if log.is_mariadb:
        # The GTID that was just written, again with the id.
        size = 19 + 19 + 4
        number = bytes(log.data[-size + 19 : -size + 27])
        del log.data[-size:]
        log.position -= size
        body = number + struct.pack("<IB", 5, _PREPARED_XA) + struct.pack("<IBB", 1, len(name), 0) + name
        log.add(ev.MARIADB_GTID, body)
    else:
        log.add(ev.QUERY, ev.query(f"XA START {xid_text(name)}".encode()))
    log.map(7, PRODUCT)
    log.rows(INSERT, 7, PRODUCT, images)
    log.add(ev.QUERY, ev.query(f"XA END {xid_text(name)}".encode()))
    log.add(ev.XA_PREPARE, struct.pack("<BIII", is_one_phase, 1, len(name), 0) + name)


def xa_outcome(log: LogWriter, word: str, name: bytes) -> None:
    log.statement(f"XA {word} {xid_text(name)}")


def note(log: LogWriter, statement: bytes) -> None:
    """The statement behind the rows that follow."""
    if log.is_mariadb:
        log.add(ev.MARIADB_ANNOTATE, statement)
    else:
        log.add(29, bytes([len(statement) & 0xFF]) + statement)


def note_rows(log: LogWriter, text: str) -> None:
    log.map(8, NOTE)
    log.rows(INSERT, 8, NOTE, [[text, None]])


def lines(log: LogWriter, kind: str, sizes: Sequence[int] = (), tables: tuple[str, ...] = ()) -> str:
    """As the command writes it, with the log in pieces of these sizes, each a block or more."""
    selection = EventSelection(compile_table_patterns(tables), notes=AnnotationPicker())
    line_format = {
        "sql": SqlFormat(selection.xa),
        "json": JsonLineFormat(selection.xa),
        "table": TerminalFormat(selection.xa, colours=False),
    }[kind]
    text, last = line_format.write_begin(), LineContext()
    for block in read(log, sizes):
        part = selection.pick_events(block)
        if len(part):
            line_format = line_format.for_block(selection.xa)
            between = find_lines_between(part, line_format)
            page = compose_page(part, decode_table_changes(part, ColumnChoice(), SchemaLookup()), between, line_format)
            text += b"".join(page.framed_pieces(line_format, last)).decode()
            last = line_format.context_after(page.page, len(page.page) - 1)
    return text + line_format.write_end(last)
