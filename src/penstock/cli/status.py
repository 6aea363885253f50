"""penstock status"""

import sys
import time
from typing import Annotated

import typer

from penstock.cli.output import Output, OutputFormat

_CLEAR = "\x1b[2J\x1b[H"


def status(
    url: Annotated[
        str, typer.Option(envvar="PENSTOCK_ADMIN_URL", help="URL of the server's admin port.")
    ] = "http://127.0.0.1:11112",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="PENSTOCK_ADMIN_TOKEN", help="Access token of the admin port, if it has one.", show_default=False
        ),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh the status until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, help="With --watch: seconds between two requests.")] = 2.0,
    ready: Annotated[bool, typer.Option("--ready", help="Exit with code 1 if the server is not ready.")] = False,
    output: OutputFormat = "text",
) -> None:
    """Show the status of a running server: its instances, their clients, and which client blocks others.

    Exits with code 1 when the server does not answer. With `--watch` and JSON, each status is one line.

    Examples:

        penstock status

        penstock status --watch

        penstock status --ready --output json

        PENSTOCK_ADMIN_TOKEN=… penstock status --url http://db1:11112
    """
    from penstock.cli.status_text import format_status  # noqa: PLC0415 - help is quick without it
    from penstock.client.admin import AdminClient  # noqa: PLC0415

    client, printer = AdminClient(url, token), Output(output)
    clear = _CLEAR if watch and sys.stdout.isatty() else ""
    while True:
        answer = client.status()
        printer.print_result(answer, lambda answer=answer: [clear + format_status(answer)], is_line=watch)
        if not watch:
            break
        time.sleep(interval)
    if ready and not answer["ready"]:
        raise typer.Exit(1)
