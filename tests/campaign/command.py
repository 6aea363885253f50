"""What users do with a log file: `penstock binlog` in all its forms, here without a process of its own."""

import io
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import typer

from penstock.cli.binlog import binlog

_FORMATS = ("json", "sql", "csv", "text", "arrow", "parquet")
_IN_FOLDERS = {"csv", "arrow", "parquet"}  # a file per table
COMMANDS = (*_FORMATS, "flashback", "stats", "verify")


def run_command(name: str, log: Path, *, verify: bool) -> None:
    """Errors of ours come out."""
    target = log.with_name("output")
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    try:
        with redirect_stdout(said), redirect_stderr(said):
            binlog(
                files=[log],
                to=None if name == "verify" else target,
                output=name if name in _FORMATS else None,
                flashback=name == "flashback",
                stats=name == "stats",
                verify=name == "verify",
                no_verify=not verify and name != "verify",
            )
    except typer.Exit:
        pass
    finally:
        if name in _IN_FOLDERS:
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)
