"""Prepared XA transactions are shown in the status of a server and in its metrics."""

from pathlib import Path

from penstock.cli.status_text import format_status
from penstock.testing import poll_until
from tests.support.admin_support import asked, parse_metrics, sample, served, settings_with, status_of
from tests.support.shop_log import written
from tests.twins.log import LogWriter
from tests.twins.xa import XaLog, xid_text


def test_prepared_transactions_are_in_the_status_and_the_metrics(tmp_path: Path) -> None:
    log = XaLog(LogWriter().open())
    log.plain()
    log.prepare("b", 3)
    log.prepare("a", 2)
    boundary = log.boundaries[-2]
    log.plain()
    folder = tmp_path / "logs"
    folder.mkdir()
    written(log.writer, folder)
    with served(settings_with(folder)) as server:

        def is_counted() -> bool:
            (instance,) = status_of(server)["instances"]
            return bool(instance["prepared"]) and [
                transaction["rows"] for transaction in instance["prepared"]["transactions"]
            ] == [3, 2]

        assert poll_until(is_counted, 30)
        status = status_of(server)
        prepared = status["instances"][0]["prepared"]
        assert (prepared["count"], prepared["since"]) == (2, 1_700_000_000)
        assert [transaction["xid"] for transaction in prepared["transactions"]] == [xid_text("b"), xid_text("a")]
        line = format_status(status).splitlines()[-1]
        assert line.startswith("shop: 2 XA transactions are prepared, the oldest for ")
        assert line.endswith(f" d: {xid_text('b')} with 3 rows, at {boundary[0]}:{boundary[1]}")
        samples = parse_metrics(asked(server, "/metrics")[1])
        assert sample(samples, "penstock_instance_prepared_transactions", destination="shop") == 2
        assert sample(samples, "penstock_instance_prepared_oldest_seconds", destination="shop") > 86_400
