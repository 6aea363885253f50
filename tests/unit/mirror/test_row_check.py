"""Verdicts about rows that change while they are looked at, and what differs told in words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from penstock.mirror.comparison import RowComparison
from penstock.mirror.mirror_column import MirrorColumn
from penstock.mirror.row_check import RowCheck
from penstock.model import Column, WireType

ID = MirrorColumn.of(Column("id", WireType.LONG), pa.int32(), pa.int32())
NAME = MirrorColumn.of(Column("name", WireType.VARCHAR, size=9, charset="utf8mb4"), pa.string(), pa.string())
DOCUMENT = MirrorColumn.of(Column("name", WireType.JSON, size=4), pa.string(), pa.string())


@dataclass
class Scene:
    """A table and a mirror with one row, and a script of what happens at each wait."""

    source: str | None
    mirror: str | Sequence[str] | None
    script: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    waits: int = 0

    def find_requirement(self) -> None:
        return None

    def require(self, _requirement: None) -> None:
        return None

    def wait_applied(self) -> str:
        if self.waits < len(self.script):
            for name, value in self.script[self.waits].items():
                setattr(self, name, value)
        self.waits += 1
        return ""

    def read_keys(self, _comparison: RowComparison, _ids: Sequence[str]) -> list[pa.RecordBatch]:
        return batches(self.source)

    def settle(self, pair: MirrorColumn = NAME) -> Any:
        scene: Any = self
        comparison = RowComparison((ID, pair), (ID,))
        return RowCheck(comparison, scene, Mirrored(self), scene, pause=lambda _: None).settle(["7"])


def batches(names: str | Sequence[str] | None) -> list[pa.RecordBatch]:
    values = [] if names is None else [names] if isinstance(names, str) else list(names)
    return [pa.record_batch({"id": pa.array([7] * len(values), pa.int32()), "name": pa.array(values, pa.string())})]


class Mirrored:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scene, name)

    def read_keys(self, _comparison: RowComparison, _ids: Sequence[str]) -> list[pa.RecordBatch]:
        return batches(self._scene.mirror)


@pytest.mark.parametrize(
    ("source", "mirror", "text"),
    [
        ("A", None, "missing id=7: the mirror does not have it"),
        ("A", "B", 'stale id=7: name is "A", the mirror has "B"'),
        (None, "B", "extra id=7: the table has no such row"),
        ("A", ["A", "A"], "extra id=7: the mirror has it 2 times"),
        ("A", ["B", "C"], 'stale id=7: name is "A", the mirror has "B"'),
    ],
)
def test_what_stays_unequal_is_a_difference(source: str | None, mirror: Any, text: str) -> None:
    scene = Scene(source, mirror)
    (difference,) = scene.settle().differences
    assert str(difference) == text
    assert scene.waits == 3


@pytest.mark.parametrize(
    "script",
    [
        [{"mirror": "A"}],  # the change arrives
        [{}, {}, {"mirror": "A"}],
        [{"source": "B"}],  # the mirror was ahead
        [{"source": "C"}, {"source": "D"}, {"source": "E"}, {"mirror": "E"}],
        [{"mirror": "C"}, {"mirror": "D"}, {"mirror": "C"}, {"mirror": "A"}],  # it flips
        [{"source": None, "mirror": None}],
        [{"mirror": ["A", "B"]}, {"mirror": ["A"]}],  # both files of an overwrite
    ],
)
def test_a_change_on_its_way_is_no_difference(script: list[Any]) -> None:
    settled = Scene("A", "B", script).settle()
    assert (settled.differences, settled.unsettled) == ([], 0)


def test_what_changes_all_the_time_is_not_settled() -> None:
    settled = Scene("A", "B", [{"mirror": f"B{number}"} for number in range(100)]).settle()
    assert (settled.differences, settled.unsettled) == ([], 1)
    assert "changed" in settled.reason


def test_documents_are_equal_by_their_json() -> None:
    assert Scene('{"a":1,"b":[2]}', '{ "b": [2], "a": 1 }').settle(DOCUMENT).differences == []
    assert len(Scene('{"a":1}', '{"a":2}').settle(DOCUMENT).differences) == 1
    assert len(Scene('{"a":1}', '{ "a": 1 }').settle(NAME).differences) == 1
