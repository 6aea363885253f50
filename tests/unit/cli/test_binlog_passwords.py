"""`penstock binlog` shows statements about accounts, and their passwords only to who asks for them."""

import json
from pathlib import Path

import pytest

from tests.support.shop_log import shown, written
from tests.twins import event as ev
from tests.twins.log import LogWriter

TEXT = "CREATE USER 'u'@'h' IDENTIFIED BY 'geheim'"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    log = LogWriter().open()
    log.begin(is_standalone=True)
    log.add(ev.QUERY, ev.query(TEXT.encode()))
    return written(log, tmp_path)


@pytest.mark.parametrize("kind", ["json", "sql", "text"])
def test_passwords_are_masked_unless_asked_for(log: Path, kind: str) -> None:
    plain, asked = shown(log, "--output", kind), shown(log, "--output", kind, "--passwords")
    assert "geheim" not in plain
    assert "IDENTIFIED BY '***'" in plain
    assert TEXT in asked


def test_what_is_masked_is_a_comment_of_sql(log: Path) -> None:
    lines = shown(log, "--output", "sql").splitlines()
    assert all(line.startswith("--") for line in lines if "USER" in line)
    assert "-- with --passwords it is a statement" in lines
    assert json.loads(shown(log, "--output", "json"))["sql"] == TEXT.replace("geheim", "***")
