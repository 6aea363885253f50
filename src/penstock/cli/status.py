"""penstock status"""

import json
import sys
import time
from typing import Annotated, Literal

import typer

_CLEAR = "\x1b[2J\x1b[H"


def status(
    url: Annotated[
        str, typer.Option(envvar="PENSTOCK_ADMIN_URL", help="The server's admin port.")
    ] = "http://127.0.0.1:11112",
    token: Annotated[
        str | None, typer.Option(envvar="PENSTOCK_ADMIN_TOKEN", help="Its token, if it has one.", show_default=False)
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
    ready: Annotated[bool, typer.Option("--ready", help="End with 1 if the server is not ready.")] = False,
    output: Annotated[Literal["text", "json"], typer.Option(help="How to print it.")] = "text",
) -> None:
    """Show how a running server is: instances, clients, who waits for whom.

    Ends with 1 when nobody answers. With `--watch` and JSON, each look is a line.

    Examples:

        penstock status

        penstock status --watch

        penstock status --ready --output json

        PENSTOCK_ADMIN_TOKEN=… penstock status --url http://db1:11112
    """
    from penstock.cli.status_text import status_text  # noqa: PLC0415 - help is quick without it
    from penstock.client.admin import AdminClient  # noqa: PLC0415

    client = AdminClient(url, token)
    while True:
        found = client.status()
        if output == "json":
            typer.echo(json.dumps(found, indent=None if watch else 2, ensure_ascii=False))
        else:
            typer.echo((_CLEAR if watch and sys.stdout.isatty() else "") + status_text(found))
        if not watch:
            break
        time.sleep(interval)
    if ready and not found["ready"]:
        raise typer.Exit(1)
