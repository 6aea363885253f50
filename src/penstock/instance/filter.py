"""Which tables a client wants to see, as canal writes it: `shop\\..*,crm\\.orders`.

Python's `re` can take for ever for a short text, and lets no other thread run meanwhile. What clients send is left to
RE2, which takes time in proportion to the text, and has no look-around and no back references.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from penstock.binlog.arrays import to_arrow_strings
from penstock.errors import ConfigurationError
from penstock.instance.linear_pattern import UnsupportedPatternError, linear_pattern
from penstock.model import TableName
from penstock.model.table_rules import check_dots, database_part, split_list
from penstock.store.client import TableFilter

MOST_BYTES = 4096
_MOST_TABLES = 1 << 16  # of which a filter remembers whether they pass
_SHOWN = 200
_MISTAKES = ("missing", "unexpected", "no argument", "invalid character class", "trailing")
_REMEDY = "a client's filter has no look-around and no back references: put it into the instance's filter"


@lru_cache(maxsize=256)
def table_filter(text: str) -> TableFilter | None:
    """None for all tables. The same for the same text: it remembers what it has found out."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ConfigurationError("the filter is no text in UTF-8") from None
    if size > MOST_BYTES:
        raise ConfigurationError(
            f"the filter has {size} bytes, and a client's has at most {MOST_BYTES}: put it into the instance's filter"
        )
    rules = list(split_list(text))
    return _ClientFilter(rules) if rules else None


class _ClientFilter:
    def __init__(self, rules: list[str]) -> None:
        several = [_checked(rule) for rule in rules]
        self._pattern = _whole(several)
        # Of statements that belong to a database and to no table in it.
        components = [linear_pattern(part) for part in map(database_part, rules) if part is not None]
        self._databases = _whole(components) if components else None
        self._known: dict[TableName, bool] = {}
        if len(several) > 1:
            _try(self._pattern, _where(", ".join(rules)))

    def __call__(self, table: TableName) -> bool:
        known = self._known.get(table)
        return self._decide([table])[0] if known is None else known

    def prepare(self, tables: Collection[TableName]) -> None:
        """Match all of these that are new in one call: to compile the pattern takes longer than to match a name."""
        new = [table for table in tables if table not in self._known]
        if new:
            self._decide(new)

    def _decide(self, tables: Sequence[TableName]) -> list[bool]:
        passing = _match_all(self._pattern, [_plain(str(table)) for table in tables])
        if self._databases is not None:
            for number, table in enumerate(tables):
                if not table.table and not passing[number]:
                    passing[number] = _matches(self._databases, _plain(table.schema))
        if len(self._known) + len(tables) > _MOST_TABLES:
            self._known = {}
        self._known.update(zip(tables, passing, strict=True))
        return passing


def _plain(name: str) -> str:
    return name.encode(errors="replace").decode()


def _whole(patterns: list[str]) -> str:
    """A pattern for any of these, from its beginning to its end."""
    return rf"\A(?:{'|'.join(f'(?:{one})' for one in patterns)})\z"


def _checked(text: str) -> str:
    where = _where(text)
    check_dots(text, where)
    try:
        pattern = linear_pattern(text)
    except UnsupportedPatternError as error:
        raise ConfigurationError(f"{where} has {error}: put it into the instance's filter") from None
    _try(pattern, where)
    _try(_whole([pattern]), where)
    return pattern


def _where(text: str) -> str:
    return f"the filter '{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}'"


def _try(pattern: str, where: str) -> None:
    try:
        _matches(pattern, "")
    except pa.ArrowInvalid as error:
        problem = str(error).removeprefix("Invalid regular expression: ")[:_SHOWN]
        if problem.startswith(_MISTAKES):
            raise ConfigurationError(f"{where} is no regular expression: {problem}") from None
        raise ConfigurationError(f"{where} cannot be used, {problem}; {_REMEDY}") from None


def _matches(pattern: str, name: str) -> bool:
    return _match_all(pattern, [name])[0]


def _match_all(pattern: str, names: Sequence[str]) -> list[bool]:
    return pc.match_substring_regex(to_arrow_strings(names), pattern=pattern, ignore_case=True).to_pylist()
