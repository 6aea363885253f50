"""The reader of `benchmarks/index.py` notes when a change was found first, and looks for what was not found only."""

from collections.abc import Sequence

from benchmarks._index_latency import ChangeReader


class FakeProbe:
    """Finds the products it is told to, whatever the marks."""

    def __init__(self) -> None:
        self.asked: list[Sequence[int]] = []
        self.keys: list[int] = []

    def find_products(self, marks: Sequence[int]) -> list[int]:
        self.asked.append(marks)
        return self.keys

    def count(self, field: str, value: str) -> int:
        raise NotImplementedError(field, value)

    def close(self) -> None:
        pass


def test_a_change_counts_from_the_first_search_that_finds_it() -> None:
    probe, clock = FakeProbe(), iter(range(100, 200))
    reader = ChangeReader(probe, 1000, 4, lambda: next(clock))
    reader.search(4)
    probe.keys = [2]  # the key of change 1
    reader.search(4)
    probe.keys = [1, 2, 3]
    reader.search(4)
    assert reader.seen == {1: 101, 0: 102, 2: 102}
    assert not reader.is_done


def test_only_changes_that_were_not_found_and_may_be_there_are_searched_for() -> None:
    probe = FakeProbe()
    reader = ChangeReader(probe, 1000, 4, lambda: 0)
    probe.keys = [2]
    reader.search(2)
    probe.keys = [1, 3, 4]
    reader.search(9)
    reader.search(9)  # nothing is left to be asked for
    assert probe.asked == [[1000, 1001], [1000, 1002, 1003]]
    assert reader.is_done
    assert reader.searches == 2
