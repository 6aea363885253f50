"""Make `vectors.json` again: the bytes that real servers log for the values of `forms`, beside the texts written there.

    python -m tests.conformance.make_vectors

A vector is a column of the log's table map and, for each value, its bytes in a row and its text. The bytes are MySQL
9's; those of the old temporal formats MariaDB's.
"""

import json
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from penstock.binlog.events.file import LogFile
from penstock.binlog.events.layout import Entry
from penstock.binlog.rows.decode import decode_rows
from penstock.binlog.values.column import wire_size_of
from penstock.testing import DatabaseServer
from tests.conformance.forms import FORMS, LOOSE, OLD_FORMS, Form, statements
from tests.services import SERVICES
from tests.support.capture import execute
from tests.support.json_support import new_file

VECTORS = Path(__file__).with_name("vectors.json")
_LONGEST = 4096  # characters of a value
_OLD = "SET GLOBAL mysql56_temporal_format = OFF"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-vectors-") as folder, ExitStack() as stack:
        Path(folder).chmod(0o755)
        vectors: list[dict[str, Any]] = []
        for name, forms, before in (("mysql9", FORMS, []), ("mariadb", OLD_FORMS, [_OLD])):
            server: Any = SERVICES[name].server(Path(folder) / name)  # type: ignore[attr-defined]
            server.start()
            stack.callback(server.kill)
            vectors += vectors_of(server, forms, before)
        VECTORS.write_text(
            "[\n" + ",\n".join(json.dumps(vector, ensure_ascii=False) for vector in vectors) + "\n]\n", encoding="utf-8"
        )


def vectors_of(server: DatabaseServer, forms: list[Form], before: list[str]) -> list[dict[str, Any]]:
    execute(server, *before, "CREATE DATABASE v")
    file = new_file(server)
    execute(server, LOOSE, *(line for form in forms for line in statements(form, f"v.{form.name}")))
    by_name = {form.name: iter(form.values) for form in forms}
    vectors: dict[str, dict[str, Any]] = {}
    for block in LogFile(file):
        events = np.flatnonzero(block.column("entry") == Entry.ROWS)
        for event in events.tolist():
            table = block.schema_of(int(block.column("table_id")[event]))
            form, column = table.name.table, table.columns[1]
            (rows,) = decode_rows(block, np.array([event]), table, ["c"])
            data, offsets = block.raw[0], rows.located.offsets(0)
            width = wire_size_of(column).width
            sizes = rows.located.lengths(0) if not width else np.full(offsets.size, width)
            # The last row of a form is NULL; a form may take several events.
            pairs = zip(offsets[offsets >= 0].tolist(), sizes.tolist(), by_name[form], strict=False)
            details = {key: value for key, value in asdict(column).items() if value not in (0, "", [], ())}
            vector = vectors.setdefault(form, {"form": form, "column": details, "values": []})
            raw = [(data[at : at + size].tobytes().hex(), text) for at, size, (_, text) in pairs]
            vector["values"] += [pair for pair in raw if len(pair[1]) < _LONGEST]
    return list(vectors.values())


if __name__ == "__main__":
    main()
