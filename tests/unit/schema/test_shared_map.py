"""A map that never changes behaves like a dictionary that is copied."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from penstock.schema.shared_map import SharedMap

KEYS = st.sampled_from([f"key {i}" for i in range(300)])


@given(st.lists(st.tuples(KEYS, st.none() | st.integers()), max_size=60))
def test_like_a_dictionary(steps: list[tuple[str, int | None]]) -> None:
    shared, plain = SharedMap[int](), dict[str, int]()
    past: list[tuple[SharedMap[int], dict[str, int]]] = []
    for key, value in steps:
        past.append((shared, plain.copy()))
        if value is not None:
            shared, plain[key] = shared.with_item(key, value), value
        elif key in plain:
            shared = shared.without(key)
            del plain[key]
    for shared_map, other in [*past, (shared, plain)]:
        assert (dict(shared_map), len(shared_map)) == (other, len(other))
        assert shared_map == SharedMap[int].from_items(other.items())
        assert all(shared_map.get(key) == other.get(key) for key, _ in steps)


def test_it_pickles() -> None:
    shared = SharedMap[int].from_items([("a", 1), ("b", 2)])
    assert pickle.loads(pickle.dumps(shared)) == shared  # noqa: S301 - our own
