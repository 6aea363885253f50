"""Random tables and random document specs, and what their documents are by plain SELECTs and loops.

Nothing here is shared with the builder of documents. Every table has the same columns: parts of its key and references,
of a few types each, so that any table can be joined to any other, and columns with values.
"""

import base64
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Row = dict[str, Any]

TEXTS = ("", "a", "A", "b", "C", "d'e", "f\\g", "%", "%25", "h:i", "ö", "漢字", 'k"l', "m\nn")
DATES = ("2024-02-29", "1000-01-01", "9999-12-31", "2024-03-01")
KINDS: dict[str, tuple[str, Sequence[Any]]] = {
    "int": ("INT", (-3, 0, 1, 2, 3, 4, 5, 2**31 - 1)),
    "big": ("BIGINT UNSIGNED", (0, 1, 2, 3, 2**63, 2**64 - 1)),
    "text": ("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", TEXTS),
    "exactly": ("VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", TEXTS),
    "latin": ("CHAR(10) CHARACTER SET latin1 COLLATE latin1_swedish_ci", ("", "a", "A", "é", "b'c", "%")),
    "bytes": ("VARBINARY(8)", (b"", b"\x00", b"a", b"A", b"\xff'\\")),
    "fixed": ("BINARY(3)", (b"a", b"ab\x00", b"\x00\x00\x00", b"abc", b"AB")),
    "exact": ("DECIMAL(20, 2)", (Decimal("0.00"), Decimal("-1.50"), Decimal("1.50"), Decimal("123456789012345678.90"))),
    "day": ("DATE", DATES),
    "moment": ("DATETIME(3)", tuple(f"{day} 10:11:12.500" for day in DATES)),
    "stamp": ("TIMESTAMP(0)", ("2024-02-29 10:11:12", "1999-12-31 23:59:59", "2037-01-01 00:00:00")),
    "clock": ("TIME(1)", ("-10:11:12.5", "00:00:00.0", "800:00:00.0")),
    "year": ("YEAR", (1970, 2024, 2155)),
    "bits": ("BIT(10)", (0, 1, 1023)),
    "label": ("ENUM('z', 'y', 'x''q')", ("x'q", "y", "z")),
}
VALUES: dict[str, tuple[str, Sequence[Any]]] = {
    "n": ("INT", (None, -1, 0, 1, 2, 3, 7)),
    "t": ("VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", (None, *TEXTS, "null", "\x01\x1f", "😀")),
    "d": ("DECIMAL(10, 3)", (None, Decimal("0.000"), Decimal("-1.250"), Decimal("1234567.890"))),
    "f": ("DOUBLE", (None, 0.0, 0.125, -2.5, 1e300)),
    "m": ("DATETIME(3)", (None, "2024-02-29 10:11:12.500", "0000-00-00 00:00:00.000", "2024-00-10 00:00:00.000")),
    "s": ("TIMESTAMP(0) NULL", (None, "2024-02-29 10:11:12")),
    "y": ("DATE", (None, "2024-02-29", "0000-00-00")),
    "e": ("ENUM('x', 'y')", (None, "x", "y")),
    "b": ("BLOB", (None, b"", b"\x00\xff")),
}
_FOLDED = {"text", "latin"}
_DATES = {"DATE", "DATETIME(3)", "TIMESTAMP(0)", "TIME(1)"}
CONDITIONS: dict[str, Callable[[Row], bool]] = {
    "n > 0": lambda row: row["n"] is not None and row["n"] > 0,
    "n IS NULL OR n < 3": lambda row: row["n"] is None or row["n"] < 3,
    "t = 'a'": lambda row: row["t"] is not None and row["t"].casefold() == "a",
    "n <> n": lambda _: False,
}
EXPRESSIONS: dict[str, tuple[str | None, Callable[[Row], Any]]] = {
    "n * 2": ("integer", lambda row: None if row["n"] is None else row["n"] * 2),
    "n > 1": ("boolean", lambda row: None if row["n"] is None else row["n"] > 1),
    "d + 1": ("float", lambda row: None if row["d"] is None else row["d"] + 1),
    "CONCAT(t, '!')": (None, lambda row: None if row["t"] is None else row["t"] + "!"),
    "COALESCE(t, e)": ("text", lambda row: row["e"] if row["t"] is None else row["t"]),
}


@dataclass
class RandomTable:
    """A table with random rows, which are read by a plain SELECT in the order of the key."""

    name: str
    kinds: tuple[str, ...]
    key: tuple[str, ...]
    rows: list[Row] = field(default_factory=list[Row])

    @property
    def types(self) -> dict[str, str]:
        keys = {name: f"{KINDS[name[2:]][0]} NOT NULL" for name in self.key}
        references = {f"r_{kind}": f"{KINDS[kind][0]} NULL" for kind in self.kinds}
        return keys | references | {name: kind for name, (kind, _) in VALUES.items()}

    @property
    def joinable(self) -> list[str]:
        """Return the columns by which it can be joined."""
        return [*self.key, *(f"r_{kind}" for kind in self.kinds)]

    def create(self, schema: str) -> str:
        columns = ", ".join(f"`{name}` {kind}" for name, kind in self.types.items())
        return f"CREATE TABLE {schema}.{self.name} ({columns}, PRIMARY KEY ({', '.join(self.key)}))"

    def random_row(self, pick: random.Random) -> Row:
        row: Row = {name: pick.choice(KINDS[name[2:]][1]) for name in self.key}
        row |= {f"r_{kind}": pick.choice((None, *KINDS[kind][1])) for kind in self.kinds}
        return row | {name: pick.choice(values) for name, (_, values) in VALUES.items()}

    def read(self, cursor: Any, schema: str) -> None:
        """Read all rows as they are now."""
        types = self.types
        chosen = [_select(name, kind) for name, kind in types.items()]
        cursor.execute(f"SELECT {', '.join(chosen)} FROM {schema}.{self.name} ORDER BY {', '.join(self.key)}")
        self.rows = [dict(zip(types, values, strict=True)) for values in cursor.fetchall()]
        for rank, row in enumerate(self.rows):
            row["rank"] = rank


def _plain(kind: str) -> str:
    return kind.removesuffix(" NULL").removesuffix(" NOT")


def _select(name: str, kind: str) -> str:
    if _plain(kind) in _DATES:
        return f"CAST(`{name}` AS CHAR)"
    return f"`{name}` + 0" if kind.startswith("BIT") else f"`{name}`"


@dataclass
class RandomSpec:
    """A random document spec over tables, as the text of a spec and as documents."""

    pick: random.Random
    schema: str
    tables: Sequence[RandomTable]

    def create(self, depth: int = 3) -> dict[str, Any]:
        """Return the content of a spec."""
        root = self.pick.choice(list(self.tables))
        content = self._table(root, depth)
        if self.pick.random() < 0.5:
            content["where"] = self.pick.choice([*list(CONDITIONS)[:3], {"n": [0, 1, 2]}, {"t": "a"}])
        if self.pick.random() < 0.3:
            content["soft_delete"] = self.pick.choice(["n", "m", "y", "s"])
        return {"index": "random", "root": content}

    def _table(self, table: RandomTable, depth: int) -> dict[str, Any]:
        pick = self.pick
        fields: list[Any] = pick.sample(list(table.types), pick.randrange(1, 5))
        for number, sql in enumerate(pick.sample(list(EXPRESSIONS), pick.choice((0, 0, 1, 2)))):
            kind = EXPRESSIONS[sql][0]
            fields.append({f"x{number}": {"sql": sql} | ({"type": kind} if kind else {})})
        if pick.random() < 0.2:
            fields.append({"constant": {"value": pick.choice(("c", 1, 1.5, True))}})
        fields.append({"again": pick.choice(list(table.types))})
        joins = {
            f"j{number}": self._join(table, depth - 1)
            for number in range(pick.choice((0, 1, 1, 2)) if 0 < depth < 3 else 2 if depth else 0)
        }
        return {"table": f"{self.schema}.{table.name}", "fields": fields} | ({"joins": joins} if joins else {})

    def _join(self, parent: RandomTable, depth: int) -> dict[str, Any]:
        pick, child = self.pick, self.pick.choice(self.tables)
        content = self._table(child, depth)
        kind = pick.choice(("one", "many", "through"))
        if kind == "one":
            content["on"] = {self._same_kind(parent, name): name for name in child.key}
        if kind == "through":
            link = pick.choice(self.tables)
            through = {"table": f"{self.schema}.{link.name}", "on": self._pairs(parent, link)}
            content["through"] = through | {"to": self._pairs(link, child)}
        elif kind == "many":
            content["on"] = self._pairs(parent, child)
        if pick.random() < 0.3:
            content["filter"] = pick.choice(list(CONDITIONS))
        if kind != "one":
            content["many"] = True
            content["order"] = pick.sample(["n", "-d", "-n", "f"], pick.randrange(3))
            if pick.random() < 0.3:
                content["limit"] = pick.choice((1, 2, 3))
        return content

    def _same_kind(self, table: RandomTable, name: str) -> str:
        """Return a column of a table that has the type of another column."""
        return self.pick.choice([column for column in table.joinable if column[2:] == name[2:]])

    def _pairs(self, upper: RandomTable, lower: RandomTable) -> dict[str, str]:
        """Return one or two pairs of columns."""
        below = self.pick.sample(lower.joinable, self.pick.choice((1, 1, 2)))
        return {self._same_kind(upper, name): name for name in below}


class Oracle:
    """Builds the documents of a spec from the rows of its tables, by loops."""

    def __init__(self, spec: dict[str, Any], tables: Sequence[RandomTable]) -> None:
        self._root = spec["root"]
        self._tables = {table.name: table for table in tables}

    def documents(self) -> list[Any]:
        """Return the documents in the order of their keys."""
        return [self._document(self._root, row) for row in self.root_rows()]

    def root_rows(self) -> list[Row]:
        """Return the searchable rows of the root table."""
        return [row for row in self._table(self._root).rows if self._is_searchable(row)]

    def _table(self, content: dict[str, Any]) -> RandomTable:
        return self._tables[content["table"].partition(".")[2]]

    def _is_searchable(self, row: Row) -> bool:
        where, mark = self._root.get("where"), self._root.get("soft_delete")
        if isinstance(where, str) and not CONDITIONS[where](row):
            return False
        if isinstance(where, dict):
            for name, values in where.items():
                wanted = values if isinstance(values, list) else [values]
                value = row[name].casefold() if isinstance(row[name], str) else row[name]
                if value is None or value not in wanted:
                    return False
        return mark is None or not _has_mark(row[mark])

    def _document(self, content: dict[str, Any], row: Row) -> dict[str, Any]:
        types = self._table(content).types
        document: dict[str, Any] = {}
        for part in content["fields"]:
            name, made_of = next(iter(part.items())) if isinstance(part, dict) else (part, part)
            if isinstance(made_of, str):
                document[name] = as_json(row[made_of], types[made_of])
            else:
                document[name] = made_of["value"] if "value" in made_of else EXPRESSIONS[made_of["sql"]][1](row)
        for name, join in content.get("joins", {}).items():
            rows = [self._document(join, below) for below in self._joined(join, row)]
            document[name] = rows[: join.get("limit")] if join.get("many") else (rows or [None])[0]
        return document

    def _steps(self, join: dict[str, Any], row: Row) -> list[tuple[Row | None, Row]]:
        """Return the rows of a joined table for a row of the table above it, each with the row of the link table."""
        lower, through = self._table(join), join.get("through")
        if through is None:
            return [(None, below) for below in lower.rows if _are_equal(row, below, join["on"])]
        return [
            (between, below)
            for between in self._table(through).rows
            if _are_equal(row, between, through["on"])
            for below in lower.rows
            if _are_equal(between, below, through["to"])
        ]

    def _joined(self, join: dict[str, Any], row: Row) -> list[Row]:
        """Return the rows of a joined table that a document has, in their order."""
        rows = [below for _, below in self._steps(join, row)]
        if "filter" in join:
            rows = [below for below in rows if CONDITIONS[join["filter"]](below)]
        rows.sort(key=lambda below: below["rank"])
        for name in reversed(join.get("order", [])):
            # NULL comes first, and last when the order is descending.
            column = name.removeprefix("-")
            rows.sort(key=lambda below, column=column: _sort_key(below[column]), reverse=name.startswith("-"))
        return rows

    def reached(self, path: Sequence[str]) -> list[tuple[Row, set[int], set[int]]]:
        """Return all rows of the root table, each with the rows of a joined table that it leads to and the rows of the
        link table on the last step, by their ranks; filters and limits leave nothing out."""
        reached: list[tuple[Row, set[int], set[int]]] = []
        for root in self._table(self._root).rows:
            content, rows, links = self._root, [root], list[Row]()
            for name in path:
                join = content["joins"][name]
                steps = [step for row in rows for step in self._steps(join, row)]
                content, rows, links = join, [below for _, below in steps], [between for between, _ in steps if between]
            through = content.get("through")
            if through is not None:  # a link row counts, too, when the row that it names is not there
                above = self._above(root, path)
                links = [
                    row for row in self._table(through).rows if any(_are_equal(up, row, through["on"]) for up in above)
                ]
            reached.append((root, {row["rank"] for row in rows}, {row["rank"] for row in links}))
        return reached

    def _above(self, root: Row, path: Sequence[str]) -> list[Row]:
        """Return the rows of the table above the last one of a path."""
        content, rows = self._root, [root]
        for name in path[:-1]:
            content = content["joins"][name]
            rows = [below for row in rows for _, below in self._steps(content, row)]
        return rows


def _sort_key(value: Any) -> tuple[bool, Any]:
    return (value is not None, value if value is not None else 0)


def _are_equal(upper: Row, lower: Row, pairs: dict[str, str]) -> bool:
    return all(_are_same(upper[above], lower[below], below[2:]) for above, below in pairs.items())


def _are_same(left: Any, right: Any, kind: str) -> bool:
    if left is None or right is None:
        return False
    return left.casefold() == right.casefold() if kind in _FOLDED else left == right


def _has_mark(value: Any) -> bool:
    return value not in (None, 0) and not (isinstance(value, str) and value.startswith("0000"))


def as_json(value: Any, kind: str) -> Any:
    """Return a value as documents have it, with numbers that have a fraction as Decimal."""
    kind = _plain(kind)
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if value is not None and kind in ("DATE", "DATETIME(3)", "TIMESTAMP(0)"):
        if value.startswith("0000") or value[5:7] == "00" or value[8:10] == "00":
            return None
        return value.replace(" ", "T") + ("Z" if kind == "TIMESTAMP(0)" else "")
    return value
