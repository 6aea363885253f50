"""How destinations are spread: it comes to an end, evenly, and nothing goes back and forth."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.coordinate.rebalance import Assignment, Reassignment, count_loads, plan_reassignments, start_delay_share

SERVERS = [f"10.0.0.{number}:11111" for number in range(1, 6)]


def assignments_of(*owners: str | None, members: str = "abc") -> list[Assignment]:
    return [Assignment(f"d{number}", frozenset(members), owner) for number, owner in enumerate(owners)]


@st.composite
def spreads(draw: st.DrawFn, *, is_open: bool = False) -> list[Assignment]:
    """Each with an owner; not every server can run everything, unless all can."""
    servers = draw(st.lists(st.sampled_from(SERVERS), min_size=1, unique=True))
    assignments: list[Assignment] = []
    for number in range(draw(st.integers(1, 20))):
        members = servers if is_open else draw(st.lists(st.sampled_from(servers), min_size=1, unique=True))
        owner = draw(st.sampled_from(members))
        assignments.append(Assignment(f"d{number:02}", frozenset(members), owner, draw(st.booleans()) or is_open))
    return assignments


def applied(assignments: list[Assignment], move: Reassignment) -> list[Assignment]:
    return [
        replace(assignment, owner=move.to_server) if assignment.destination == move.destination else assignment
        for assignment in assignments
    ]


@given(spreads())
def test_it_comes_to_an_end(assignments: list[Assignment]) -> None:
    taken: list[tuple[str, str]] = []
    for _ in range(200):
        moves = plan_reassignments(assignments)
        if not moves:
            return
        move, before = moves[0], count_loads(assignments)
        moved = next(assignment for assignment in assignments if assignment.destination == move.destination)
        assert (moved.owner, move.to_server in moved.members, moved.is_active) == (move.from_server, True, True)
        assignments = applied(assignments, move)
        after = count_loads(assignments)
        assert sum(assignment**2 for assignment in after.values()) < sum(
            assignment**2 for assignment in before.values()
        )
        assert after[move.to_server] <= after[move.from_server]  # so nobody would give it back
        taken.append((move.destination, move.to_server))
    raise AssertionError(f"no end: {taken[-10:]}")


@given(spreads(is_open=True))
def test_where_all_can_run_all_nobody_has_two_more_than_another(assignments: list[Assignment]) -> None:
    count = 0
    while moves := plan_reassignments(assignments):
        assignments = applied(assignments, moves[0])
        count += 1
    load = count_loads(assignments)
    assert max(load.values()) - min(load.values()) <= 1
    assert count <= len(assignments)


@given(spreads())
def test_the_order_of_what_is_seen_does_not_matter(assignments: list[Assignment]) -> None:
    assert plan_reassignments(assignments[::-1]) == plan_reassignments(assignments)


@given(spreads(is_open=True), st.data())
def test_all_may_move_at_once(assignments: list[Assignment], data: st.DataObject) -> None:
    """As when several servers think that it is their turn: it still comes to an end."""
    for _ in range(100):
        moves = plan_reassignments(assignments)
        if not moves:
            return
        for move in data.draw(st.lists(st.sampled_from(moves), min_size=1, unique=True)):
            assignments = applied(assignments, move)
    raise AssertionError("no end")


def test_nothing_moves_while_something_is_on_its_way() -> None:
    assert plan_reassignments(assignments_of("a", "a", "a", None)) == []


def test_what_is_kept_or_paused_stays() -> None:
    assignments = assignments_of("a", "a", "a")
    assert [move.destination for move in plan_reassignments(assignments)] == ["d0"]
    assert [move.destination for move in plan_reassignments(assignments, {"d0"})] == ["d1"]
    paused = [replace(assignment, is_active=False) for assignment in assignments]
    assert plan_reassignments(paused) == []


def test_an_owner_that_is_no_member_is_not_ours_to_judge() -> None:
    """As one that has just left."""
    assert plan_reassignments(assignments_of("z", "z", "z")) == []


def test_who_runs_least_goes_first() -> None:
    assignments = assignments_of("a", "a", "b", None)
    assert start_delay_share(assignments, "d3", "c", 0) == 0
    assert start_delay_share(assignments, "d3", "b", 1) == 0.5
    assert start_delay_share(assignments, "d3", "a", 2) == 1
    assert start_delay_share(assignments, "d3", "a", 9) == 1
    assert start_delay_share(assignments, "unknown", "a", 2) == 0
    assert start_delay_share([], "d0", "a", 2) == 0
