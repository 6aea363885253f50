"""penstock check"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.cli.source_options import Host, Password, Port, User, source_settings
from penstock.config import DirectorySettings, InstanceSettings, load_server_settings

_COLOURS = {"ok": typer.colors.GREEN, "warn": typer.colors.YELLOW, "fail": typer.colors.RED}


def check(
    config: Annotated[
        Path | None,
        typer.Argument(help="A conf folder, or YAML with `instances`: all sources are checked.", show_default=False),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    path: Annotated[
        str | None, typer.Option(help="A folder with the files of a log, or its URL, instead of a server.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="A place to begin at: FILE:OFFSET, a GTID or a set of them, a time in UTC.")
    ] = None,
    output: Annotated[Literal["text", "json"], typer.Option(help="How to print it.")] = "text",
) -> None:
    """Say what of a source is ready for capture, what could be better, and what must change first.

    Ends with 1 if something must change.

    Examples:

        PENSTOCK_PASSWORD=… penstock check --host db1 --user penstock

        penstock check --host db1 --start 0-1-4711

        penstock check --path /backup/binlogs

        penstock check penstock.yml --output json
    """
    from penstock.instance.examine import examine_instances  # noqa: PLC0415 - numba takes a second to load

    if config is not None:
        instances = load_server_settings(config).captured
    else:
        source = source_settings(host, port, user, password) if path is None else DirectorySettings(path=path)
        instances = (InstanceSettings(source=source, start=start),)
    found = examine_instances(instances)
    if output == "json":
        several = {
            address: [asdict(one) | {"verdict": one.verdict.value} for one in findings]
            for address, findings in found.items()
        }
        typer.echo(json.dumps(several, indent=2))
    else:
        for address, findings in found.items():
            typer.echo(address)
            width = max(len(one.what) for one in findings)
            for one in findings:
                verdict = one.verdict.value
                mend = f"\n       {' ' * width}  {one.mend}" if one.mend else ""
                typer.echo(
                    f"  {typer.style(f'{verdict:4}', fg=_COLOURS[verdict])} {one.what:{width}}  {one.found}{mend}"
                )
    if any(one.verdict.value == "fail" for findings in found.values() for one in findings):
        raise typer.Exit(1)
