"""penstock serve"""

import gc
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.announcement import ServeAnnouncer
from penstock.cli.output import Output, OutputFormat
from penstock.cli.signals import exit_without_threads, handle_stop_signals
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings
from penstock.config import AdminSettings, CanalSettings, InstanceSettings, ServerSettings, load_server_settings

if TYPE_CHECKING:
    from penstock.server import Server

_LOOK_S = 0.5
_START_LOOK_S = 0.02
_STOP_S = 4.0  # with what the last port takes, a process is gone within five seconds
_TURN_S = 0.001  # a thread that has something to send waits no longer for one that is busy


def serve(
    config: Annotated[
        Path | None,
        typer.Argument(help="A conf folder, or a YAML file with `instances`; without it, one instance by the options."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    flight: Annotated[int, typer.Option(min=0, max=65535, help="Port for Arrow Flight, on 127.0.0.1.")] = 11115,
    canal: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port for canal's clients, on 127.0.0.1, such as 11111; by default none."),
    ] = None,
    admin: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="HTTP port for status and metrics, on 127.0.0.1, such as 11112; by default none."
        ),
    ] = None,
    destination: Annotated[str, typer.Option(help="Name of the instance, which clients subscribe to.")] = "default",
    start: Annotated[
        str | None,
        typer.Option(
            help="Where in the binlog to begin: earliest, latest (default), FILE:OFFSET, gtid:… or time:…; see"
            " docs/positions.md."
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder for cursors; without it they are lost when the process ends.")
    ] = None,
    output: OutputFormat = "text",
) -> None:
    """Capture the binlog of a source and serve it to canal's clients, to Spark and to other Arrow clients.

    A conf folder is watched: instances whose files are added, changed or removed are started, reloaded or stopped.

    Examples:

        PENSTOCK_PASSWORD=… penstock serve --host db1 --user penstock --canal 11111 --admin 11112

        penstock serve penstock.yml

        penstock -v serve /etc/penstock
    """
    from penstock.server import Server  # noqa: PLC0415 - numba takes a second to load
    from penstock.server.descriptors import plan_descriptors, raise_descriptor_limit  # noqa: PLC0415

    raise_descriptor_limit()
    instances: Sequence[InstanceSettings] = ()
    if config is None:
        source = build_source_settings(host, port, user, password)
        instance = InstanceSettings(destination=destination, source=source, start=start, data_dir=data_dir)
        settings = ServerSettings.with_flight_only(instance, port=flight)
        ports = {"canal": CanalSettings(port=canal), "admin": AdminSettings(port=admin)}
        server = Server(settings.model_copy(update=ports), needs_all=True)  # whoever typed it waits for the answer
    elif config.is_dir():
        from penstock.server.config_source import open_config_source  # noqa: PLC0415

        conf, scan_s = open_config_source(config)
        snapshot = conf.read()
        instances = [
            configured.settings for configured in snapshot.instances.values() if configured.settings is not None
        ]
        server = Server(snapshot.server, conf, scan_s)
    else:
        server = Server(load_server_settings(config))
    budget = plan_descriptors(server.settings, instances or server.settings.all_instances)
    printer = Output(output)
    if budget.is_enough:
        printer.print_event("descriptors", str(budget), **budget.to_json())
    _run_server(server, printer)


def _run_server(server: "Server", output: Output) -> None:
    """Run the server until a signal stops it, or no destination is left that could run."""
    sys.setswitchinterval(_TURN_S)
    stopped = threading.Event()
    handle_stop_signals(stopped.set)
    starting, announcement, failure = _ServerStart(server), ServeAnnouncer(server, output), None
    try:
        starting.start()
        while not stopped.wait(_LOOK_S if announcement.is_made else _START_LOOK_S):
            if starting.failure is not None or (server.has_failed and not starting.is_alive()):
                break
            if announcement.print_news():
                gc.freeze()  # what there is by now stays: to look through it again and again would hold up what is sent
    except Exception as error:  # noqa: BLE001 - raised below, when all that can be written is written
        failure = error
    has_ended = server.stop(_STOP_S) and not starting.is_alive()
    failure = failure or starting.failure or server.failure
    if not has_ended:
        exit_without_threads(failure)
    if failure is not None:
        raise failure


class _ServerStart(threading.Thread):
    """The start of a server in a thread of its own, so that a signal need not wait for a source that does not
    answer.
    """

    def __init__(self, server: "Server") -> None:
        super().__init__(name="penstock-start", daemon=True)
        self._server = server
        self.failure: Exception | None = None

    def run(self) -> None:
        """Start the server, and remember an error."""
        try:
            self._server.start()
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            self.failure = error
