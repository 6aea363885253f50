"""An elected destination after its term has ended: what failed then says nothing about the next term."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.config import InstanceSettings
from penstock.errors import FencedError, PositionLostError
from penstock.server.destination import ElectedDestination


class RecordedElection:
    """An election that this server has won; it records why the destination is given up."""

    def __init__(self) -> None:
        self.address = self.owner = "10.0.0.1:11111"
        self.failures: list[Exception] = []

    def is_held(self) -> bool:
        return True

    def fail(self, error: Exception) -> None:
        self.failures.append(error)


class Joined:
    """Elections of which each is the same one."""

    def __init__(self, election: RecordedElection) -> None:
        self._election = election

    def join(self, *_: Any) -> Any:
        return self._election

    def leave(self, *_: Any) -> None: ...


def elected(failure: Exception) -> tuple[ElectedDestination, RecordedElection]:
    """A destination whose last instance has failed."""
    election = RecordedElection()
    destination = ElectedDestination(InstanceSettings(), Joined(election))
    destination._instance = SimpleNamespace(failure=failure)  # type: ignore[assignment]
    return destination, election


def test_one_that_was_fenced_has_not_failed_for_good() -> None:
    destination, election = elected(FencedError("what was elected as number 1 has ended, another may run by now"))
    assert destination.failure is None
    destination.release_if_failed()
    assert election.failures == []


def test_another_failure_gives_the_destination_up() -> None:
    error = PositionLostError("binlog.000001:4 is gone")
    destination, election = elected(error)
    assert destination.failure is error
    destination.release_if_failed()
    assert election.failures == [error]


def test_a_failure_of_the_term_before_does_not_end_the_start_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    destination, election = elected(PositionLostError("binlog.000001:4 is gone"))
    monkeypatch.setattr(destination, "_open_instance", lambda *_: destination.release_if_failed())
    destination._on_elected(SimpleNamespace())  # type: ignore[arg-type]
    assert election.failures == []
    assert destination.failure is None
