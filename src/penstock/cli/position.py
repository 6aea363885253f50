"""penstock position"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from penstock.cli.instance_options import instance_of
from penstock.config import InstanceSettings, SourceSettings
from penstock.errors import ConfigurationError, PenstockError

if TYPE_CHECKING:
    from penstock.instance.cursors import Extent
    from penstock.meta import ClientRecord, Cursor

app = typer.Typer(
    help="Look at the cursors of clients, and move them by hand.", no_args_is_help=True, rich_markup_mode="markdown"
)

Config = Annotated[
    Path, typer.Argument(help="The conf folder or YAML that `penstock serve` runs with.", show_default=False)
]
Client = Annotated[int, typer.Argument(min=0, max=2**31 - 1, help="The client's id.", show_default=False)]
Destination = Annotated[str | None, typer.Option(help="Which instance, when there are several.", show_default=False)]
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
_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


@app.command()
def show(
    config: Config,
    destination: Destination = None,
    output: Annotated[Literal["table", "json"], typer.Option(help="How to print it.")] = "table",
) -> None:
    """Show where each client is, and how far behind the source.

    Examples:

        penstock position show penstock.yml

        penstock position show penstock.yml --destination shop --output json
    """
    from penstock.instance.cursors import look  # noqa: PLC0415 - numba takes a second to load

    settings = instance_of(config, destination)
    records = look(settings)
    log, problem = _extent(settings)
    if output == "json":
        typer.echo(json.dumps([_about(record, log) for record in records], indent=2))
        return
    if not records:
        typer.echo(f"no client of '{settings.destination}' has subscribed yet")
    lines = [["client", "cursor", "acked at (UTC)", "behind", "filter"]]
    for record in records:
        about = _about(record, log)
        state = record.filter if record.is_subscribed else "(not subscribed)"
        behind = "" if about["behind_bytes"] is None else _size(int(str(about["behind_bytes"])))
        lines.append([str(record.client_id), str(record.cursor or "none"), _time(record.cursor), behind, state])
    if records:
        _print_table(lines)
    typer.echo(f"the source's log: {log.first} to {log.end}" if log else f"the source was not asked: {problem}")


@app.command("set")
def set_(
    config: Config,
    client: Client,
    place: Annotated[
        str,
        typer.Argument(
            help="FILE:OFFSET, a time in UTC ('2026-11-15 10:00', -10m), a GTID, `first` or `latest`.",
            show_default=False,
        ),
    ],
    destination: Destination = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Let a client go on at another place. A server that runs does it itself, at its admin port.

    The place must be between two transactions of the source's log; a time is the first transaction committed then or
    later, a GTID is after that transaction.

    Examples:

        penstock position set penstock.yml 1001 binlog.000007:4 --dry-run

        penstock position set penstock.yml 1001 -- -2h

        penstock position set penstock.yml 1001 0-1-4711 --yes
    """
    from penstock.cli.running_server import find_running_server  # noqa: PLC0415
    from penstock.instance.cursors import cursor_at, find, look, taken_over  # noqa: PLC0415

    settings = instance_of(config, destination)
    record = _record(look(settings), client)
    after = cursor_at(settings, find(settings, place, datetime.now(UTC)))
    if record is None:
        typer.echo(f"client {client} has not subscribed to '{settings.destination}' yet; it will begin there")
    server = find_running_server(settings, config, url, token)
    before = record.cursor if record else None
    if server is not None and client in server.cursors:
        before = cursor_at(settings, server.cursors[client])  # what is kept may be older
    _print_change(settings, client, before, after)
    if _is_same(before, after) or not _is_wanted(dry_run=dry_run, yes=yes):
        return
    if server is not None:
        server.seek_client(client, after.position)
    else:
        with taken_over(settings) as meta:
            if meta.cursor(client) != before:
                raise PenstockError(
                    f"the cursor of client {client} has moved meanwhile, to {meta.cursor(client)}: look again"
                )
            meta.update_cursor(client, after, backwards=True)
    typer.echo(f"client {client} goes on at {after.position}")


@app.command()
def reset(
    config: Config,
    client: Client,
    destination: Destination = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Forget a client: its subscription and its cursor. Nothing is kept for it any more. A server that runs does it
    itself, at its admin port.

    When it subscribes again, it begins as a new one.

    Examples:

        penstock position reset penstock.yml 1001 --dry-run
    """
    from penstock.cli.running_server import find_running_server  # noqa: PLC0415
    from penstock.instance.cursors import look, taken_over  # noqa: PLC0415

    settings = instance_of(config, destination)
    records = look(settings)
    record = _record(records, client)
    if record is None:
        known = ", ".join(str(one.client_id) for one in records) or "none"
        raise ConfigurationError(f"there is no client {client} of '{settings.destination}'; there is {known}")
    server = find_running_server(settings, config, url, token)
    _print_change(settings, client, record.cursor, None)
    if not _is_wanted(dry_run=dry_run, yes=yes):
        return
    if server is not None:
        server.forget_client(client)
    else:
        with taken_over(settings) as meta:
            meta.forget(client)
    typer.echo(f"client {client} is forgotten")


def _record(records: "list[ClientRecord]", client: int) -> "ClientRecord | None":
    return next((record for record in records if record.client_id == client), None)


def _extent(settings: InstanceSettings) -> "tuple[Extent | None, str]":
    from penstock.instance.cursors import extent  # noqa: PLC0415

    source = settings.source
    if isinstance(source, SourceSettings):
        source = source.model_copy(update={"connect_timeout_s": min(3, source.connect_timeout_s)})
    try:
        return extent(settings.model_copy(update={"source": source})), ""
    except PenstockError as error:
        return None, str(error)


def _about(record: "ClientRecord", log: "Extent | None") -> dict[str, object]:
    cursor = record.cursor
    behind = log.bytes_between(cursor.position, log.end) if log and cursor else None
    return {
        "client": record.client_id,
        "subscribed": record.is_subscribed,
        "filter": record.filter,
        "position": f"{cursor.position.file}:{cursor.position.offset}" if cursor else None,
        "epoch": cursor.position.epoch if cursor else None,
        "acked_at": _time(cursor) or None,
        "behind_bytes": behind,
        "is_in_log": cursor.position >= log.first if log and cursor else None,
    }


def _print_change(settings: InstanceSettings, client: int, before: "Cursor | None", after: "Cursor | None") -> None:
    typer.echo(f"client {client} of '{settings.destination}'")
    typer.echo(f"- {before or 'no cursor'}{_ago(before)}")
    typer.echo(f"+ {after or 'no cursor'}{_ago(after)}")
    if before is None or after is None:
        return
    low, high = sorted((before.position, after.position))
    log, _ = _extent(settings)
    size = f", {_size(log.bytes_between(low, high))} of the log" if log else ""
    if _is_same(before, after):
        typer.echo("it is there already")
    elif before.position.epoch != after.position.epoch:
        typer.echo(f"another log: epoch {before.position.epoch} becomes {after.position.epoch}")
    elif after.position < before.position:
        typer.echo(f"back: it gets again what lies between the two{size}")
    else:
        typer.echo(f"forward: it never gets what lies between the two{size}")


def _is_same(one: "Cursor | None", other: "Cursor | None") -> bool:
    return one is not None and other is not None and one.position == other.position


def _is_wanted(*, dry_run: bool, yes: bool) -> bool:
    if dry_run:
        typer.echo("nothing was changed (--dry-run)")
        return False
    if yes or typer.confirm("Change it?"):
        return True
    typer.echo("nothing was changed")
    return False


def _print_table(lines: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def _size(size: int) -> str:
    for unit, factor in _UNITS:
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"


def _time(cursor: "Cursor | None") -> str:
    seconds = cursor.position.timestamp if cursor else 0
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}" if seconds else ""


def _ago(cursor: "Cursor | None") -> str:
    found = _time(cursor)
    return f"  {found}" if found else ""
