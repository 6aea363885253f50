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
    "CELL_BYTES": "EVENT_INDEX_BYTES",
    "LOOK_AGAIN_S": "RETRY_S",
    "are_sound": "have_valid_checksums",
    "begin_ids": "reserve_ids",
    "find_marks": "find_xa_events",
    "give_seal": "set_block_checksum",
    "have_not": "step_as_candidate",
    "let_go": "release_folder",
    "mend_utf8": "repair_utf8",
    "seal_of": "block_checksum",
    "take_seal": "take_block_checksum",
    "Beginning": "FirstLoad",
    "keep_loose": "hold_trailing",
    "patience_s": "retry_timeout_s",
    "rhythm": "retry_clock",
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
