"""What `penstock binlog` was asked for, and whether that makes sense."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.config import SourceSettings

LINES = ("text", "json", "sql")
INCIDENT_CODE = 3  # the exit code when all was shown, and the log itself says that something may be missing from it
FILES = ("csv", "arrow", "parquet")
_ALLOWED = {"show": (*LINES, *FILES), "stats": ("text", "json"), "flashback": ("sql",), "verify": ("text", "json")}


@dataclass(frozen=True, slots=True)
class BinlogRequest:
    """The options of `penstock binlog`, as they were typed."""

    files: tuple[Path, ...]
    server: "SourceSettings | None"
    since: str | None
    until: str | None
    follow: bool
    tables: tuple[str, ...]
    columns: tuple[str, ...]
    without: tuple[str, ...]
    limit: int | None
    format: str | None
    target: Path | None
    mode: Literal["show", "stats", "flashback", "verify"]
    has_checks: bool
    statements: bool = False
    passwords: bool = False

    @property
    def is_terminal(self) -> bool:
        """Tell whether the output goes to a terminal."""
        return self.target is None and sys.stdout.isatty()


def choose_format(request: BinlogRequest) -> str:
    """Return the format to write; raise ConfigurationError when the options do not go together."""
    default = {
        "show": "text" if request.is_terminal else "json",
        "stats": "text",
        "flashback": "sql",
        "verify": "text",
    }
    chosen = request.format or default[request.mode]
    option = f"--{request.mode} " if request.mode != "show" else ""
    if request.format and chosen not in _ALLOWED[request.mode]:
        known = ", ".join(_ALLOWED[request.mode])
        remedy = "" if chosen in _ALLOWED["show"] else f"; a file to write is named with --to {chosen}"
        remedy = "; it is called text" if chosen == "table" else remedy
        raise ConfigurationError(f"{option}--output {chosen} is not a format: it takes {known}{remedy}")
    if chosen in {"arrow", "parquet"} and request.is_terminal:
        raise ConfigurationError(f"{chosen} is not for a terminal: give a file with --to, or a pipe")
    if request.mode == "flashback" and request.columns:
        raise ConfigurationError(
            "--flashback puts back whole rows: --columns would lose the others; leave out what cannot be set,"
            " such as generated columns, with --without"
        )
    if request.follow and (request.mode != "show" or request.files):
        raise ConfigurationError("--follow goes with --host and rows only")
    if request.mode == "verify" and not request.files:
        raise ConfigurationError("--verify reads files: name them")
    if useless := _ignored_options(request, chosen):
        where = option or f"--output {chosen} "
        raise ConfigurationError(f"{where}takes no {', '.join(useless)}: leave that out")
    _check_files(request)
    return chosen


def _ignored_options(request: BinlogRequest, chosen: str) -> list[str]:
    """Return the options that would have no effect with this format."""
    of_rows = {"--columns": request.columns, "--without": request.without, "--limit": request.limit is not None}
    of_log = {
        "--host": request.server is not None,
        "--since": request.since is not None,
        "--until": request.until is not None,
        "--table": request.tables,
        "--to": request.target is not None,
        "--no-verify": not request.has_checks,
    }
    ignored: dict[str, object] = {}
    if request.mode == "verify":
        ignored |= of_log
    if request.mode in {"verify", "stats"}:
        ignored |= of_rows
    if request.mode != "show" or chosen in FILES:
        ignored |= {"--statements": request.statements, "--passwords": request.passwords}
    return [name for name, is_given in ignored.items() if is_given]


def _check_files(request: BinlogRequest) -> None:
    """Raise if the file to write is one of the logs, or the standard input is named twice."""
    target = request.target
    if sum(str(path) == "-" for path in request.files) > 1:
        raise ConfigurationError("- is the standard input, which can be read once: name it once")
    if target is None:
        return
    for path in request.files:
        if path.exists() and target.exists() and path.samefile(target):
            raise ConfigurationError(f"--to {target} is one of the logs to read: it would be overwritten")
    if target.is_dir() and request.format not in FILES:
        raise ConfigurationError(f"--to {target} is a folder: only csv, arrow and parquet write into one")
