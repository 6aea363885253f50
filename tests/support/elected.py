"""A destination that was elected, without a server."""

from typing import Any

from penstock.config import InstanceSettings
from penstock.coordinate.election_state import ElectionState
from penstock.server.destination import ElectedDestination


class FakeElection:
    def __init__(self, state: ElectionState, owner: str | None, *, held: bool = False) -> None:
        self.state, self.owner, self.address, self._held = state, owner, "10.0.0.1:11111", held

    def is_held(self) -> bool:
        return self._held


class FakeElections:
    def __init__(self, election: FakeElection) -> None:
        self.election = election

    def join(self, *_: Any) -> Any:
        return self.election

    def leave(self, *_: Any) -> None: ...


def elected(state: ElectionState, owner: str | None, *, held: bool = False, problem: str = "") -> ElectedDestination:
    made = ElectedDestination(InstanceSettings(), FakeElections(FakeElection(state, owner, held=held)))  # type: ignore[arg-type]
    made.problem = problem
    return made
