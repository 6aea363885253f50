"""Every decimal, time, float and JSON form on every server: `penstock binlog` prints the text that is written down for
it, and so does the server."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.testing import DatabaseServer
from tests.conformance.forms import LOOSE, SERVERS, Form, forms_of, statements
from tests.support.capture import execute
from tests.support.json_support import new_file

NewDatabase = Callable[[DatabaseServer], str]


@pytest.mark.parametrize("name", SERVERS)
def test_values_have_their_texts(
    name: str, request: pytest.FixtureRequest, database: NewDatabase, tmp_path: Path
) -> None:
    server: DatabaseServer = request.getfixturevalue(name)
    schema, forms = database(server), forms_of(name)
    file = new_file(server)
    execute(server, LOOSE, *(line for form in forms for line in statements(form, f"{schema}.{form.name}")))
    live = ["--host", server.host, "--port", str(server.port)] if name == "mysql57" else []
    result = CliRunner().invoke(
        app,
        ["binlog", str(file), "--table", rf"{schema}\..*", "--output", "csv", "--to", str(tmp_path), *live],
        env={"PENSTOCK_PASSWORD": server.password},
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.stderr
    wrong: list[str] = []
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(LOOSE)
        for form in forms:
            text = (tmp_path / f"{schema}.{form.name}.csv").read_text(encoding="utf-8")
            texts = [row["c"] for row in csv.DictReader(io.StringIO(text, newline=""))]
            wrong += differences(form, name, texts, "penstock")
            shown = "c * 1e0" if form.is_real else "c + 0" if form.name == "year" else "CAST(c AS CHAR)"
            cursor.execute(f"SELECT {shown} FROM {schema}.{form.name} ORDER BY id")
            wrong += differences(form, name, [row[0] for row in cursor.fetchall()], "the server")
    assert not wrong, "\n".join(wrong[:40])


def differences(form: Form, server: str, values: list[Any], who: str) -> list[str]:
    expected = [text for _, text in form.values]
    if len(values) != len(expected) + 1 or values[-1] not in {"", None}:
        return [f"{form.name}: {who} shows {len(values)} values, the last {values[-1:]}"]
    return [
        f"{form.declared}: {who} shows {value!r}, expected {text!r}"
        for value, text in zip(values, expected, strict=False)
        if not is_same(form, server, str(value), text)
    ]


def is_same(form: Form, server: str, text: str, expected: str) -> bool:
    if not form.is_real:
        return text == expected
    if server.startswith("mariadb") and float(expected) == 0:
        expected = "0"  # MariaDB takes -0e0 for 0
    kind = np.float32 if form.name == "float" else np.float64  # the fewest digits that are the same float will do
    return kind(float(text)).tobytes() == kind(float(expected)).tobytes()
