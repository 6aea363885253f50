"""What `penstock binlog` was asked for, and whether that makes sense."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.errors import ConfigurationError

if TYPE_CHECKING:
    from penstock.config import SourceSettings

LINES = ("table", "json", "sql")
INCIDENT_CODE = 3  # the exit code when all was shown, and the log itself says that something may be missing from it
FILES = ("csv", "arrow", "parquet")
_ALLOWED = {"show": (*LINES, *FILES), "stats": ("table", "json"), "flashback": ("sql",), "verify": ()}


@dataclass(frozen=True, slots=True)
class Request:
    """The options, as they were typed."""

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
    output: Path | None
    mode: Literal["show", "stats", "flashback", "verify"]
    has_checks: bool
    statements: bool = False
    passwords: bool = False

    @property
    def is_terminal(self) -> bool:
        return self.output is None and sys.stdout.isatty()


def checked_format(request: Request) -> str:
    """The format, once all options are known to go together."""
    default = {"show": "table" if request.is_terminal else "json", "stats": "table", "flashback": "sql", "verify": ""}
    chosen = request.format or default[request.mode]
    what = f"--{request.mode} " if request.mode != "show" else ""
    if request.format and chosen not in _ALLOWED[request.mode]:
        known = ", ".join(_ALLOWED[request.mode]) or "no --format"
        raise ConfigurationError(f"{what}--format {chosen} is not known: it takes {known}")
    if chosen in {"arrow", "parquet"} and request.is_terminal:
        raise ConfigurationError(f"{chosen} is not for a terminal: give a file with --output, or a pipe")
    if request.mode == "flashback" and request.columns:
        raise ConfigurationError(
            "--flashback puts back whole rows: --columns would lose the others; leave out what cannot be set,"
            " such as generated columns, with --without"
        )
    if request.follow and (request.mode != "show" or request.files):
        raise ConfigurationError("--follow goes with --host and rows only")
    if request.mode == "verify" and not request.files:
        raise ConfigurationError("--verify reads files: name them")
    if useless := _without_effect(request, chosen):
        where = what or f"--format {chosen} "
        raise ConfigurationError(f"{where}takes no {', '.join(useless)}: leave that out")
    _check_places(request)
    return chosen


def _without_effect(request: Request, chosen: str) -> list[str]:
    """Options that would be ignored."""
    of_rows = {"--columns": request.columns, "--without": request.without, "--limit": request.limit is not None}
    of_place = {
        "--host": request.server is not None,
        "--since": request.since is not None,
        "--until": request.until is not None,
        "--table": request.tables,
        "--output": request.output is not None,
        "--no-verify": not request.has_checks,
    }
    ignored: dict[str, object] = {}
    if request.mode == "verify":
        ignored |= of_place
    if request.mode in {"verify", "stats"}:
        ignored |= of_rows
    if request.mode != "show" or chosen in FILES:
        ignored |= {"--statements": request.statements, "--passwords": request.passwords}
    return [name for name, is_given in ignored.items() if is_given]


def _check_places(request: Request) -> None:
    """The output must not be one of the logs, and the input can be read only once."""
    output = request.output
    if sum(str(path) == "-" for path in request.files) > 1:
        raise ConfigurationError("- is the standard input, which can be read once: name it once")
    if output is None:
        return
    for path in request.files:
        if path.exists() and output.exists() and path.samefile(output):
            raise ConfigurationError(f"--output {output} is one of the logs to read: it would be overwritten")
    if output.is_dir() and request.format not in FILES:
        raise ConfigurationError(f"--output {output} is a folder: only csv, arrow and parquet write into one")
