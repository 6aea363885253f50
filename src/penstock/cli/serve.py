"""penstock serve"""

import threading
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.signals import on_stop
from penstock.cli.source_options import Host, Password, Port, User, source_settings
from penstock.config import FlightSettings, InstanceSettings, ServerSettings, load_server_settings
from penstock.errors import PenstockError

_LOOK_S = 0.5


def serve(
    config: Annotated[
        Path | None, typer.Argument(help="A conf folder, or YAML with `instances`; without it, one from the options.")
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    listen: Annotated[int, typer.Option(min=0, max=65535, help="Port for Arrow Flight on loopback.")] = 11115,
    destination: Annotated[str, typer.Option(help="Name of the instance.")] = "default",
    start: Annotated[str | None, typer.Option(help="FILE:OFFSET; the log's end when not given.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder for cursors; without it they are in memory.")] = None,
) -> None:
    """Capture a source's log and serve it to Spark and other Arrow clients.

    Examples:

        PENSTOCK_PASSWORD=… penstock serve --host db1 --user penstock

        penstock serve penstock.yml

        penstock serve /etc/penstock
    """
    from penstock.server import FlightServer  # noqa: PLC0415 - numba takes a second to load

    if config is not None:
        settings = load_server_settings(config)
    else:
        source = source_settings(host, port, user, password)
        instance = InstanceSettings(destination=destination, source=source, start=start, data_dir=data_dir)
        settings = ServerSettings(flight=FlightSettings(port=listen), instances=(instance,))
    server = FlightServer(settings)
    stopped = threading.Event()
    on_stop(stopped.set)
    try:
        server.start()
    except PenstockError:
        server.stop()
        raise
    for name, instance in server.instances.items():
        typer.echo(f"capturing '{name}' from {instance.settings.source.address} at {instance.store.latest}")
    typer.echo(f"serving Arrow Flight on {server.address}; Ctrl-C stops")
    while not stopped.wait(_LOOK_S) and not all(instance.failure for instance in server.instances.values()):
        pass
    server.stop()
    for instance in server.instances.values():
        if instance.failure is not None:
            raise instance.failure
