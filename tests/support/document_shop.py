"""A shop for document tests: its tables, a database in memory that answers the SQL of documents, and an index.

The database is SQLite, which reads the SELECTs of documents after a few words of MySQL are taken out of them.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.document import DOCUMENT_DECODING, DocumentGraph, DocumentSpec
from penstock.document.graph_builder import resolve_spec
from penstock.model import Column, LogRequirement, TableName, TableSchema, WireType
from penstock.search.index import DOCUMENT_IDS, IndexLayout, Rejection, WriteReport
from penstock.snapshot.columns import RowDecoder
from penstock.snapshot.source_rows import SelectQuery


def integer(name: str, **attributes: Any) -> Column:
    return Column(name, WireType.LONG, **attributes)


def text(name: str) -> Column:
    return Column(name, WireType.VARCHAR, charset="utf8mb4")


def table(name: str, *columns: Column, key: Sequence[str] = ("id",)) -> TableSchema:
    return TableSchema(TableName("shop", name), columns, tuple(key))


ORDERS, CUSTOMER, COUNTRY, LINE, PRODUCT, TAG, ORDER_TAG = (
    TableName("shop", name) for name in ("orders", "customer", "country", "order_line", "product", "tag", "order_tag")
)
TABLES = {
    schema.name: schema
    for schema in (
        table(
            "orders",
            integer("id"),
            text("number"),
            text("state"),
            Column("total", WireType.NEWDECIMAL, precision=10, scale=2),
            Column("made", WireType.DATETIME2),
            Column("deleted_at", WireType.DATETIME2),
            integer("is_deleted"),
            integer("customer_id"),
            integer("parent_id"),
            text("note"),
        ),
        table("customer", integer("id"), text("name"), text("city"), integer("country_id")),
        table("country", integer("id"), text("name"), text("code")),
        table(
            "order_line",
            integer("order_id"),
            integer("position"),
            integer("quantity"),
            integer("product_id"),
            key=("order_id", "position"),
        ),
        table("product", integer("id"), text("name")),
        table("tag", integer("id"), text("name")),
        table("order_tag", integer("order_id"), integer("tag_id"), key=("order_id", "tag_id")),
    )
}

CUSTOMER_JOIN: dict[str, Any] = {
    "table": "shop.customer",
    "on": {"customer_id": "id"},
    "fields": ["name", "city"],
    "joins": {"country": {"table": "shop.country", "on": {"country_id": "id"}, "fields": ["name"]}},
}
LINES_JOIN: dict[str, Any] = {
    "table": "shop.order_line",
    "many": True,
    "on": {"id": "order_id"},
    "fields": ["quantity"],
    "joins": {"product": {"table": "shop.product", "on": {"product_id": "id"}, "fields": ["name"]}},
}
TAGS_JOIN: dict[str, Any] = {
    "table": "shop.tag",
    "many": True,
    "through": {"table": "shop.order_tag", "on": {"id": "order_id"}, "to": {"tag_id": "id"}},
    "order": "name",
    "fields": ["name"],
}


def spec_of(joins: Mapping[str, Any] | None = None, **root: Any) -> DocumentSpec:
    """Return the spec of an index of orders; `root` adds to what is said about the root table."""
    content = {"table": "shop.orders", "fields": ["number"], "joins": joins or {}} | root
    return DocumentSpec.model_validate({"index": "orders", "root": content})


def graph_of(joins: Mapping[str, Any] | None = None, **root: Any) -> DocumentGraph:
    """Return the graph of such a spec."""
    return resolve_spec(spec_of(joins, **root), TABLES)


class MemoryRows:
    """A DocumentRows over tables in memory. Reads are refused outside of a view, and views inside of views."""

    def __init__(self, tables: Mapping[TableName, TableSchema] = TABLES) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("ATTACH ':memory:' AS shop")
        self.connection.create_function("IF", 3, lambda condition, yes, no: yes if condition else no)
        for schema in tables.values():
            columns = ", ".join(f"`{column.name}`" for column in schema.columns)
            self.connection.execute(f"CREATE TABLE shop.`{schema.name.table}` ({columns})")
        self.statements: list[str] = []
        self.failures: list[Exception] = []  # of the next reads
        self.views = 0
        self.requirement: LogRequirement | None = None
        self._is_open = False

    def insert(self, name: str, *rows: Sequence[Any], columns: str = "") -> None:
        """Add rows to a table."""
        for row in rows:
            marks = ", ".join("?" * len(row))
            self.connection.execute(f"INSERT INTO shop.`{name}` {columns} VALUES ({marks})", tuple(row))

    def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def open_view(self) -> Iterator[None]:
        assert not self._is_open, "a view is open already"
        self._is_open = True
        self.views += 1
        try:
            yield
        finally:
            self._is_open = False

    def read(self, query: SelectQuery) -> pa.Table:
        assert self._is_open, "a read outside of a view"
        self.statements.append(query.sql)
        if self.failures:
            raise self.failures.pop(0)
        sql = query.sql.replace("STRAIGHT_JOIN ", "")
        sql = sql.replace("CONVERT(", "CAST(").replace(" USING utf8mb4)", " AS TEXT)")
        rows = self.connection.execute(sql).fetchall()
        schema = RowDecoder(query.columns, DOCUMENT_DECODING).schema
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def stream(self, query: SelectQuery) -> Iterator[pa.RecordBatch]:
        yield from self.read(query).to_batches(max_chunksize=3)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array([None if value is None else Decimal(str(value)) for value in values], kind)
    return pa.array(values, kind)


class MemoryIndex:
    """An index in memory, which keeps the versions of deleted documents, too."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str | None], tuple[int, Any]] = {}
        self.writes: list[list[dict[str, Any]]] = []
        self.refused: dict[str, str] = {}  # reasons by id
        self.fields: dict[str, Any] = {}
        self.layout: IndexLayout | None = None
        self.epochs: list[int] = []  # that were claimed

    def write(self, operations: pa.Table) -> WriteReport:
        rows = operations.to_pylist()
        self.writes.append(rows)
        names = [(row["id"], row["routing"] or None) for row in rows]  # no index tells an empty routing from none
        assert len(set(names)) == len(names), "operations are unique by id and routing"
        written = deleted = stale = 0
        rejected: list[Rejection] = []
        for name, row in zip(names, rows, strict=True):
            if row["document"] is not None and row["id"] in self.refused:
                rejected.append(Rejection(row["id"], self.refused[row["id"]], row["version"], document=row["document"]))
            elif row["version"] < self.entries.get(name, (-1, None))[0]:
                stale += 1
            else:
                document = None if row["document"] is None else json.loads(row["document"])
                self.entries[name] = row["version"], document
                written, deleted = written + (document is not None), deleted + (document is None)
        return WriteReport(written, deleted, stale, tuple(rejected))

    @property
    def documents(self) -> dict[str, Any]:
        return {name: document for (name, _), (_, document) in self.entries.items() if document is not None}

    @property
    def versions(self) -> dict[str, int]:
        """Versions of documents and of deletes."""
        return {name: version for (name, _), (version, _) in self.entries.items()}

    def refresh(self) -> None:
        pass

    def prepare(self, fields: Mapping[str, Any], layout: IndexLayout | None = None) -> None:
        self.fields, self.layout = dict(fields), layout

    def claim_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def scan_ids(self) -> Iterator[pa.Table]:
        return self._list(lambda _: True)

    def find_ids(self, field: str, values: Sequence[str]) -> Iterator[pa.Table]:
        return self._list(lambda document: not set(values).isdisjoint(document.get(field, ())))

    def _list(self, is_wanted: Callable[[Any], bool]) -> Iterator[pa.Table]:
        """Yield ids, one at a time, of what was written before."""
        for (name, routing), (version, document) in list(self.entries.items()):
            if document is not None and is_wanted(document):
                yield pa.table({"id": [name], "version": [version], "routing": [routing]}, schema=DOCUMENT_IDS)


CHANGES = pa.schema(
    [
        pa.field("_change_type", pa.string()),
        pa.field("_table", pa.string()),
        pa.field("before", pa.string()),
        pa.field("after", pa.string()),
        pa.field("ddl", pa.string()),
        pa.field("_changed", pa.list_(pa.string())),
        pa.field("_absent", pa.list_(pa.string())),
        pa.field("_seq", pa.int64()),
    ]
)

Image = Mapping[str, Any]


def change(
    name: TableName, sequence: int, before: Image | None = None, after: Image | None = None, changed: Sequence[str] = ()
) -> dict[str, Any]:
    """Return one change of a row; which columns an update changed is said, or seen in the images."""
    kind = "insert" if before is None else "delete" if after is None else "update"
    if before is not None and after is not None and not changed:
        changed = [column for column in after if before.get(column) != after[column]]
    return {
        "_change_type": kind,
        "_table": str(name),
        "before": None if before is None else json.dumps(before, ensure_ascii=False),
        "after": None if after is None else json.dumps(after, ensure_ascii=False),
        "ddl": None,
        "_changed": list(changed) if kind == "update" else None,
        "_seq": sequence,
    }


def statement(ddl: str, sequence: int, name: str = "shop.orders") -> dict[str, Any]:
    """Return one statement of the log."""
    return {"_change_type": "ddl", "_table": name, "ddl": ddl, "_seq": sequence}


def batch(*rows: Mapping[str, Any]) -> pa.Table:
    """Return changes and statements as a batch of the stream."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=CHANGES)


def order(key: int, **columns: Any) -> dict[str, Any]:
    """Return a row image of an order."""
    image = {column.name: None for column in TABLES[ORDERS].columns}
    return image | {"id": key, "number": f"N{key}", "state": "open"} | columns
