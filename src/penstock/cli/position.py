"""penstock position"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.cursor_change import CursorChange, find_extent, format_position, format_time
from penstock.cli.instance_options import load_instance
from penstock.cli.output import Output, OutputFormat, format_size, table_lines
from penstock.config import InstanceSettings
from penstock.errors import ConfigurationError, PenstockError

if TYPE_CHECKING:
    from penstock.instance.cursors import LogExtent
    from penstock.meta import ClientRecord

app = typer.Typer(
    help="Show the cursors of clients, and move them manually.", no_args_is_help=True, rich_markup_mode="markdown"
)

Config = Annotated[
    Path, typer.Argument(help="The conf folder or YAML file that `penstock serve` runs with.", show_default=False)
]
Client = Annotated[int, typer.Argument(min=0, max=2**31 - 1, help="The client's id.", show_default=False)]
Destination = Annotated[
    str | None, typer.Option(help="Name of the instance, if there are several.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Url = Annotated[
    str | None,
    typer.Option(
        envvar="PENSTOCK_ADMIN_URL",
        help="URL of the admin port of the running server; by default as configured.",
        show_default=False,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        envvar="PENSTOCK_ADMIN_TOKEN", help="Access token of the admin port, if it has one.", show_default=False
    ),
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
    extent, problem = find_extent(settings)
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
    """Let a client resume at another position. If the server runs, it is asked to do it, at its admin port.

    The position must be between two transactions of the source's binlog; a time is the first transaction committed then
    or later, a GTID is after that transaction.

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
    change = CursorChange.between(settings, client, before, after)
    if not change.confirm(printer, dry_run=dry_run, yes=yes):
        return
    if server is not None:
        server.seek_client(client, after.position)
    else:
        with open_for_change(settings) as meta:
            if meta.cursor(client) != before:
                raise PenstockError(
                    f"the cursor of client {client} has moved meanwhile, to {meta.cursor(client)}: check it, and run"
                    " the command again"
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
    """Remove a client: its subscription and its cursor. Nothing is held for it any more. If the server runs, it is
    asked to do it, at its admin port.

    When it subscribes again, it begins as a new client.

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
    change = CursorChange.between(settings, client, record.cursor, None)
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


def _describe_client(record: "ClientRecord", extent: "LogExtent | None") -> dict[str, Any]:
    """Return a client's position and lag as plain data."""
    cursor = record.cursor
    return {
        "client": record.client_id,
        "subscribed": record.is_subscribed,
        "filter": record.filter,
        "position": format_position(cursor),
        "epoch": cursor.position.epoch if cursor else None,
        "acked_at": format_time(cursor) or None,
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
        rows.append([str(record.client_id), str(record.cursor or "none"), format_time(record.cursor), size, state])
    if records:
        yield from table_lines(rows)
    else:
        yield f"no client of '{settings.destination}' has subscribed yet"
    yield f"the source's binlog: {extent.first} to {extent.end}" if extent else f"the source was not asked: {problem}"
