"""Names and phrases that were replaced by the field's words stay out: docs/concepts.md has the words that are used
instead."""

import ast
import re
from collections.abc import Iterator
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
    "Gate": "StoreLock",
    "Held": "BlockInfo",
    "Lane": "MemberQueue or BulkSender",
    "Papers": "TestCertificates",
    "Rhythm": "TimeSource",
    "Seat": "Membership",
    "Teller": "ProgressWriter",
    "PATIENCE_S": "TIMEOUT_S",
    "shelf_of": "storage_of",
}
# Phrases, in text and in names.
PHRASES = {
    r"anew": "again, from the start",
    r"(comes?|came|coming)[ _]again": "is redelivered, is read again",
    r"(goes|go|going|gone|went)[ _]on": "resumes, continues",
    r"(gives?|gave|given|giving)[ _]way": "is evicted",
    r"(for|prepared)[ _]so[ _]long": "this long",
    r"mend(s|ed|ing)?": "repair, correct",
    r"whence|thereby": "from where, so that",
    r"(shelf|shelves|roster|kinship|patience|census)": "storage, registry, log match, timeout, statistics",
}
# Names of variables, parameters and functions that say nothing about what they hold.
VAGUE = frozenset({"about", "found", "how", "more", "one", "place", "places", "several"})
EXEMPT = {
    "src/penstock/meta/source_record.py": {"anew"},  # a key of source.json
}
HERE = Path(__file__).parent.relative_to(ROOT).as_posix()  # has the words to look for
WORDS = re.compile(rf"\b\w*({'|'.join(RETIRED)})\b")
IDIOMS = re.compile(rf"(?<![a-z])({'|'.join(PHRASES)})(?![a-z])", re.IGNORECASE)
FOLDERS = ("src", "docs", "tests", "benchmarks", "tools")


def files(*suffixes: str) -> list[Path]:
    """Return the files with these suffixes that the rules are for."""
    folders = [path for name in FOLDERS for path in (ROOT / name).rglob("*.*")]
    paths = [*folders, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return [
        path
        for path in paths
        if path.suffix in suffixes and not path.relative_to(ROOT).as_posix().startswith(f"{HERE}/")
    ]


def lines_with(pattern: "re.Pattern[str]", paths: list[Path]) -> Iterator[tuple[str, "re.Match[str]"]]:
    """Yield where a pattern matches, as FILE:LINE."""
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in pattern.finditer(line):
                if match[1].lower() not in EXEMPT.get(name, ()):
                    yield f"{name}:{number}", match


def vague_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of variables, parameters and functions whose name says nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        else:
            continue
        if name in VAGUE:
            yield getattr(node, "lineno", 0), name


def test_no_retired_name_is_used() -> None:
    paths = files(".py", ".md")
    assert len(paths) > 500
    assert not [f"{at}: {match[0]} (say {RETIRED[match[1]]})" for at, match in lines_with(WORDS, paths)]


def test_no_retired_phrase_is_used() -> None:
    assert not [f"{at}: {match[1]}" for at, match in lines_with(IDIOMS, files(".py", ".md"))]


def test_names_say_what_they_hold() -> None:
    assert not [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in files(".py")
        for line, name in vague_names(ast.parse(path.read_text(encoding="utf-8")))
    ]
