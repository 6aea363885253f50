"""How far the snapshots of a query are, as its offsets have it.

A query that begins with a snapshot delivers a table chunk by chunk, in the order of its key. Each chunk is delivered as
the table was at the position of the offset, and from there on the changes of its rows are delivered. Changes of rows
that were not delivered yet are left out: the chunk that has these rows will have them.

Everything a restart needs is in the offset: of each table the last key that was delivered.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.model import TableName

Limit = tuple[str, ...] | None
"""A key at which a chunk ends, as texts; None for the end of the table."""


@dataclass(frozen=True, slots=True)
class TableState:
    """The progress of the snapshot of one table: the last key that was delivered."""

    done: Limit = None  # the last key that was delivered; None before the first chunk
    key: tuple[str, ...] = ()  # columns of the key; known from the first chunk on
    key_description: str = ""  # fingerprint of all that the order of keys depends on
    rows: int = 0  # that were planned, by estimate
    estimated_rows: int = 0
    is_complete: bool = False
    is_repeated: bool = False  # the table was delivered before: all its changes are delivered
    begin: Limit = None  # the key behind which the chunks of the last batch begin
    chunks: tuple[Limit, ...] = ()  # where they end
    is_paused: bool = False  # the last batch has no chunk of it, because snapshots are paused
    is_catching_up: bool = False  # the same, because the query is far behind the source's log

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "TableState":
        """Parse the state of one table from the JSON of a streaming offset in Spark's checkpoint."""
        return cls(
            _limit(fields.get("done")),
            tuple(fields.get("key", ())),
            fields.get("key_description", ""),
            fields.get("rows", 0),
            fields.get("estimated_rows", 0),
            fields.get("complete", False),
            fields.get("repeated", False),
            _limit(fields.get("begin")),
            tuple(map(_limit, fields.get("chunks", ()))),
            fields.get("paused", False),
            fields.get("catching_up", False),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the state as an offset has it, with the percentage that people look for."""
        percent = 100.0 if self.is_complete else min(99.0, 100 * self.rows / max(1, self.estimated_rows))
        fields = {
            "percent": round(percent, 1),
            "rows": self.rows,
            "estimated_rows": self.estimated_rows,
            "done": _texts(self.done),
            "key": list(self.key),
            "key_description": self.key_description,
            "begin": _texts(self.begin),
            "chunks": [_texts(limit) for limit in self.chunks],
            "complete": self.is_complete,
            "repeated": self.is_repeated,
            "paused": self.is_paused,
            "catching_up": self.is_catching_up,
        }
        return {name: value for name, value in fields.items() if value or name in {"percent", "rows", "done"}}

    def with_chunks(self, plan: Mapping[str, Any]) -> "TableState":
        """Return the state after the chunks that a server has planned; the same state when there are none."""
        limits = tuple(_limit(chunk["until"]) for chunk in plan["chunks"])
        if not limits:
            return self
        return replace(
            self,
            done=limits[-1],
            key=tuple(plan["key"]),
            key_description=plan["key_description"],
            rows=self.rows + sum(chunk["rows"] for chunk in plan["chunks"]),
            estimated_rows=max(self.estimated_rows, plan["estimated_rows"]),
            is_complete=limits[-1] is None,
            begin=self.done,
            chunks=limits,
        )

    @property
    def bounds(self) -> list[tuple[Limit, Limit]]:
        """Return the bounds of the chunks that the last batch has delivered."""
        return list(zip((self.begin, *self.chunks), self.chunks, strict=False))


@dataclass(frozen=True, slots=True)
class PendingTable:
    """A table whose snapshot is incomplete: only changes of the rows delivered so far are delivered."""

    key: tuple[str, ...]
    done: Limit  # None: nothing was


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """The progress of the snapshots of a query, by table."""

    tables: dict[TableName, TableState] = field(default_factory=dict[TableName, TableState])
    requests: dict[str, int] = field(default_factory=dict[str, int])  # to read tables again, that were heard

    @classmethod
    def from_offset(cls, offset: Mapping[str, Any]) -> "SnapshotState":
        """Return the state that an offset has."""
        tables = {TableName.parse(name): TableState.from_json(state) for name, state in _section(offset).items()}
        return cls(tables, dict(offset.get("again", {})))

    @classmethod
    def begin(cls, tables: Iterable[TableName], requests: Mapping[str, int]) -> "SnapshotState":
        """Return the state of a new query, which has to deliver all of its tables."""
        return cls({table: TableState() for table in tables}, dict(requests))

    def to_json(self) -> dict[str, Any]:
        """Return what an offset has of this."""
        tables = {str(table): state.to_json() for table, state in self.tables.items()}
        return ({"snapshot": tables} if tables else {}) | ({"again": self.requests} if self.requests else {})

    def advance(
        self, wanted: Iterable[TableName], known: Iterable[TableName], requests: Mapping[str, int]
    ) -> "SnapshotState":
        """Return the state in which the next batch is planned: without tables that are complete, or not `wanted` any
        more; with those that were not `known` before, and those that are to be read again."""
        wanted, known = list(wanted), set(known)
        tables = {
            table: replace(state, begin=None, chunks=(), is_paused=False, is_catching_up=False)
            for table, state in self.tables.items()
            if table in wanted and not state.is_complete
        }
        heard = dict(self.requests)
        for table in wanted:
            number = requests.get(str(table), 0)
            if table not in known and table not in tables:
                tables[table] = TableState()
                if number:
                    heard[str(table)] = number  # the first delivery has what an earlier request asked for
            if number > heard.get(str(table), 0) and (table not in tables or tables[table].is_repeated):
                heard[str(table)] = number  # else when it was delivered for the first time
                tables[table] = TableState(is_repeated=True)
        return replace(self, tables=tables, requests=heard)

    @property
    def has_chunks(self) -> bool:
        """Return whether the batch of this state has chunks of tables."""
        return any(state.chunks for state in self.tables.values())

    def mark_paused(self) -> "SnapshotState":
        """Return the state of a batch without chunks, although tables are not complete: snapshots are paused."""
        tables = {table: replace(state, is_paused=True) for table, state in self.tables.items()}
        return replace(self, tables=tables)

    def mark_catching_up(self) -> "SnapshotState":
        """Return the state of a batch without chunks: the query is too far behind the source's log to read them."""
        tables = {table: replace(state, is_catching_up=True) for table, state in self.tables.items()}
        return replace(self, tables=tables)

    def pending(self, wanted: Iterable[TableName], known: Iterable[TableName]) -> dict[TableName, PendingTable]:
        """Return the tables of which not all changes are delivered in a batch that begins in this state."""
        known, tables = set(known), dict[TableName, PendingTable]()
        for table in wanted:
            state = self.tables.get(table)
            if state is None and table not in known:
                tables[table] = PendingTable((), None)
            elif state is not None and not state.is_complete and not state.is_repeated:
                tables[table] = PendingTable(state.key, state.done)
        return tables


def known_tables(offset: Mapping[str, Any]) -> set[TableName]:
    """Return the tables that an offset was made for."""
    return {TableName.parse(name) for name in str(offset.get("tables") or "").split(",") if name}


def _section(offset: Mapping[str, Any]) -> Mapping[str, Any]:
    return offset.get("snapshot") or {}


def _texts(limit: Limit) -> list[str] | None:
    """Return a limit as JSON has it: Spark compares offsets with what it has read of them."""
    return None if limit is None else list(limit)


def _limit(texts: Iterable[str] | None) -> Limit:
    return None if texts is None else tuple(texts)
