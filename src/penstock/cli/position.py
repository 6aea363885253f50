"""penstock position"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.instance_options import load_instance
from penstock.cli.output import Output, OutputFormat, format_size, table_lines
from penstock.config import InstanceSettings, SourceSettings
from penstock.errors import ConfigurationError, PenstockError

if TYPE_CHECKING:
    from penstock.instance.cursors import LogExtent
    from penstock.meta import ClientRecord, Cursor

app = typer.Typer(
    help="Look at the cursors of clients, and move them by hand.", no_args_is_help=True, rich_markup_mode="markdown"
)

Config = Annotated[
    Path, typer.Argument(help="The conf folder or YAML that `penstock serve` runs with.", show_default=False)
]
Client = Annotated[int, typer.Argument(min=0, max=2**31 - 1, help="The client's id.", show_default=False)]
Destination = Annotated[str | None, typer.Option(help="The instance, if there are several.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Url = Annotated[
    str | None,
    typer.Option(
        envvar="PENSTOCK_ADMIN_URL",
        help="The admin port of the server, while it runs; by default as the configuration says.",
        show_default=False,
    ),
]
Token = Annotated[
    str | None, typer.Option(envvar="PENSTOCK_ADMIN_TOKEN", help="Its token, if it has one.", show_default=False)
]


@app.command()
def show(config: Config, destination: Destination = None, output: OutputFormat = "text") -> None:
    """Show where each client is, and how far behind the source.

    Examples:

        penstock position show penstock.yml

        penstock position show penstock.yml --destination shop --output json
    """
    from penstock.instance.cursors import read_client_records  # noqa: PLC0415 - numba takes a second to load

    settings = load_instance(config, destination)
    records = read_client_records(settings)
    extent, problem = _find_extent(settings)
    clients = [_describe_client(record, extent) for record in records]
    Output(output).print_result(clients, lambda: _client_lines(settings, records, extent, problem))


@app.command("set")
def set_(
    config: Config,
    client: Client,
    position: Annotated[
        str,
        typer.Argument(
            help="`earliest`, `latest`, FILE:OFFSET, `gtid:…` or a time in UTC (time:-10m, '2026-11-15 10:00').",
            show_default=False,
        ),
    ],
    destination: Destination = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    token: Token = None,
    output: OutputFormat = "text",
) -> None:
    """Let a client resume at another position. A server that runs does it itself, at its admin port.

    The position must be between two transactions of the source's log; a time is the first transaction committed then or
    later, a GTID is after that transaction.

    Examples:

        penstock position set penstock.yml 1001 binlog.000007:4 --dry-run

        penstock position set penstock.yml 1001 -- -2h

        penstock position set penstock.yml 1001 0-1-4711 --yes
    """
    from penstock.cli.running_server import find_running_server  # noqa: PLC0415
    from penstock.instance.cursors import find_position, make_cursor, open_for_change, read_client_records  # noqa: PLC0415

    settings, printer = load_instance(config, destination), Output(output)
    record = _find_record(read_client_records(settings), client)
    after = make_cursor(settings, find_position(settings, position, datetime.now(UTC)))
    if record is None:
        printer.print_note(f"client {client} has not subscribed to '{settings.destination}' yet; it will begin there")
    server = find_running_server(settings, config, url, token)
    before = record.cursor if record else None
    if server is not None and client in server.cursors:
        before = make_cursor(settings, server.cursors[client])  # what is persisted may be older
    change = _CursorChange.between(settings, client, before, after)
    if not change.confirm(printer, dry_run=dry_run, yes=yes):
        return
    if server is not None:
        server.seek_client(client, after.position)
    else:
        with open_for_change(settings) as meta:
            if meta.cursor(client) != before:
                raise PenstockError(
                    f"the cursor of client {client} has moved meanwhile, to {meta.cursor(client)}: look again"
                )
            meta.update_cursor(client, after, backwards=True)
    change.print_outcome(printer, f"client {client} resumes at {after.position}", is_changed=True)


@app.command()
def reset(
    config: Config,
    client: Client,
    destination: Destination = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    token: Token = None,
    output: OutputFormat = "text",
) -> None:
    """Forget a client: its subscription and its cursor. Nothing is kept for it any more. A server that runs does it
    itself, at its admin port.

    When it subscribes again, it begins as a new one.

    Examples:

        penstock position reset penstock.yml 1001 --dry-run
    """
    from penstock.cli.running_server import find_running_server  # noqa: PLC0415
    from penstock.instance.cursors import open_for_change, read_client_records  # noqa: PLC0415

    settings, printer = load_instance(config, destination), Output(output)
    records = read_client_records(settings)
    record = _find_record(records, client)
    if record is None:
        known = ", ".join(str(record.client_id) for record in records) or "none"
        raise ConfigurationError(f"there is no client {client} of '{settings.destination}'; there is {known}")
    server = find_running_server(settings, config, url, token)
    change = _CursorChange.between(settings, client, record.cursor, None)
    if not change.confirm(printer, dry_run=dry_run, yes=yes):
        return
    if server is not None:
        server.forget_client(client)
    else:
        with open_for_change(settings) as meta:
            meta.forget(client)
    change.print_outcome(printer, f"client {client} is forgotten", is_changed=True)


def _find_record(records: "list[ClientRecord]", client: int) -> "ClientRecord | None":
    """Return the record of a client; None if it has none."""
    return next((record for record in records if record.client_id == client), None)


def _find_extent(settings: InstanceSettings) -> "tuple[LogExtent | None, str]":
    """Return the first and the last position of the source's log, or why they are not known."""
    from penstock.instance.cursors import measure_source_log  # noqa: PLC0415

    source = settings.source
    if isinstance(source, SourceSettings):
        source = source.model_copy(update={"connect_timeout_s": min(3, source.connect_timeout_s)})
    try:
        return measure_source_log(settings.model_copy(update={"source": source})), ""
    except PenstockError as error:
        return None, str(error)


def _describe_client(record: "ClientRecord", extent: "LogExtent | None") -> dict[str, Any]:
    """Return a client's position and lag as plain data."""
    cursor = record.cursor
    return {
        "client": record.client_id,
        "subscribed": record.is_subscribed,
        "filter": record.filter,
        "position": _format_position(cursor),
        "epoch": cursor.position.epoch if cursor else None,
        "acked_at": _format_time(cursor) or None,
        "behind_bytes": extent.bytes_between(cursor.position, extent.end) if extent and cursor else None,
        "is_in_log": cursor.position >= extent.first if extent and cursor else None,
    }


def _client_lines(
    settings: InstanceSettings, records: "list[ClientRecord]", extent: "LogExtent | None", problem: str
) -> Iterator[str]:
    """Yield a line for each client, and one for the source's log."""
    rows = [["client", "cursor", "acked at (UTC)", "behind", "filter"]]
    for record in records:
        behind = _describe_client(record, extent)["behind_bytes"]
        size = "" if behind is None else format_size(behind, unit="bytes")
        state = record.filter if record.is_subscribed else "(not subscribed)"
        rows.append([str(record.client_id), str(record.cursor or "none"), _format_time(record.cursor), size, state])
    if records:
        yield from table_lines(rows)
    else:
        yield f"no client of '{settings.destination}' has subscribed yet"
    yield f"the source's log: {extent.first} to {extent.end}" if extent else f"the source was not asked: {problem}"


@dataclass(frozen=True, slots=True)
class _CursorChange:
    """A change of a client's cursor by `set` or `reset`: text is printed while it happens, JSON when it is over."""

    destination: str
    client: int
    before: "Cursor | None"
    after: "Cursor | None"
    log_bytes: int | None
    """How much of the log lies between the two; None if that is not known."""

    @classmethod
    def between(
        cls, settings: InstanceSettings, client: int, before: "Cursor | None", after: "Cursor | None"
    ) -> "_CursorChange":
        """Build the change from the cursors before and after."""
        log_bytes = None
        if before is not None and after is not None:
            low, high = sorted((before.position, after.position))
            extent, _ = _find_extent(settings)
            log_bytes = extent.bytes_between(low, high) if extent else None
        return cls(settings.destination, client, before, after, log_bytes)

    @property
    def effect(self) -> str:
        """Return what the change means for the client, in one of the words that are documented for JSON."""
        if self.after is None:
            return "forget"
        if self.before is None:
            return "begin"
        if self.before.position == self.after.position:
            return "none"
        if self.before.position.epoch != self.after.position.epoch:
            return "other_log"
        return "back" if self.after.position < self.before.position else "forward"

    def confirm(self, output: Output, *, dry_run: bool, yes: bool) -> bool:
        """Show the change and ask whether it is wanted; if it is not, or changes nothing, say so and return False."""
        if not output.is_json:
            output.print_note("\n".join(self._format_lines()))
        if self.effect == "none":
            self.print_outcome(output, "", is_changed=False)
            return False
        if dry_run:
            self.print_outcome(output, "nothing was changed (--dry-run)", is_changed=False)
            return False
        if yes or output.confirm("Change it?"):
            return True
        self.print_outcome(output, "nothing was changed", is_changed=False)
        return False

    def print_outcome(self, output: Output, text: str, *, is_changed: bool) -> None:
        """Print what was done."""
        data = {
            "destination": self.destination,
            "client": self.client,
            "before": _format_position(self.before),
            "after": _format_position(self.after),
            "effect": self.effect,
            "log_bytes": self.log_bytes,
            "changed": is_changed,
        }
        output.print_result(data, lambda: [text] if text else [])

    def _format_lines(self) -> Iterator[str]:
        """Yield the change as lines of text."""
        yield f"client {self.client} of '{self.destination}'"
        yield f"- {self.before or 'no cursor'}{_format_age(self.before)}"
        yield f"+ {self.after or 'no cursor'}{_format_age(self.after)}"
        size = f", {format_size(self.log_bytes, unit='bytes')} of the log" if self.log_bytes is not None else ""
        if self.effect == "none":
            yield "it is there already"
        elif self.effect == "other_log" and self.before and self.after:
            yield f"another log: epoch {self.before.position.epoch} becomes {self.after.position.epoch}"
        elif self.effect == "back":
            yield f"back: what lies between the two is redelivered{size}"
        elif self.effect == "forward":
            yield f"forward: what lies between the two is never delivered{size}"


def _format_position(cursor: "Cursor | None") -> str | None:
    """Return a cursor's position as text."""
    return f"{cursor.position.file}:{cursor.position.offset}" if cursor else None


def _format_time(cursor: "Cursor | None") -> str:
    """Return the time of a cursor as text."""
    seconds = cursor.position.timestamp if cursor else 0
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}" if seconds else ""


def _format_age(cursor: "Cursor | None") -> str:
    """Return how long ago a cursor's time is."""
    time = _format_time(cursor)
    return f"  {time}" if time else ""
