"""The embedded index against a dictionary, through random writes, deletes, replays, purges and reopenings."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.search import WriteReport
from penstock.search.embedded import EmbeddedIndex
from tests.support.search_contract import FIELDS, contents, search_ids, table

RETENTION_S = 1000.0
WORDS = ("lamp", "chair", "table")

Batch = dict[str, tuple[int, dict[str, Any] | None]]
BATCHES = st.dictionaries(
    st.sampled_from("abcde"),
    st.tuples(st.integers(0, 5), st.none() | st.builds(lambda word: {"name": word}, st.sampled_from(WORDS))),
    max_size=5,
)


class EmbeddedIndexMachine(RuleBasedStateMachine):
    """`held` is what the index must know: the last applied operation of each id, with the time of a delete."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-model-"))
        self.now = 1_700_000_000.0
        self.held: dict[str, tuple[int, dict[str, Any] | None, float]] = {}
        self.written: list[Batch] = []

    @initialize()
    def make(self) -> None:
        self.open()
        self.index.prepare(FIELDS)

    def open(self) -> None:
        self.index = EmbeddedIndex.open(self.folder, tombstone_retention_s=RETENTION_S, clock=lambda: self.now)

    def teardown(self) -> None:
        self.index.close()
        shutil.rmtree(self.folder)

    @rule(batch=BATCHES)
    def write(self, batch: Batch) -> None:
        report = self.index.write(table(*((key, version, document) for key, (version, document) in batch.items())))
        taken = {key: rest for key, rest in batch.items() if rest[0] >= self.held.get(key, (-1,))[0]}
        deleted = sum(document is None for _, document in taken.values())
        assert report == WriteReport(len(taken) - deleted, deleted, len(batch) - len(taken))
        self.held |= {key: (version, document, self.now) for key, (version, document) in taken.items()}
        self.written.append(batch)

    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        if self.written:
            self.write(data.draw(st.sampled_from(self.written)))

    @rule()
    def reopen(self) -> None:
        self.index.close()
        self.open()

    @rule()
    def forget_deletes(self) -> None:
        """A write after the retention purges; what was deleted before is as if it had never been."""
        self.now += 2 * RETENTION_S
        self.index.write(table())
        self.held = {key: held for key, held in self.held.items() if held[1] is not None}

    @invariant()
    def shows_what_is_held(self) -> None:
        living = {key: (version, document) for key, (version, document, _) in self.held.items() if document is not None}
        assert contents(self.index) == living
        assert self.index.count() == len(living)
        for word in WORDS:
            assert search_ids(self.index, word[:3]) == {
                key for key, (_, document) in living.items() if document["name"] == word
            }
        for key in "abcde":
            assert self.index.get(key) == (living[key][1] if key in living else None)


EmbeddedIndexMachine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=12,
    # Twelve steps are short enough to read; shrinking them, at a commit each, would end in the test's timeout.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestEmbeddedIndexAgainstADictionary = EmbeddedIndexMachine.TestCase
