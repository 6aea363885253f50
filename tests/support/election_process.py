"""A server of an election, to be killed or stopped: it says, a line of JSON each, what it runs and when it held what.

Times are those of the machine's clock since boot, the same for all processes. A line `held` gives for each destination
since when and until when `is_held()` was seen to be true, asked every millisecond; the time is taken before the
question, so that a process that is stopped in between claims nothing.
"""

import json
import logging
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from penstock.coordinate import (
    Balancer,
    BalancerSettings,
    Election,
    ElectionSettings,
    Fence,
    SessionManager,
    ZooKeeperTree,
)
from penstock.coordinate.canal import election_nodes
from penstock.coordinate.lease import boot_clock
from penstock.errors import FencedError, PenstockError

_SAY_S = 0.05
_lock = threading.Lock()


def say(kind: str, **fields: Any) -> None:
    line = json.dumps({"kind": kind, "at": boot_clock(), **fields})
    with _lock:
        print(line, flush=True)


@dataclass
class Served:
    """One destination; it writes its epoch all the time, as a server writes cursors."""

    destination: str
    tree: ZooKeeperTree
    fails: bool = False
    start_s: float = 0.0
    stopping: threading.Event = field(default_factory=threading.Event)

    def on_running(self, fence: Fence) -> None:
        if self.fails:
            raise ValueError("told to fail")
        self.stopping = threading.Event()
        threading.Thread(target=self._write, args=(fence, self.stopping), daemon=True).start()
        say("running", destination=self.destination, epoch=fence.epoch)

    def on_stopped(self, reason: str) -> None:
        self.stopping.set()
        say("stopped", destination=self.destination, reason=reason)

    def _write(self, fence: Fence, stopping: threading.Event) -> None:
        path = f"/test/{self.destination}"
        while not stopping.wait(0.02):
            asked = boot_clock()
            try:
                self.tree.commit({path: str(fence.epoch).encode()}, fence.check)
            except FencedError as error:
                say("fenced", destination=self.destination, epoch=fence.epoch, reason=str(error))
                return
            except PenstockError:
                continue
            say("wrote", destination=self.destination, epoch=fence.epoch, asked=asked)


def watch(runnings: list[Election]) -> None:
    """Say what this server holds, and which server it knows to run each destination."""
    spans: dict[str, list[float]] = {}
    owners: dict[str, str] = {}
    said = 0.0
    while True:
        for running in runnings:
            before = boot_clock()
            if running.is_held():
                spans.setdefault(running.nodes.name, [before, before])[1] = before
            elif (span := spans.pop(running.nodes.name, None)) is not None:
                say("held", spans={running.nodes.name: span})
            owner = running.owner
            if owner is not None and owners.get(running.nodes.name) != owner:
                owners[running.nodes.name] = owner
                say("owner", destination=running.nodes.name, owner=owner)
        if spans and before - said > _SAY_S:
            said = before
            say("held", spans=spans)
        time.sleep(0.001)


def main(settings: dict[str, Any]) -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    session = SessionManager(settings["hosts"], session_s=settings["session_s"])
    tree = ZooKeeperTree(settings["direct"])
    balance = Balancer(session, settings["address"], settings=BalancerSettings(**settings.get("balance", {})))
    runnings: dict[str, Election] = {}
    served: dict[str, Served] = {}
    for name in settings["destinations"]:
        served[name] = callbacks = Served(name, tree, fails=bool(settings.get("fails")))
        election_settings = ElectionSettings(**settings.get("running", {}))
        runnings[name] = Election(
            session,
            election_nodes(name),
            settings["address"],
            callbacks.on_running,
            callbacks.on_stopped,
            settings=election_settings,
        )
        balance.add(runnings[name])
    threading.Thread(target=watch, args=(list(runnings.values()),), daemon=True).start()
    session.start()
    balance.start()
    for running in runnings.values():
        running.start()
    say("ready")
    for line in sys.stdin:
        command, _, name = line.strip().partition(" ")
        if command == "release":
            say("released", destination=name, done=runnings[name].release())
        elif command == "repair":
            served[name].fails = False
        elif command == "close":
            break
    for running in runnings.values():
        running.close()
    balance.close()
    session.close()
    tree.close()
    say("closed")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
