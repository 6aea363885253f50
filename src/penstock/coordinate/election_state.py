"""The states of a server in the election of one destination; each change is one line in the log.

STANDBY    another server runs the destination, or it is not our turn yet
TRYING     no server runs it: we create the running node and claim an epoch
RUNNING    the node is ours, with its own epoch; `on_running` is being called or has returned
RELEASING  we stop, and then give up the node
PAUSED     an operator wrote active=false into our node: we have stopped and keep the node, so that no server serves.
           active=true lets us run again with a new epoch; removing the node lets any server run. The pause ends with
           our session
LOST       there is no session with ZooKeeper
STOPPED    the election was closed
"""

import logging
from enum import Enum

from penstock.coordinate.election_nodes import ElectionNodes

log = logging.getLogger(__name__)


class ElectionState(Enum):
    """The state of one server in one election; the docstring of the module explains each of them."""

    STANDBY = "standby"
    TRYING = "trying"
    RUNNING = "running"
    RELEASING = "releasing"
    PAUSED = "paused"
    LOST = "lost"
    STOPPED = "stopped"


class ElectionLog:
    """Tracks the state of one server in one election, and logs each change. No state follows STOPPED."""

    def __init__(self, nodes: ElectionNodes, address: str) -> None:
        self.present = ElectionState.STANDBY
        self._label, self._address = nodes.label, address

    def enter(self, state: ElectionState, reason: str = "-") -> None:
        """Change the state, and log the change with its reason. Nothing happens when the state is the same already, or
        STOPPED."""
        before = self.present
        if before in {state, ElectionState.STOPPED}:
            return
        self.present = state
        log.info(
            "election state changed %s address=%s state=%s before=%s reason=%s",
            *(self._label, self._address, state.value, before.value, reason),
        )
