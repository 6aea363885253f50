"""ALTER TABLE, and CREATE INDEX and DROP INDEX, which are the same by another name."""

from collections.abc import Iterator
from dataclasses import replace

from penstock.schema.ddl.clause import (
    AddColumn,
    AddKey,
    AddPeriod,
    AlterTable,
    ChangeColumn,
    Clause,
    ColumnPosition,
    ConvertCharset,
    DropColumn,
    DropKey,
    DropPeriod,
    ExchangePartition,
    PartitionToTable,
    RebuildTable,
    RenameColumn,
    RenameKey,
    RenameTo,
    SetColumnVisibility,
    SetOptions,
    SetVersioning,
    TableToPartition,
)
from penstock.schema.ddl.column import (
    CharsetSpec,
    ColumnSpec,
    read_charset_name,
    read_column,
    read_definition,
    skip_value,
)
from penstock.schema.ddl.create import read_period
from penstock.schema.ddl.key import (
    KeySpec,
    is_key,
    keys_of_column,
    read_index_method,
    read_key,
    read_key_kind,
    read_key_options,
    read_key_parts,
)
from penstock.schema.ddl.option import read_options
from penstock.schema.ddl.reader import TokenReader
from penstock.schema.ddl.tokens import TokenKind

_PARTITION_WORK = {"TRUNCATE", "COALESCE", "REORGANIZE", "ANALYZE", "CHECK", "OPTIMIZE", "REPAIR", "REBUILD",
                   "DISCARD", "IMPORT"}  # fmt: skip
_ALONE = {"FORCE", "SECONDARY_LOAD", "SECONDARY_UNLOAD", "NOWAIT"}
_ENDS = ("PARTITION", "REMOVE")
_REMAKE = RebuildTable()


def read_alter_table(reader: TokenReader) -> AlterTable:
    """Read `ALTER [ONLINE] [IGNORE] TABLE [IF EXISTS] name [WAIT n] clause, …`."""
    reader.expect("ALTER")
    while reader.accept_any("ONLINE", "OFFLINE", "IGNORE"):
        pass
    reader.expect("TABLE")
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.read_table()
    skip_wait(reader)
    clauses: list[Clause] = []
    while not reader.is_done and reader.word != ";":
        clauses += _read_clause(reader)
        if reader.accept(","):
            continue
        if reader.word not in (*_ENDS, ";", ""):
            reader.fail_as_unknown("ALTER TABLE")
        if reader.word == "" and not reader.is_done:
            reader.fail_as_unknown("ALTER TABLE")
    reader.expect_end()
    return AlterTable(name, tuple(clauses), if_exists)


def skip_wait(reader: TokenReader) -> None:
    """Skip MariaDB's `WAIT n` and `NOWAIT`."""
    if reader.sees("WAIT") and reader.peek(1).kind is TokenKind.NUMBER:
        reader.next()
        reader.next()
    else:
        reader.accept("NOWAIT")


def read_create_index(reader: TokenReader) -> AlterTable:
    """Read `CREATE [OR REPLACE] [UNIQUE …] INDEX [IF NOT EXISTS] name [USING x] ON table (parts) …`."""
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    reader.accept_any("ONLINE", "OFFLINE")
    kind = read_key_kind(reader)
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_name()
    method = read_index_method(reader)
    reader.expect("ON")
    table = reader.read_table()
    parts = read_key_parts(reader)
    method = read_key_options(reader) or method
    reader.expect_end()
    return AlterTable(table, (AddKey(KeySpec(kind, name, parts, if_not_exists, is_hash=method == "HASH"), replaces),))


def read_drop_index(reader: TokenReader) -> AlterTable:
    """Read `DROP INDEX name ON table`."""
    reader.expect("DROP")
    reader.accept_any("ONLINE", "OFFLINE")
    reader.expect("INDEX")
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.read_name()
    reader.expect("ON")
    table = reader.read_table()
    reader.skip_clause()
    reader.expect_end()
    return AlterTable(table, (DropKey(name, if_exists),))


def _read_clause(reader: TokenReader) -> list[Clause]:  # noqa: PLR0911 - one per verb
    """Read one clause of an ALTER TABLE, by its verb."""
    match reader.word:
        case "ADD":
            return _read_add(reader)
        case "DROP":
            return _read_drop(reader)
        case "CHANGE" | "MODIFY":
            return list(_read_change(reader))
        case "RENAME":
            return [_read_rename(reader)]
        case "ALTER":
            return _read_alter(reader)
        case "CONVERT":
            return [_read_convert(reader)]
        case "ORDER":
            _skip_order(reader)
            return [_REMAKE]
        case _:
            return _read_other(reader)


def _read_add(reader: TokenReader) -> list[Clause]:
    """Read `ADD …`: columns, keys, constraints, periods."""
    reader.expect("ADD")
    if reader.word == "PARTITION":
        reader.skip_rest()
        return []
    if reader.accept("SYSTEM", "VERSIONING"):
        return [SetVersioning(True)]
    if reader.sees("PERIOD", "FOR"):
        return [AddPeriod(read_period(reader))]
    if is_key(reader):
        return list(_add_key_clauses(reader))
    reader.accept("COLUMN")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    if reader.word != "(":
        return list(_add_column_clauses(read_column(reader), _read_position(reader), if_not_exists))
    return list(_read_group(reader, if_not_exists))


def _add_key_clauses(reader: TokenReader) -> Iterator[Clause]:
    """Read a key or a constraint, and yield it as a clause."""
    key = read_key(reader)
    yield _REMAKE if key is None else AddKey(key)


def _add_column_clauses(column: ColumnSpec, position: ColumnPosition | None, if_not_exists: bool) -> Iterator[Clause]:
    """Yield a column to add, and the keys that its definition asks for, as clauses."""
    yield AddColumn(column, position, if_not_exists)
    for key in keys_of_column(column):
        yield AddKey(replace(key, if_not_exists=if_not_exists))


def _read_group(reader: TokenReader, if_not_exists: bool) -> Iterator[Clause]:
    """Read `ADD (a INT, b INT, KEY (a))`."""
    reader.expect("(")
    while True:
        if is_key(reader):
            yield from _add_key_clauses(reader)
        elif reader.sees("PERIOD", "FOR"):
            yield AddPeriod(read_period(reader))
        else:
            yield from _add_column_clauses(read_column(reader), None, if_not_exists)
        if not reader.accept(","):
            break
    if reader.word != ")":
        reader.fail_as_unknown("ADD (…)")
    reader.next()


def _read_position(reader: TokenReader) -> ColumnPosition | None:
    """Read `FIRST` or `AFTER column`; None where neither comes next."""
    if reader.accept("FIRST"):
        return ColumnPosition("")
    if reader.accept("AFTER"):
        return ColumnPosition(reader.read_column())
    return None


def _read_drop(reader: TokenReader) -> list[Clause]:  # noqa: PLR0911 - one per thing to drop
    """Read `DROP …`: columns, keys, constraints, periods."""
    reader.expect("DROP")
    if reader.word == "PARTITION":
        reader.skip_rest()
        return []
    if reader.accept("SYSTEM", "VERSIONING"):
        return [SetVersioning(False)]
    if reader.accept("PERIOD", "FOR"):
        return [DropPeriod(reader.read_name())]
    if reader.accept("PRIMARY", "KEY"):
        return [DropKey("PRIMARY")]
    if reader.accept("FOREIGN", "KEY") or reader.accept("CHECK"):
        reader.accept("IF", "EXISTS")
        reader.read_name()
        return [_REMAKE]
    if reader.accept_any("INDEX", "KEY"):
        if_exists = reader.accept("IF", "EXISTS")
        return [DropKey(reader.read_name(), if_exists)]
    if reader.accept("CONSTRAINT"):
        if_exists = reader.accept("IF", "EXISTS")
        return [DropKey(reader.read_name(), if_exists, is_constraint=True)]
    reader.accept("COLUMN")
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.read_column()
    reader.accept_any("RESTRICT", "CASCADE")
    return [DropColumn(name, if_exists)]


def _read_change(reader: TokenReader) -> Iterator[Clause]:
    """Read `CHANGE` or `MODIFY` of a column."""
    is_modify = reader.next().word == "MODIFY"
    reader.accept("COLUMN")
    if_exists = reader.accept("IF", "EXISTS")
    old = reader.read_column()
    column = read_definition(reader, old if is_modify else reader.read_column())
    yield ChangeColumn(old, column, _read_position(reader), if_exists)
    for key in keys_of_column(column):
        yield AddKey(replace(key, if_not_exists=if_exists))


def _read_rename(reader: TokenReader) -> Clause:
    """Read `RENAME` of a column, a key or the table."""
    reader.expect("RENAME")
    if kind := reader.accept_any("COLUMN", "INDEX", "KEY"):
        if_exists = reader.accept("IF", "EXISTS")
        old = reader.read_column()
        reader.expect("TO")
        return (RenameColumn if kind == "COLUMN" else RenameKey)(old, reader.read_column(), if_exists)
    reader.accept_any("TO", "AS", "=")
    return RenameTo(reader.read_table())


def _read_alter(reader: TokenReader) -> list[Clause]:
    """Read `ALTER` of a column or an index inside an ALTER TABLE."""
    reader.expect("ALTER")
    if reader.accept_any("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        reader.accept("IF", "EXISTS")
        reader.read_name()
        reader.accept("NOT")
        if not reader.accept_any("VISIBLE", "INVISIBLE", "IGNORED", "ENFORCED"):
            reader.fail_as_unknown("ALTER INDEX")
        return [_REMAKE]
    reader.accept("COLUMN")
    reader.accept("IF", "EXISTS")
    name = reader.read_column()
    if reader.accept("DROP", "DEFAULT"):
        return [_REMAKE]
    reader.expect("SET")
    if word := reader.accept_any("VISIBLE", "INVISIBLE"):
        return [SetColumnVisibility(name, word == "VISIBLE")]
    reader.expect("DEFAULT")
    skip_value(reader)
    return [_REMAKE]


def _read_convert(reader: TokenReader) -> Clause:
    """Read `CONVERT TO CHARACTER SET`, and MariaDB's `CONVERT PARTITION` and `CONVERT TABLE`."""
    reader.expect("CONVERT")
    if reader.accept("PARTITION"):
        reader.read_name()
        reader.expect("TO", "TABLE")
        name = reader.read_table()
        reader.skip_clause()
        return PartitionToTable(name)
    if reader.accept("TABLE"):
        name = reader.read_table()
        reader.expect("TO")
        reader.skip_clause()
        return TableToPartition(name)
    reader.expect("TO")
    if not (reader.accept("CHARACTER", "SET") or reader.accept("CHAR", "SET")):
        reader.expect("CHARSET")
    charset = read_charset_name(reader)
    collation = ""
    if reader.accept("COLLATE"):
        reader.accept("=")
        collation = read_charset_name(reader)
    return ConvertCharset(CharsetSpec(charset, collation))


def _skip_order(reader: TokenReader) -> None:
    """Skip ORDER BY. Its list of columns has commas too: a name belongs to it when a comma or the end follows."""
    reader.expect("ORDER", "BY")
    while True:
        reader.read_column()
        reader.accept_any("ASC", "DESC")
        if reader.word != "," or reader.peek(2).word not in (",", "", "ASC", "DESC", "."):
            return
        if reader.peek(1).word in _ALONE:
            return
        reader.next()


def _read_other(reader: TokenReader) -> list[Clause]:
    """Read options, and clauses that change neither columns nor keys nor names."""
    first, word, second = reader.token, reader.word, reader.peek(1).word
    if word in ("ENABLE", "DISABLE") and second == "KEYS":
        reader.expect(word, "KEYS")
    elif word in ("DISCARD", "IMPORT") and second == "TABLESPACE":
        reader.expect(word, "TABLESPACE")
    elif word in ("WITH", "WITHOUT") and second == "VALIDATION":
        reader.expect(word, "VALIDATION")
    elif word == "EXCHANGE":
        reader.expect("EXCHANGE", "PARTITION")
        reader.read_name()
        reader.expect("WITH", "TABLE")
        name = reader.read_table()
        reader.skip_rest()
        return [ExchangePartition(name)]
    elif (word in _PARTITION_WORK and second == "PARTITION") or word == "PARTITION":
        reader.skip_rest()  # comes last, and has commas of its own
    elif word in ("REMOVE", "UPGRADE") and second == "PARTITIONING":
        reader.expect(word, "PARTITIONING")
    elif reader.accept_any("ALGORITHM", "LOCK"):
        reader.accept("=")
        reader.read_name()
    elif reader.accept_any(*_ALONE):
        return [_REMAKE] if first.word == "FORCE" else []
    else:
        options = read_options(reader)
        if reader.token is first:
            reader.fail_as_unknown("ALTER TABLE")
        return [SetOptions(options)]
    return []
