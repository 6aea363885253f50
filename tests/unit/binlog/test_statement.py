"""Statements of a log, as text."""

from penstock.binlog.events.statement import find_statements
from tests.twins import event as ev
from tests.twins.feed import read
from tests.twins.log import LogWriter

_LATIN1 = b"\x04\x08\x00\x08\x00\x08\x00"  # of client, connection and server


def test_a_statement_is_read_in_the_charset_of_its_client() -> None:
    log = LogWriter().open()
    log.begin(is_standalone=True)
    log.add(ev.QUERY, ev.query("CREATE TABLE café (a INT)".encode("latin-1"), "shop", _LATIN1))
    ((statement,),) = [list(find_statements(block)) for block in read(log)]
    assert (statement.database, statement.text) == ("shop", "CREATE TABLE café (a INT)")
    assert str(statement.table) == "shop.café"
