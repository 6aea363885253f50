"""A short campaign of broken logs; `python -m tests.campaign` is the long one."""

import pytest

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


def test_mutants_can_be_made_again_and_differ() -> None:
    some = [mutant(_SEED, number) for number in range(300)]
    assert some == [mutant(_SEED, number) for number in range(300)]
    assert len({one.data for one in some}) > 250
    assert mutant(_SEED + 1, 0) != some[0]
    assert {one.log for one in some} > {path.stem for path in SEEDS.glob("*.binlog")}
    assert len(source_logs()) > len(list(SEEDS.iterdir()))
