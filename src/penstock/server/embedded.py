"""`python -m penstock.server.embedded FOLDER LOCK`: a server of one source for this user's clients on this machine.

A client that finds none in its folder starts it, sends the settings as JSON on standard input, and reads one line of
JSON: `{"url": …}` once the source is followed, or `{"error": class, "message": …}`. The server listens on loopback with
a token of its own, and `server.json` in the folder, which only its owner can read, says how to reach it. LOCK is the
descriptor of the lock that whoever starts it holds: the server holds it, too, until it can be reached. It ends by
itself when none of the processes that are registered below `users/` is alive. See client/embedded.py for the other end.
"""

import json
import logging
import os
import secrets
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.config import AdminSettings, CanalSettings, FlightSettings, InstanceSettings, MetaSettings, ServerSettings
from penstock.disk import replace_file
from penstock.errors import PenstockError
from penstock.local_process import LocalProcess
from penstock.server.server import Server

log = logging.getLogger(__name__)

DESTINATION = "default"
_LOOK_S = 0.5
_GRACE_S = 5.0  # a query that is restarted finds the server that it had
_STOP_S = 4.0


def main(arguments: list[str]) -> int:
    """Serve one source until nobody is left who uses it; return the exit code."""
    folder, request = Path(arguments[0]), json.loads(sys.stdin.read())
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.INFO)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: stopped.set())
    try:
        server, token = _start(request)
    except PenstockError as error:
        _answer({"error": type(error).__name__, "message": str(error)})
        return 1
    try:
        url = f"grpc://{server.address}"
        content = {"url": url, "token": token, "process": LocalProcess.current().to_text()}
        replace_file(folder / "server.json", json.dumps(content).encode())
        os.close(int(arguments[1]))
        _answer({"url": url})
        _wait_for_end(server, folder / "users", stopped)
    finally:
        has_ended = server.stop(_STOP_S)
    if not has_ended:
        os._exit(0)
    return 0


def _start(request: dict[str, Any]) -> tuple[Server, str]:
    token = secrets.token_urlsafe(32)
    instance = InstanceSettings.model_validate(
        {
            "destination": DESTINATION,
            "source": request["source"],
            "data_dir": request["data_dir"],
            "schema_from": "earliest",  # a query may begin anywhere in the log
            "meta": MetaSettings(kind="memory"),  # positions are in the checkpoints of queries
        }
    )
    flight = FlightSettings.model_validate({"host": "127.0.0.1", "port": 0, "tokens": {"embedded": token}})
    settings = ServerSettings(
        flight=flight, canal=CanalSettings(port=None), admin=AdminSettings(port=None), instances=(instance,)
    )
    server = Server(settings, needs_all=True)
    try:
        server.start()
    except BaseException:
        server.stop(_STOP_S)
        raise
    return server, token


def _answer(message: dict[str, str]) -> None:
    """Tell who started this process how it went, if that process is still there; what is printed later goes to the
    log."""
    with suppress(BrokenPipeError):
        os.write(1, json.dumps(message).encode() + b"\n")
    os.dup2(2, 1)


def _wait_for_end(server: Server, users: Path, stopped: threading.Event) -> None:
    """Return when the server was told to stop, has failed for good, or has had no user for a while."""
    last_used_s = time.monotonic()
    while not stopped.wait(_LOOK_S):
        if has_users(users):
            last_used_s = time.monotonic()
        elif time.monotonic() - last_used_s > _GRACE_S:
            log.info("client-started Penstock server stopped reason=no client process uses it any more")
            return
        if server.has_failed:
            log.error("client-started Penstock server stopped reason=%s", server.failure)
            return


def has_users(folder: Path) -> bool:
    """Return whether a registered process is alive; the files of those that have ended are removed."""
    is_used = False
    with suppress(FileNotFoundError):  # somebody has removed the folder: nobody can be registered any more
        for file in folder.iterdir():
            if LocalProcess.parse(file.name).is_alive:
                is_used = True
            else:
                file.unlink(missing_ok=True)
    return is_used


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
