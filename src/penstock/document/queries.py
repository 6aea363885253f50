"""The SQL of a document graph: how rows of documents are read, and how changed rows lead to root rows.

Documents are read top down, one SELECT per node: the rows of a node for the keys of its parent's rows. The server does
the joining, so that keys are compared by its own rules, and each row comes with the key of the parent's row it is for.

    SELECT STRAIGHT_JOIN p.id, c.order_id, c.position, c.quantity
    FROM shop.orders AS p JOIN shop.order_line AS c ON c.order_id = p.id WHERE p.id IN (1, 2) ORDER BY c.position

A changed row leads to roots bottom up: from the values by which it is joined, through the tables above it.

    SELECT DISTINCT STRAIGHT_JOIN n1.id FROM shop.orders AS n1 WHERE n1.customer_id IN (7)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.document.graph import (
    ColumnPair,
    DocumentField,
    DocumentGraph,
    DocumentNode,
    ParentReference,
    RowReference,
)
from penstock.document.sql_text import Key, condition_in, order_literal, quote_table, quote_text
from penstock.model import Column, TableName, TableSchema, WireType
from penstock.search.index import FieldKind
from penstock.snapshot.key_column import quote_name
from penstock.snapshot.source_rows import SelectQuery


@dataclass(frozen=True, slots=True, eq=False)
class NodeQueries:
    """The SELECTs that read the rows of one node."""

    graph: DocumentGraph
    node: DocumentNode

    @property
    def read_fields(self) -> tuple[DocumentField, ...]:
        """Return the fields whose values come from the server."""
        return tuple(part for part in self.node.fields if part.value is None)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the rows: the key of the parent's row, the row's own key, the fields, the columns of
        references, and for the root the routing."""
        above = self.node.parent.key if self.node.parent is not None else ()
        fields = tuple(_field_column(part) for part in self.read_fields)
        routing = (self.graph.routing,) if self.graph.routing is not None and self.node.parent is None else ()
        references = tuple(column for reference in self.references for column in reference.columns)
        return tuple(map(_as_read, (*above, *self.node.key, *fields, *references, *routing)))

    @property
    def references(self) -> tuple[RowReference, ...]:
        """Return the rows of other tables that rows of the node refer to by foreign keys that cascade."""
        return tuple(reference for reference in self.graph.references if reference.node is self.node)

    def select_rows(self, keys: Sequence[Key]) -> SelectQuery:
        """Return the SELECT of the rows for these keys: of the root's own rows, or of the rows of the parent."""
        if self.node.parent is None:
            return self._select_roots(condition_in([f"c.{quote_name(column.name)}" for column in self.node.key], keys))
        return self._select_joined(self.node.parent, keys)

    def select_page(self, after: str, limit: int) -> SelectQuery:
        """Return the SELECT of the next root rows in the order of the key; `after` is a condition, empty at first."""
        order = ", ".join(f"c.{quote_name(column.name)}" for column in self.node.key)
        query = self._select_roots(after)
        return SelectQuery(f"{query.sql} ORDER BY {order} LIMIT {limit}", query.columns)

    def after_key(self, key: Key) -> str:
        """Return the condition of root rows that come after a key in the order of `select_page`."""
        return f"({_after(self.node.key, key)})"

    def up_to_key(self, key: Key) -> str:
        """Return the condition of root rows that come before a key in the order of `select_page`, and of its own."""
        return f"({_up_to(self.node.key, key)})"

    def select_key(self, after: str, number: int) -> SelectQuery:
        """Return the SELECT of one key of the root table, the so-many-th behind a condition; none if there are not so
        many. It reads nothing but the index of the key."""
        names = ", ".join(f"c.{quote_name(column.name)}" for column in self.node.key)
        where = f" WHERE {after}" if after else ""
        table = quote_table(self.node.table.name)
        sql = f"SELECT {names} FROM {table} AS c{where} ORDER BY {names} LIMIT 1 OFFSET {number - 1}"
        return SelectQuery(sql, tuple(map(_as_read, self.node.key)))

    def _select_roots(self, condition: str) -> SelectQuery:
        """Return the SELECT of root rows that are searchable and fulfil a condition."""
        conditions = " AND ".join(text for text in (condition, self.graph.condition) if text)
        where = f" WHERE {conditions}" if conditions else ""
        expressions = [self._expression("c", part) for part in self.read_fields]
        chosen = [_read(column, "c") for column in self.node.key] + expressions + self._reference_columns()
        if self.graph.routing is not None:
            chosen.append(_read(self.graph.routing, "c"))
        return SelectQuery(
            f"SELECT {', '.join(chosen)} FROM {quote_table(self.node.table.name)} AS c{where}", self.columns
        )

    def _select_joined(self, parent: DocumentNode, keys: Sequence[Key]) -> SelectQuery:
        """Return the SELECT of joined rows."""
        node = self.node
        chosen = [_read(column, "p") for column in parent.key] + [_read(column, "c") for column in node.key]
        chosen += [self._expression("c", part) for part in self.read_fields] + self._reference_columns()
        source = f"{quote_table(parent.table.name)} AS p"
        if node.link is not None:
            source += f" JOIN {quote_table(node.link.table.name)} AS l ON {_equal('p', 'l', node.link.upper)}"
            source += f" JOIN {self._joined_table()} AS c ON {_equal('l', 'c', node.link.lower)}"
        else:
            source += f" JOIN {self._joined_table()} AS c ON {_equal('p', 'c', node.on)}"
        order = [f"c.{quote_name(part.column.name)}{' DESC' if part.is_descending else ''}" for part in node.order]
        order += [f"c.{quote_name(column.name)}" for column in node.key]
        where = condition_in([f"p.{quote_name(column.name)}" for column in parent.key], keys)
        ordered = f" ORDER BY {', '.join(order)}" if node.is_many else ""
        return SelectQuery(
            f"SELECT STRAIGHT_JOIN {', '.join(chosen)} FROM {source} WHERE {where}{ordered}", self.columns
        )

    def _joined_table(self) -> str:
        """Return what a node is read from: its table, or a derived one where expressions are evaluated, whose names
        would be ambiguous beside other tables."""
        node, table = self.node, quote_table(self.node.table.name)
        expressions = [part for part in self.read_fields if part.column is None]
        if not expressions and not node.filter:
            return table
        names = {column.name for column in (*node.key, *node.lower_columns)}
        names |= {part.column.name for part in (*self.read_fields, *node.order) if part.column is not None}
        names |= {column.name for reference in self.references for column in reference.columns}
        chosen = [quote_name(name) for name in sorted(names)]
        chosen += [f"{_as_text(part)} AS {quote_name(f'field {part.name}')}" for part in expressions]
        where = f" WHERE {node.filter}" if node.filter else ""
        return f"(SELECT {', '.join(chosen)} FROM {table}{where})"

    def _reference_columns(self) -> list[str]:
        """Return what is selected for references."""
        return [_read(column, "c") for reference in self.references for column in reference.columns]

    def _expression(self, alias: str, part: DocumentField) -> str:
        """Return what is selected for a field."""
        if part.column is not None:
            return _read(part.column, alias)
        return _as_text(part) if self.node.parent is None else f"{alias}.{quote_name(f'field {part.name}')}"


def select_parents(
    table: TableSchema,
    key: Sequence[Column],
    reference: RowReference | ParentReference,
    read: Sequence[Column],
    keys: Sequence[Key],
) -> SelectQuery:
    """Return the SELECT of the parents of some rows of a table by a foreign key: the key of each row, then the columns
    to read of its parent."""
    pairs = [ColumnPair(upper, lower) for upper, lower in zip(reference.columns, reference.parent_columns, strict=True)]
    chosen = [_read(column, "p") for column in key] + [_read(column, "c") for column in read]
    source = f"{quote_table(table.name)} AS p JOIN {quote_table(reference.parent.name)} AS c"
    where = condition_in([f"p.{quote_name(column.name)}" for column in key], keys)
    return SelectQuery(
        f"SELECT STRAIGHT_JOIN {', '.join(chosen)} FROM {source} ON {_equal('p', 'c', pairs)} WHERE {where}",
        tuple(map(_as_read, (*key, *read))),
    )


def _after(columns: Sequence[Column], key: Key) -> str:
    """Return the condition for rows `c` behind a key, in a form for which the server can use a range of the index. With
    a number a, an ENUM e of 'x', 'y', 'z' and the key 1, 'y':

        c.a = 1 AND (c.e IN ('z')) OR c.a > 1

    The server orders labels by their numbers and compares them by their texts, so those behind a label are named.
    """
    column, value = columns[0], key[0]
    name, number = f"c.{quote_name(column.name)}", order_literal(column, value)
    rest = f"({_after(columns[1:], key[1:])})" if len(key) > 1 else ""
    if column.type is WireType.ENUM and number != "0":
        later = [quote_text(label) for label in column.labels[int(number) :]]
        ways = [f"{name} = {quote_text(str(value))} AND {rest}"] if rest else []
        ways += [f"{name} IN ({', '.join(later)})"] if later else []
        return " OR ".join(ways) or "FALSE"
    if column.labels:
        name = f"CAST({name} AS UNSIGNED)"  # `+0` would be a DOUBLE, too short for the 64 members of a SET
    return f"{name} = {number} AND {rest} OR {name} > {number}" if rest else f"{name} > {number}"


def _up_to(columns: Sequence[Column], key: Key) -> str:
    """Return the condition for rows `c` up to and including a key, the opposite of `_after`."""
    column, value = columns[0], key[0]
    name, number = f"c.{quote_name(column.name)}", order_literal(column, value)
    rest = f"({_up_to(columns[1:], key[1:])})" if len(key) > 1 else ""
    if column.type is WireType.ENUM and number != "0":
        # The empty label stands for values that the ENUM does not have: its number is 0.
        earlier = ["''", *(quote_text(label) for label in column.labels[: int(number) - 1])]
        own = quote_text(str(value))
        return (
            f"{name} = {own} AND {rest} OR {name} IN ({', '.join(earlier)})"
            if rest
            else (f"{name} IN ({', '.join([*earlier, own])})")
        )
    if column.labels:
        name = f"CAST({name} AS UNSIGNED)"
    return f"{name} = {number} AND {rest} OR {name} < {number}" if rest else f"{name} <= {number}"


def _field_column(part: DocumentField) -> Column:
    """Return the column of a field in the rows; expressions are read as text."""
    return part.column or Column(f"field {part.name}", WireType.VARCHAR, charset="utf8mb4")


def _read(column: Column, alias: str) -> str:
    """Return the SQL that reads a column of an aliased table."""
    return f"{alias}.{quote_name(column.name)}"


def _as_read(column: Column) -> Column:
    """Return a column as it is read: ENUM and SET as the text of their labels. Their numbers are lost where MySQL 5.7
    sorts rows in a temporary table."""
    if column.type not in (WireType.ENUM, WireType.SET):
        return column
    return Column(column.name, WireType.VARCHAR, charset=column.charset or "utf8mb4")


def _equal(upper: str, lower: str, pairs: Sequence[ColumnPair]) -> str:
    """Return the condition of a join."""
    return " AND ".join(
        f"{lower}.{quote_name(pair.lower.name)} = {upper}.{quote_name(pair.upper.name)}" for pair in pairs
    )


def _as_text(part: DocumentField) -> str:
    """Return an SQL expression as the text that a document has for its kind."""
    sql = part.sql
    match part.kind:
        case FieldKind.INTEGER:
            sql = f"CAST(({sql}) AS DECIMAL(65, 0))"  # SIGNED would make numbers above 2^63 negative
        case FieldKind.BOOLEAN:
            sql = f"IF(({sql}) IS NULL, NULL, IF(({sql}), 'true', 'false'))"
        case FieldKind.DATE:
            sql = f"REPLACE(CAST(CAST(({sql}) AS DATETIME(6)) AS CHAR), ' ', 'T')"
        case FieldKind.FLOAT:
            sql = f"(({sql}) + 0)"
        case _:
            sql = f"({sql})"
    return f"CONVERT({sql} USING utf8mb4)"


@dataclass(frozen=True, slots=True, eq=False)
class RootLookup:
    """Finds the root rows that a changed row of one table belongs to, by the values of some of its columns.

    lookup = find_lookups(graph)[0]
    query = lookup.select_roots([(7,)])
    """

    graph: DocumentGraph
    node: DocumentNode  # whose row, or whose link, has changed
    table: TableName  # of the changed row
    columns: tuple[Column, ...]  # of the changed row
    start: str  # SQL from which the tables above are joined, with n1 as the first alias
    targets: tuple[str, ...]  # the columns in SQL that equal those of the changed row
    first: DocumentNode  # the node of n1

    @property
    def names_roots(self) -> bool:
        """Return whether the values are keys of root rows already, which nobody has to look up: integers, since texts
        may be equal to the server and not the same."""
        root = self.graph.root
        if self.first is not root or len(self.columns) != len(root.key):
            return False
        named = [f"n1.{quote_name(column.name)}" for column in root.key]
        return list(self.targets) == named and all(column.type in _INTEGERS for column in (*self.columns, *root.key))

    def uses_any(self, tables: frozenset[TableName]) -> bool:
        """Return whether the way to the root leads through one of these tables."""
        node: DocumentNode | None = self.node
        while node is not None:
            if node.table.name in tables and node is not self.node:
                return True
            if node.link is not None and node.link.table.name in tables:
                return True
            node = node.parent
        return False

    def select_roots(self, keys: Sequence[Key]) -> SelectQuery:
        """Return the SELECT of the keys of all root rows that refer to these values."""
        source, root = self._join_tables()
        chosen = ", ".join(_read(column, root) for column in self.graph.root.key)
        where = condition_in(self.targets, keys)
        columns = tuple(map(_as_read, self.graph.root.key))
        return SelectQuery(f"SELECT DISTINCT STRAIGHT_JOIN {chosen} FROM {source} WHERE {where}", columns)

    def select_values(self, roots: Sequence[Key]) -> SelectQuery:
        """Return the SELECT of the values that root rows refer to, each behind the key of its root row."""
        source, root = self._join_tables()
        own = self.graph.root.key
        chosen = [_read(column, root) for column in own]
        chosen += [
            _read(column, target.partition(".")[0]) for column, target in zip(self._upper, self.targets, strict=True)
        ]
        where = condition_in([f"{root}.{quote_name(column.name)}" for column in own], roots)
        columns = tuple(map(_as_read, (*own, *self._upper)))
        return SelectQuery(f"SELECT DISTINCT {', '.join(chosen)} FROM {source} WHERE {where}", columns)

    @property
    def _upper(self) -> tuple[Column, ...]:
        """Return the columns that equal those of the changed row, in the order of `targets`."""
        link = self.node.link
        if link is None:
            return tuple(pair.upper for pair in self.node.on)
        is_link = self.targets[0].startswith("n1.")  # the changed row is of the link table
        return tuple(pair.upper for pair in (link.upper if is_link else link.lower))

    def _join_tables(self) -> tuple[str, str]:
        """Return the tables from a changed row up to its root rows, in SQL, and the alias of these."""
        source, node, number = self.start, self.first, 1
        while node.parent is not None:
            upper = number + 1
            if node.link is not None:
                source += f" JOIN {quote_table(node.link.table.name)} AS l{number}"
                source += f" ON {_equal(f'l{number}', f'n{number}', node.link.lower)}"
                source += f" JOIN {quote_table(node.parent.table.name)} AS n{upper}"
                source += f" ON {_equal(f'n{upper}', f'l{number}', node.link.upper)}"
            else:
                source += f" JOIN {quote_table(node.parent.table.name)} AS n{upper}"
                source += f" ON {_equal(f'n{upper}', f'n{number}', node.on)}"
            node, number = node.parent, upper
        return source, f"n{number}"


_INTEGERS = {WireType.TINY, WireType.SHORT, WireType.INT24, WireType.LONG, WireType.LONGLONG}


def find_lookups(graph: DocumentGraph) -> list[RootLookup]:
    """Return all ways from a changed row of a joined table, or of a link table, to root rows."""
    lookups: list[RootLookup] = []
    for node in graph.nodes:
        parent = node.parent
        if parent is None:
            continue
        above = f"{quote_table(parent.table.name)} AS n1"
        if node.link is None:
            columns = tuple(pair.lower for pair in node.on)
            targets = tuple(f"n1.{quote_name(pair.upper.name)}" for pair in node.on)
            lookups.append(RootLookup(graph, node, node.table.name, columns, above, targets, parent))
            continue
        link = node.link
        columns = tuple(pair.lower for pair in link.upper)
        targets = tuple(f"n1.{quote_name(pair.upper.name)}" for pair in link.upper)
        lookups.append(RootLookup(graph, node, link.table.name, columns, above, targets, parent))
        start = f"{quote_table(link.table.name)} AS l0 JOIN {above} ON {_equal('n1', 'l0', link.upper)}"
        columns = tuple(pair.lower for pair in link.lower)
        targets = tuple(f"l0.{quote_name(pair.upper.name)}" for pair in link.lower)
        lookups.append(RootLookup(graph, node, node.table.name, columns, start, targets, parent))
    return lookups
