"""The parts of a comparison: what differs, told in words; digests in files; verdicts about documents that change."""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.document.build import BuiltDocuments
from penstock.document.difference import DocumentState, describe_difference
from penstock.document.difference_check import DifferenceCheck
from penstock.document.document_sample import DocumentSample
from penstock.document.key_range import KeyRange
from penstock.errors import ConfigurationError, TableAlteredError
from penstock.model import Column, Position, TableName, WireType
from penstock.render.digest_spool import DigestSpool, count_parts, digest_documents, find_unequal
from penstock.search import STORED_DOCUMENTS

DOCUMENTS = st.dictionaries(
    st.sampled_from([f"id{number}" for number in range(12)]),
    st.tuples(st.sampled_from(['{"a":1}', '{"a":2}', "{}"]), st.sampled_from([None, "q", "r"])),
)


@pytest.mark.parametrize(
    ("source", "stored", "detail"),
    [
        ('{"a":1,"b":2}', '{"a":1,"b":3}', "b is 2, the index has 3"),
        ('{"a":{"b":[1,2]}}', '{"a":{"b":[1,3]}}', "a.b[1] is 2, the index has 3"),
        ('{"a":[1]}', '{"a":[1,2]}', "a has 1 entries, the index has 2"),
        ('{"a":1}', "{}", "a is 1, the index lacks it"),
        ("{}", '{"a":1}', "a does not exist, the index has 1"),
        ('{"a":1.10}', '{"a":1.2}', 'a is "1.10", the index has "1.2"'),
    ],
)
def test_the_first_difference_is_told(source: str, stored: str, detail: str) -> None:
    assert describe_difference(DocumentState(source), DocumentState(stored)) == detail


def test_documents_are_equal_by_their_json_and_routing() -> None:
    state = DocumentState('{"a":1.50,"b":null}', "r")
    assert state.equals(DocumentState('{ "b": null, "a": 1.5 }', "r", version=7))
    assert not state.equals(DocumentState('{"a":1.50,"b":null}', None))
    assert not state.equals(DocumentState('{"a":1.5000000000000000001,"b":null}', "r"))
    assert "routing" in describe_difference(state, DocumentState(state.text, None))


@given(DOCUMENTS, DOCUMENTS, st.integers(1, 5))
def test_unequal_documents_are_found_whatever_the_parts(
    source: Mapping[str, tuple[str, str | None]], stored: Mapping[str, tuple[str, str | None]], parts: int
) -> None:
    with DigestSpool(parts) as left, DigestSpool(parts) as right:
        for spool, documents in ((left, source), (right, stored)):
            for some in (dict(list(documents.items())[::2]), dict(list(documents.items())[1::2])):
                spool.add(digest_table(some))
        unequal = {name: routings for page in find_unequal(left, right) for name, routings in page.items()}
    names = source.keys() | stored.keys()
    assert unequal == {
        name: {stored[name][1]} if name in stored else set() for name in names if source.get(name) != stored.get(name)
    }


def test_documents_that_are_stored_twice_are_unequal() -> None:
    with DigestSpool(2) as left, DigestSpool(2) as right:
        left.add(digest_table({"a": ("{}", None), "b": ("{}", None)}))
        for _ in range(2):
            right.add(digest_table({"a": ("{}", None)}))
        right.add(digest_table({"b": ("{}", None)}))
        unequal = {name: routings for page in find_unequal(left, right) for name, routings in page.items()}
    assert unequal == {"a": {None}}


def digest_table(documents: Mapping[str, tuple[str, str | None]]) -> pa.Table:
    texts, routings = ([value[number] for value in documents.values()] for number in range(2))
    return digest_documents(*(pa.array(values, pa.string()) for values in (list(documents), texts, routings)))


def test_the_size_of_a_part_is_bounded() -> None:
    assert [count_parts(number) for number in (0, 10, 1_000_000, 10**9)] == [1, 1, 5, 256]


@dataclass
class Scene:
    """A database with one document, an index, and a script of what happens at each wait."""

    source: str | None
    stored: tuple[str, int] | None
    script: list[Any] = field(default_factory=list[Any])
    waits: int = 0
    requirement: None = None

    graph: Any = field(
        default_factory=lambda: SimpleNamespace(root=SimpleNamespace(key=(Column("id", WireType.LONG),)))
    )

    def open_view(self) -> AbstractContextManager[None]:
        return nullcontext()

    def build_documents(self, keys: list[Any]) -> BuiltDocuments:
        present = keys if self.source is not None else []
        texts = pa.array([self.source] * len(present), pa.string())
        return BuiltDocuments(present, [str(key[0]) for key in present], texts, None)

    def build_pages(self, _size: int) -> list[BuiltDocuments]:
        return []

    def read_documents(self, wanted: list[tuple[str, str | None]]) -> pa.Table:
        rows = [] if self.stored is None else [(wanted[0][0], self.stored[1], None, self.stored[0])]
        return pa.Table.from_pylist(
            [dict(zip(STORED_DOCUMENTS.names, row, strict=True)) for row in rows], STORED_DOCUMENTS
        )

    def source_end(self) -> Position:
        return Position("binlog.000001", 4)

    def find_requirement(self) -> None:
        return None

    def wait_applied(self, _position: Position) -> str:
        if self.waits < len(self.script):
            for name, value in self.script[self.waits].items():
                setattr(self, name, value)
        self.waits += 1
        return ""

    def settle(self, name: str = "7") -> Any:
        scene: Any = self
        return DifferenceCheck(scene, scene, scene, scene, pause=lambda _: None).settle({name: set()})


@pytest.mark.parametrize(
    ("source", "stored", "kind"),
    [("A", None, "missing"), ("A", ("B", 5), "stale"), (None, ("B", 5), "extra")],
)
def test_what_stays_unequal_is_a_difference(source: str | None, stored: tuple[str, int] | None, kind: str) -> None:
    scene = Scene(source, stored)
    (difference,) = scene.settle().differences
    assert difference.kind == kind
    assert scene.waits == 3


@pytest.mark.parametrize("name", ["007", "+7", " 7", "7_0", "٧", "seven", "7:1"])
def test_an_id_that_no_row_can_have_is_extra_whatever_number_it_looks_like(name: str) -> None:
    (difference,) = Scene("A", ("A", 5)).settle(name).differences
    assert (difference.id, difference.kind) == (name, "extra")


def test_tables_that_were_altered_leave_no_verdict() -> None:
    def refuse() -> None:
        raise TableAlteredError("altered")

    scene: Any = Scene("A", None)
    check = DifferenceCheck(scene, scene, scene, scene, require_current=refuse, pause=lambda _: None)
    with pytest.raises(TableAlteredError):
        check.settle({"7": set()})


@pytest.mark.parametrize(
    "script",
    [
        [{"stored": ("A", 6)}],  # the change arrives
        [{}, {"stored": ("A", 6)}],
        [{}, {}, {"stored": ("A", 6)}],
        [{"source": "B"}],  # the index was ahead
        [{"source": "C"}, {"source": "D"}, {"source": "E"}, {"stored": ("E", 6)}],
        [{"stored": ("C", 6)}, {"stored": ("D", 7)}, {"stored": ("C", 8)}, {"stored": ("A", 9)}],  # it flips
        [{"source": None, "stored": None}],
    ],
)
def test_a_change_on_its_way_is_no_difference(script: list[Any]) -> None:
    settled = Scene("A", ("B", 5), script).settle()
    assert settled.differences == []
    assert settled.unsettled == []


def test_what_changes_all_the_time_is_not_settled() -> None:
    settled = Scene("A", ("B", 5), [{"stored": (f"B{number}", number)} for number in range(100)]).settle()
    assert (settled.differences, settled.unsettled) == ([], ["7"])
    assert "changed" in settled.reason


def graph_of(kind: WireType) -> Any:
    key = (Column("id", kind), Column("b", WireType.LONG))
    return SimpleNamespace(root=SimpleNamespace(key=key, table=SimpleNamespace(name="shop.orders")))


@pytest.mark.parametrize(
    ("text", "condition", "ids"),
    [
        ("5..7", "c.`id` >= 5 AND c.`id` <= 7", {"5:1", "7:9"}),
        ("6..", "c.`id` >= 6", {"7:9", "80:1"}),
        ("..5", "c.`id` <= 5", {"-4:1", "5:1"}),
        ("-4..-4", "c.`id` >= -4 AND c.`id` <= -4", {"-4:1"}),
    ],
)
def test_a_range_of_keys_is_one_of_rows_and_of_ids(text: str, condition: str, ids: set[str]) -> None:
    keys = KeyRange.parse(text, graph_of(WireType.LONG))
    assert keys.condition == condition
    names = ["-4:1", "5:1", "7:9", "80:1", "somebody", "x:y", "5", "%#00"]
    assert {name for name in names if keys.has_id(name)} == ids


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("5", WireType.LONG, "FIRST..LAST"),
        ("..", WireType.LONG, "FIRST..LAST"),
        ("a..b", WireType.LONG, "FIRST..LAST"),
        ("7..5", WireType.LONG, "empty"),
        ("1..2", WireType.VARCHAR, "begins with an integer"),
    ],
)
def test_what_is_no_range_is_refused(text: str, kind: WireType, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        KeyRange.parse(text, graph_of(kind))


class Numbers:
    """A table whose key has these values."""

    requirement = None

    def __init__(self, *values: int) -> None:
        self._values = sorted(values)

    def open_view(self) -> AbstractContextManager[None]:
        return nullcontext()

    def read(self, query: Any) -> pa.Table:
        order = self._values if " ASC " in query.sql else self._values[::-1]
        return pa.table({"id": pa.array(order[:1], pa.int64())})


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_a_sample_reads_the_ranges_of_its_documents_and_no_others(share: float) -> None:
    graph = graph_of(WireType.LONG)
    graph.root.table.name = TableName("shop", "orders")
    rows: Any = Numbers(5, 100_000)
    sample = DocumentSample.of(share, graph, rows)
    ranges = [re.fullmatch(r"c\.`id` >= (\d+) AND c\.`id` <= (\d+)", text) for text in sample.conditions()]
    limits = [(int(match[1]), int(match[2])) for match in ranges if match is not None]
    assert len(limits) == len(ranges) <= 300
    numbers = list(range(5, 100_001, 7))
    chosen = sample.choose(pa.array([f"{number}:1" for number in numbers])).tolist()
    assert chosen == [any(low <= number <= high for low, high in limits) for number in numbers]
    assert 0.5 * share < sum(chosen) / len(chosen) <= 1.5 * share
    inside = list(sample.conditions(KeyRange.parse("100..", graph)))
    assert inside
    assert len(inside) <= len(limits)


def test_ids_that_no_row_can_have_are_sampled_by_their_texts() -> None:
    graph = graph_of(WireType.LONG)
    graph.root.table.name = TableName("shop", "orders")
    rows: Any = Numbers(1, 1000)
    names = pa.array([f"nobody {number}" for number in range(1000)])
    count = int(DocumentSample.of(0.2, graph, rows).choose(names).sum())
    assert 150 < count < 250
    empty: Any = Numbers()
    assert list(DocumentSample.of(0.2, graph, empty).conditions()) == [""]
