"""Apt's sources files, read as text and rewritten for another suite.

Invariant: no address is made up here. What comes out names the archives that came in, and only those of them that
carry the distribution itself: a vendor's archive has no other suite to offer.
"""

import re
from collections.abc import Iterator
from pathlib import Path

# A distribution's main archive is named by suite or codename alone; `-updates`, `-security`, `-backports`,
# `-pgdg` and the like are additions to one release and do not exist for another.
_MAIN_SUITE = re.compile(r"[a-z]+")
_LIST_LINE = re.compile(r"deb\s+(?P<options>\[[^\]]*\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>\S.*)")
_FIELD = re.compile(r"(?P<name>[A-Za-z0-9-]+):(?P<value>.*(?:\n[ \t].*)*)")
_NO = {"no", "false", "without", "off", "disable"}


def read_sources(main: Path, parts: Path) -> dict[str, str]:
    """Return the texts of the machine's sources files by file name; a file that apt would not read is left out."""
    candidates = [main, *(sorted(parts.iterdir()) if parts.is_dir() else [])]
    return {path.name: path.read_text(encoding="utf-8") for path in candidates if _is_sources_file(path)}


def rewrite_for_suite(name: str, text: str, suite: str) -> str:
    """Return the text of a sources file with the distribution's own suite replaced and everything else left out."""
    lines = _rewrite_lines(text, suite) if name.endswith(".list") else _rewrite_stanzas(text, suite)
    return "".join(lines)


def _is_sources_file(path: Path) -> bool:
    """Tell whether apt would read a file."""
    return path.suffix in {".list", ".sources"} and path.is_file()


def _rewrite_lines(text: str, suite: str) -> Iterator[str]:
    """Yield the lines of a one-line-style file for another suite."""
    for line in text.splitlines():
        match = _LIST_LINE.match(line.partition("#")[0].strip())
        if match and _MAIN_SUITE.fullmatch(match["suite"]) and "main" in match["components"].split():
            yield f"deb {match['options'] or ''}{match['uri']} {suite} {match['components']}\n"


def _rewrite_stanzas(text: str, suite: str) -> Iterator[str]:
    """Yield the stanzas of a deb822 file for another suite."""
    without_comments = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", without_comments):
        fields = {match["name"].lower(): match["value"].strip() for match in _FIELD.finditer(stanza)}
        if not _is_distribution(fields):
            continue
        fields |= {"types": "deb", "suites": suite}
        yield "".join(f"{name}: {value}\n" for name, value in fields.items()) + "\n"


def _is_distribution(fields: dict[str, str]) -> bool:
    """Tell whether a stanza is of the distribution's own archive."""
    return (
        "deb" in fields.get("types", "").split()
        and fields.get("enabled", "yes").lower() not in _NO
        and any(_MAIN_SUITE.fullmatch(suite) for suite in fields.get("suites", "").split())
        and "main" in fields.get("components", "").split()
    )
