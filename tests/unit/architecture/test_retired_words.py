"""Names that were replaced by the field's words stay out: docs/concepts.md has the words that are used instead."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
# What was → what the field says.
RETIRED = {
    "FixedConf": "FixedConfig",
    "OwnDestination": "LocalDestination",
    "hindrance": "unready_reason",
    "hindrances": "unready_reasons",
    "in_turn": "run_all_steps",
    "taken_over": "open_for_change",
    "undisturbed": "defer_signals",
    "Bookkeeping": "MetaStores",
    "Books": "StoreIndex",
    "Census": "StoreStats",
    "CommitPlace": "CommitPlacement",
    "KeptMeta": "PersistentMetaManager",
    "Kinship": "LogMatch",
    "Lineage": "LogIdentity",
    "MemoryMeta": "MetaManager",
    "Patience": "CandidacyBackoff",
    "Roster": "ClientRegistry",
    "Shelf": "BlockStorage",
    "StateBook": "StateTracker",
    "is_anew": "is_reset",
}
WORDS = re.compile(rf"\b\w*({'|'.join(RETIRED)})\b")


def test_no_retired_name_is_used() -> None:
    folders = [ROOT / name for name in ("src", "docs", "tests", "benchmarks")]
    files = [path for folder in folders for path in folder.rglob("*.*") if path.suffix in {".py", ".md"}]
    assert len(files) > 500
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]} (say {RETIRED[match[1]]})"
        for path in files
        if path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in WORDS.finditer(line)
    ]
    assert not found
