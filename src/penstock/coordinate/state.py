"""The states of a server in the election of one destination, one line in the log for each step.

STANDBY    another server runs it, or it is not our turn yet
TRYING     nobody runs it: we make the running node, and claim an epoch
RUNNING    the node is ours, with an epoch of its own; `on_running` was called, or is
RELEASING  we stop, and then give the node up
PAUSED     an operator has written active=false into our node: we have stopped, and keep the node, so that nobody
           serves; active=true lets us run again with a new epoch, removing the node lets anybody. The pause ends with
           our session
LOST       there is no session
STOPPED    closed
"""

import logging
from enum import Enum

log = logging.getLogger(__name__)


class State(Enum):
    STANDBY = "standby"
    TRYING = "trying"
    RUNNING = "running"
    RELEASING = "releasing"
    PAUSED = "paused"
    LOST = "lost"
    STOPPED = "stopped"


class Steps:
    """Nothing follows STOPPED."""

    def __init__(self, destination: str, address: str) -> None:
        self.present = State.STANDBY
        self._destination, self._address = destination, address

    def enter(self, state: State, reason: str = "-") -> None:
        before = self.present
        if before in {state, State.STOPPED}:
            return
        self.present = state
        log.info(
            "election destination=%s address=%s state=%s before=%s reason=%s",
            *(self._destination, self._address, state.value, before.value, reason),
        )
