"""A short campaign of broken logs; `python -m tests.campaign` is the long one."""

from typing import NoReturn

import pytest

from penstock.errors import BinlogError, SchemaError
from tests.campaign import reading
from tests.campaign.command import COMMANDS
from tests.campaign.logs import SEEDS, source_logs
from tests.campaign.mutant import Mutant, mutant
from tests.campaign.reading import outcome_of

_MUTANTS = 2000
_PARTS = 4
_SEED = 1


@pytest.mark.parametrize("name", sorted(path.name for path in SEEDS.glob("*.binlog")))
@pytest.mark.parametrize("pieces", [(), (1 << 20,), (100, 3, 1000)])
def test_the_logs_of_servers_are_read_whole(name: str, pieces: tuple[int, ...]) -> None:
    assert outcome_of(Mutant(name, (), (SEEDS / name).read_bytes(), verify=True, pieces=pieces)) == "whole"


@pytest.mark.parametrize("part", range(_PARTS))
def test_only_our_own_errors_come_out_of_broken_logs(part: int) -> None:
    for number in range(part, _MUTANTS, _PARTS):
        try:
            outcome_of(mutant(_SEED, number))
        except Exception as error:  # noqa: BLE001 - whatever it is, the mutant's number must be known
            pytest.fail(f"{type(error).__name__}: {error}; python -m tests.campaign --only {_SEED}:{number}")


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_read_the_logs_of_servers(command: str) -> None:
    for path in SEEDS.glob("*.binlog"):
        # MINIMAL images have not all that the way back needs. MySQL 5.7 has no names: they come from the log's DDL.
        expected = {"whole", "BinlogError"} if command == "flashback" else {"whole"}
        assert outcome_of(Mutant(path.stem, (), path.read_bytes(), verify=True, command=command)) in expected


def test_every_way_to_read_is_taken() -> None:
    assert {mutant(_SEED, number).command for number in range(600)} == {None, *COMMANDS}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (BinlogError("binlog.000001:7 WRITE_ROWS_V2 of d.t: column c is bad; bytes there: 00"), "BinlogError"),
        (BinlogError("binlog.000001:7 WRITE_ROWS_V2 of d.t: column c is bad"), AssertionError),
        (BinlogError("WRITE_ROWS_V2 of d.t: column c is bad; bytes there: 00"), AssertionError),
        (SchemaError("column d.t.c is of type 99, which is not known"), SchemaError),
        (ValueError("anything"), ValueError),
    ],
    ids=str,
)
def test_an_error_that_does_not_say_all_is_a_finding(
    error: Exception, outcome: str | type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is a SchemaError of a table that is as its log has it."""

    def fails(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(reading, "decode_changes", fails)
    mutation = Mutant("mysql9", (), (SEEDS / "mysql9.binlog").read_bytes(), verify=True)
    if isinstance(outcome, str):
        assert outcome_of(mutation) == outcome
        return
    with pytest.raises(outcome):
        outcome_of(mutation)


def test_payloads_lie_and_rows_come_in_fragments() -> None:
    some = [mutant(_SEED, number) for number in range(1500)]
    assert len([mutation for mutation in some if "misdeclare" in mutation.what and "compressed" in mutation.log]) > 20
    assert len([mutation for mutation in some if "in_fragments" in mutation.what]) > 20


def test_mutants_can_be_made_again_and_differ() -> None:
    some = [mutant(_SEED, number) for number in range(300)]
    assert some == [mutant(_SEED, number) for number in range(300)]
    assert len({mutation.data for mutation in some}) > 250
    assert mutant(_SEED + 1, 0) != some[0]
    assert {mutation.log for mutation in some} > {path.stem for path in SEEDS.glob("*.binlog")}
    assert len(source_logs()) > len(list(SEEDS.iterdir()))
