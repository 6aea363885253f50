"""Seconds until a new process can work: imports alone, and up to the first decoded batch; one process for each."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._orders_log import ORDERS, repeated, sample
from benchmarks._report import print_figures, print_table
from benchmarks._scale import scaled

ROUNDS = scaled(3, 1)
_KERNELS = "import penstock.binlog.rows.changes, penstock.binlog.events.reader"
_FIRST_BATCH = f"""
{_KERNELS}
import pathlib, numpy, pyarrow
from penstock.binlog.rows.fields import arrow_fields_of_table
from penstock.model import Position, TableName
data = numpy.frombuffer(pathlib.Path(LOG).read_bytes(), numpy.uint8)
reader = penstock.binlog.events.reader.BlockReader(Position("binlog.000001", 4))
reader.room(data.size)[:data.size] = data
reader.advance(data.size)
block = next(reader.blocks(flush=True))
table = block.schema_of(next(iter(block.tables)))
batch = next(penstock.binlog.rows.changes.decode_changes(block, table.name, arrow_fields_of_table(table)))
assert batch.num_rows and table.name == TableName({ORDERS.name.schema!r}, {ORDERS.name.table!r})
"""

LABELS = {
    "pyarrow": "import pyarrow (limit)",
    "numba": "import numba, as for compiling",
    "penstock": "import penstock",
    "cli": "import penstock.cli, as for --help",
    "kernels": "import of all that decodes",
    "first_batch": "… and up to the first decoded batch",
}


def run(code: str, **names: str) -> float:
    """Seconds that `code` took inside a new interpreter, its start left out."""
    given = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    timed = f"import time\nbegan = time.perf_counter()\n{given}{code}\nprint(time.perf_counter() - began)"
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", timed], capture_output=True, text=True, check=True, env=os.environ
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    works = {
        "pyarrow": "import pyarrow",
        "numba": "import numba",
        "penstock": "import penstock",
        "cli": "import penstock.cli",
        "kernels": _KERNELS,
        "first_batch": _FIRST_BATCH,
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "binlog.000001"
        log.write_bytes(repeated(sample(), 1)[0].tobytes())
        run(_FIRST_BATCH, LOG=str(log))  # fills numba's cache
        took = {name: min(run(code, LOG=str(log)) for _ in range(ROUNDS)) for name, code in works.items()}
    print_table(
        f"startup: seconds in a new process, best of {ROUNDS}",
        ["what", "seconds"],
        [[LABELS[name], f"{seconds:.3f}"] for name, seconds in took.items()],
    )
    print_figures("startup", {"seconds": {name: round(seconds, 4) for name, seconds in took.items()}})


if __name__ == "__main__":
    main()
