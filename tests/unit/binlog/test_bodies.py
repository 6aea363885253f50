"""Events around the rows, as real servers wrote them; `mysqlbinlog` and SELECT @@gtid_executed said the same."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.binlog.events.bodies import GtidsBody, QueryBody, StatementVariable, TextBody, parse_body
from penstock.errors import BinlogError
from tests.twins import event as ev
from tests.twins.strategy import examples

MYSQL_STATUS = "0000000000012000a04500000000060373746404ff00ff00ff0005062b30323a30300c0164000df1a60812ff001500"
MARIADB_STATUS = "0000000001010000205400000000060373746404" + "2d002d000800" + "05062b30323a303080800b06"
SOURCE = "6fc60d7ee0fa11f1bb2902fc00000001"


def statement(status: str, text: bytes = b"SELECT 1") -> QueryBody:
    body = parse_body(2, ev.query(text, "d", bytes.fromhex(status)))
    assert isinstance(body, QueryBody)
    return body


def test_a_statement_of_mysql() -> None:
    body = statement(MYSQL_STATUS)
    assert (body.database, body.text, body.thread) == ("d", "SELECT 1", 7)
    assert (body.sql_mode, body.charset, body.collation) == (0x45A00020, "utf8mb4", 255)
    assert (body.time_zone, body.microseconds, body.databases) == ("+02:00", 567_025, ("d",))


def test_a_statement_of_mariadb() -> None:
    body = statement(MARIADB_STATUS)
    assert (body.sql_mode, body.charset, body.collation) == (0x54200000, "utf8mb4", 45)
    assert (body.time_zone, body.microseconds) == ("+02:00", 396_160)


def test_a_statement_is_in_the_charset_of_its_client() -> None:
    assert statement("04080008000800", "größer".encode("latin-1")).text == "größer"
    assert statement("041c001c001c00", "漢".encode("gbk")).text == "漢"


@pytest.mark.parametrize(
    ("status", "name", "value"),
    [
        ("030a000300", "auto_increment", (10, 3)),
        ("082100", "database_collation", 33),
        ("0b04726f6f74096c6f63616c686f7374", "invoker", "root@localhost"),
        ("0c0261006200", "databases", ("a", "b")),
        ("0cfe", "databases", ()),
        ("0203737464000d010000", "microseconds", 1),
        ("f00d010000", "microseconds", None),  # after one that is not known nothing is
    ],
)
def test_status_variables(status: str, name: str, value: Any) -> None:
    assert getattr(statement(status), name) == value


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (5, "020100000000000000", StatementVariable("INSERT_ID", 1)),
        (5, "010300000000000000", StatementVariable("LAST_INSERT_ID", 3)),
        (13, "dd26c52500000000ca8adf0900000000", StatementVariable("RAND", "633677533, 165645002")),
        (14, "01000000760000ff00000002000000c3a9", StatementVariable("v", "é")),
        (14, "01000000770004ff0000000400000002018105", StatementVariable("w", "1.5")),
        (14, "01000000780002ff00000008000000ffffffffffffffff01", StatementVariable("x", 2**64 - 1)),
        (14, "01000000780002ff00000008000000ffffffffffffffff00", StatementVariable("x", -1)),
        (14, "01000000640001ff00000008000000000000000000f83f", StatementVariable("d", 1.5)),
        (14, "010000006e01", StatementVariable("n", None)),
        (29, "00494e53", TextBody("INS")),
        (160, "494e53", TextBody("INS")),
        (161, "0d00000062696e6c6f672e303030303031", TextBody("binlog.000001")),
        (4, "040000000000000062696e6c6f672e303030303032", TextBody("binlog.000002")),
        (26, "01000661206c6f7373", TextBody("1 a loss")),
        (
            163,
            "02000000070000000100000001000000000000000000000001000000" + "0200000000000000",
            GtidsBody("7-1-1,0-1-2"),
        ),
        (35, "0000000000000000", GtidsBody("")),
        (16, "0100000000000000", None),
        (250, "", None),
    ],
)
def test_other_events(kind: int, body: str, expected: Any) -> None:
    assert parse_body(kind, bytes.fromhex(body)) == expected


def test_previous_gtids_with_and_without_tags() -> None:
    ranges = "0100000000000000" + "0100000000000000" + "0300000000000000"
    single = "0100000000000000" + "0100000000000000" + "0200000000000000"
    name = "6fc60d7e-e0fa-11f1-bb29-02fc00000001"
    plain = "0100000000000000" + SOURCE + ranges
    assert parse_body(35, bytes.fromhex(plain)) == GtidsBody(f"{name}:1-2")
    tagged = "0103000000000001" + SOURCE + "00" + ranges + SOURCE + "08626c7565" + ranges
    tagged += SOURCE + "0e7265645f746167" + single
    assert parse_body(35, bytes.fromhex(tagged)) == GtidsBody(f"{name}:1-2,{name}:blue:1-2,{name}:red_tag:1")


@examples(200)
@given(st.sampled_from((2, 4, 5, 13, 14, 26, 29, 35, 160, 161, 163)), st.binary(max_size=80))
def test_garbage_is_refused_or_read(kind: int, body: bytes) -> None:
    with suppress(BinlogError):
        parse_body(kind, body)
