"""Client filters in canal's grammar: which tables a client gets, as in `shop\\..*,crm\\.orders`.

Python's `re` can take for ever for a short text, and lets no other thread run meanwhile. What clients send is left to
RE2, which takes time in proportion to the text, and has no look-around and no back references.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from penstock.binlog.arrays import to_arrow_strings
from penstock.errors import ConfigurationError
from penstock.instance.re2_pattern import UnsupportedPatternError, translate_to_re2
from penstock.model import TableName
from penstock.model.table_rules import check_dots, database_part, split_list
from penstock.store.rows_filter import TableFilter

MAX_FILTER_BYTES = 4096
_MAX_REMEMBERED_TABLES = 1 << 16  # a filter remembers for this many tables whether they pass
_MAX_SHOWN_CHARACTERS = 200
_SYNTAX_ERRORS = ("missing", "unexpected", "no argument", "invalid character class", "trailing")
_REMEDY = "a client's filter has no look-around and no back references: put it into the instance's filter"


@lru_cache(maxsize=256)
def parse_client_filter(text: str) -> TableFilter | None:
    """Return the predicate for the tables that a client's filter selects, or None for all tables. The same text gives
    the same object, which remembers its matches. Raises ConfigurationError."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ConfigurationError("the filter is no text in UTF-8") from None
    if size > MAX_FILTER_BYTES:
        raise ConfigurationError(
            f"the filter has {size} bytes, and a client's has at most {MAX_FILTER_BYTES}:"
            " put it into the instance's filter"
        )
    rules = list(split_list(text))
    return _ClientFilter(rules) if rules else None


class _ClientFilter:
    """A predicate for table names that matches any of a client's patterns, and remembers its matches."""

    def __init__(self, rules: list[str]) -> None:
        patterns = [_translate_rule(rule) for rule in rules]
        self._pattern = _match_whole_names(patterns)
        # For statements that belong to a database and to no table in it.
        databases = [translate_to_re2(part) for part in map(database_part, rules) if part is not None]
        self._databases = _match_whole_names(databases) if databases else None
        self._known: dict[TableName, bool] = {}
        if len(patterns) > 1:
            _check_pattern(self._pattern, _quote_filter(", ".join(rules)))

    def __call__(self, table: TableName) -> bool:
        known = self._known.get(table)
        return self._match_tables([table])[0] if known is None else known

    def prepare(self, tables: Collection[TableName]) -> None:
        """Match all new table names in one call: compiling the pattern takes longer than matching a name."""
        new = [table for table in tables if table not in self._known]
        if new:
            self._match_tables(new)

    def _match_tables(self, tables: Sequence[TableName]) -> list[bool]:
        """Match table names against the patterns, and remember the results."""
        passing = _match_all(self._pattern, [_replace_surrogates(str(table)) for table in tables])
        if self._databases is not None:
            for number, table in enumerate(tables):
                if not table.table and not passing[number]:
                    passing[number] = _matches(self._databases, _replace_surrogates(table.schema))
        if len(self._known) + len(tables) > _MAX_REMEMBERED_TABLES:
            self._known = {}
        self._known.update(zip(tables, passing, strict=True))
        return passing


def _replace_surrogates(name: str) -> str:
    """Return a name that can be encoded in UTF-8; characters that cannot are replaced."""
    return name.encode(errors="replace").decode()


def _match_whole_names(patterns: list[str]) -> str:
    """Return a pattern that matches a whole name by any of these patterns."""
    return rf"\A(?:{'|'.join(f'(?:{pattern})' for pattern in patterns)})\z"


def _translate_rule(text: str) -> str:
    """Return one pattern of a filter in RE2's syntax. Raises ConfigurationError for what RE2 cannot do."""
    where = _quote_filter(text)
    check_dots(text, where)
    try:
        pattern = translate_to_re2(text)
    except UnsupportedPatternError as error:
        raise ConfigurationError(f"{where} has {error}: put it into the instance's filter") from None
    _check_pattern(pattern, where)
    _check_pattern(_match_whole_names([pattern]), where)
    return pattern


def _quote_filter(text: str) -> str:
    """Return a filter for an error message, shortened."""
    return f"the filter '{text if len(text) <= _MAX_SHOWN_CHARACTERS else text[:_MAX_SHOWN_CHARACTERS] + '…'}'"


def _check_pattern(pattern: str, where: str) -> None:
    """Raise ConfigurationError for a pattern that RE2 refuses."""
    try:
        _matches(pattern, "")
    except pa.ArrowInvalid as error:
        problem = str(error).removeprefix("Invalid regular expression: ")[:_MAX_SHOWN_CHARACTERS]
        if problem.startswith(_SYNTAX_ERRORS):
            raise ConfigurationError(f"{where} is no regular expression: {problem}") from None
        raise ConfigurationError(f"{where} cannot be used, {problem}; {_REMEDY}") from None


def _matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a name, ignoring case."""
    return _match_all(pattern, [name])[0]


def _match_all(pattern: str, names: Sequence[str]) -> list[bool]:
    """Return for each name whether the pattern matches, ignoring case."""
    return pc.match_substring_regex(to_arrow_strings(names), pattern=pattern, ignore_case=True).to_pylist()
