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
    PartitionToTable,
    Remake,
    RenameColumn,
    RenameKey,
    RenameTo,
    SetOptions,
    SetVersioning,
    ShowColumn,
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
    keys_of,
    read_key,
    read_key_options,
    read_kind,
    read_method,
    read_parts,
)
from penstock.schema.ddl.option import read_options
from penstock.schema.ddl.reader import TokenReader
from penstock.schema.ddl.tokens import TokenKind

_PARTITION_WORK = {"TRUNCATE", "COALESCE", "REORGANIZE", "ANALYZE", "CHECK", "OPTIMIZE", "REPAIR", "REBUILD",
                   "DISCARD", "IMPORT"}  # fmt: skip
_ALONE = {"FORCE", "SECONDARY_LOAD", "SECONDARY_UNLOAD", "NOWAIT"}
_ENDS = ("PARTITION", "REMOVE")
_REMAKE = Remake()


def read_alter_table(reader: TokenReader) -> AlterTable:
    """Read `ALTER [ONLINE] [IGNORE] TABLE [IF EXISTS] name [WAIT n] clause, …`."""
    reader.expect("ALTER")
    while reader.accept_any("ONLINE", "OFFLINE", "IGNORE"):
        pass
    reader.expect("TABLE")
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.table()
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
    reader.end()
    return AlterTable(name, tuple(clauses), if_exists)


def skip_wait(reader: TokenReader) -> None:
    """Skip MariaDB's `WAIT n` and `NOWAIT`."""
    if reader.sees("WAIT") and reader.ahead(1).kind is TokenKind.NUMBER:
        reader.next()
        reader.next()
    else:
        reader.accept("NOWAIT")


def read_create_index(reader: TokenReader) -> AlterTable:
    """Read `CREATE [OR REPLACE] [UNIQUE …] INDEX [IF NOT EXISTS] name [USING x] ON table (parts) …`."""
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    reader.accept_any("ONLINE", "OFFLINE")
    kind = read_kind(reader)
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    method = read_method(reader)
    reader.expect("ON")
    table = reader.table()
    parts = read_parts(reader)
    method = read_key_options(reader) or method
    reader.end()
    return AlterTable(table, (AddKey(KeySpec(kind, name, parts, if_not_exists, is_hash=method == "HASH"), replaces),))


def read_drop_index(reader: TokenReader) -> AlterTable:
    reader.expect("DROP")
    reader.accept_any("ONLINE", "OFFLINE")
    reader.expect("INDEX")
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    reader.expect("ON")
    table = reader.table()
    reader.skip_clause()
    reader.end()
    return AlterTable(table, (DropKey(name, if_exists),))


def _read_clause(reader: TokenReader) -> list[Clause]:  # noqa: PLR0911 - one per verb
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
    reader.expect("ADD")
    if reader.word == "PARTITION":
        reader.skip_rest()
        return []
    if reader.accept("SYSTEM", "VERSIONING"):
        return [SetVersioning(True)]
    if reader.sees("PERIOD", "FOR"):
        return [AddPeriod(read_period(reader))]
    if is_key(reader):
        return list(_keys(reader))
    reader.accept("COLUMN")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    if reader.word != "(":
        return list(_columns(read_column(reader), _read_position(reader), if_not_exists))
    return list(_read_group(reader, if_not_exists))


def _keys(reader: TokenReader) -> Iterator[Clause]:
    key = read_key(reader)
    yield _REMAKE if key is None else AddKey(key)


def _columns(column: ColumnSpec, position: ColumnPosition | None, if_not_exists: bool) -> Iterator[Clause]:
    yield AddColumn(column, position, if_not_exists)
    for key in keys_of(column):
        yield AddKey(replace(key, if_not_exists=if_not_exists))


def _read_group(reader: TokenReader, if_not_exists: bool) -> Iterator[Clause]:
    """Read `ADD (a INT, b INT, KEY (a))`."""
    reader.expect("(")
    while True:
        if is_key(reader):
            yield from _keys(reader)
        elif reader.sees("PERIOD", "FOR"):
            yield AddPeriod(read_period(reader))
        else:
            yield from _columns(read_column(reader), None, if_not_exists)
        if not reader.accept(","):
            break
    if reader.word != ")":
        reader.fail_as_unknown("ADD (…)")
    reader.next()


def _read_position(reader: TokenReader) -> ColumnPosition | None:
    if reader.accept("FIRST"):
        return ColumnPosition("")
    if reader.accept("AFTER"):
        return ColumnPosition(reader.column())
    return None


def _read_drop(reader: TokenReader) -> list[Clause]:  # noqa: PLR0911 - one per thing to drop
    reader.expect("DROP")
    if reader.word == "PARTITION":
        reader.skip_rest()
        return []
    if reader.accept("SYSTEM", "VERSIONING"):
        return [SetVersioning(False)]
    if reader.accept("PERIOD", "FOR"):
        return [DropPeriod(reader.name())]
    if reader.accept("PRIMARY", "KEY"):
        return [DropKey("PRIMARY")]
    if reader.accept("FOREIGN", "KEY") or reader.accept("CHECK"):
        reader.accept("IF", "EXISTS")
        reader.name()
        return [_REMAKE]
    if reader.accept_any("INDEX", "KEY"):
        if_exists = reader.accept("IF", "EXISTS")
        return [DropKey(reader.name(), if_exists)]
    if reader.accept("CONSTRAINT"):
        if_exists = reader.accept("IF", "EXISTS")
        return [DropKey(reader.name(), if_exists, is_constraint=True)]
    reader.accept("COLUMN")
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.column()
    reader.accept_any("RESTRICT", "CASCADE")
    return [DropColumn(name, if_exists)]


def _read_change(reader: TokenReader) -> Iterator[Clause]:
    is_modify = reader.next().word == "MODIFY"
    reader.accept("COLUMN")
    if_exists = reader.accept("IF", "EXISTS")
    old = reader.column()
    column = read_definition(reader, old if is_modify else reader.column())
    yield ChangeColumn(old, column, _read_position(reader), if_exists)
    for key in keys_of(column):
        yield AddKey(replace(key, if_not_exists=if_exists))


def _read_rename(reader: TokenReader) -> Clause:
    reader.expect("RENAME")
    if what := reader.accept_any("COLUMN", "INDEX", "KEY"):
        if_exists = reader.accept("IF", "EXISTS")
        old = reader.column()
        reader.expect("TO")
        return (RenameColumn if what == "COLUMN" else RenameKey)(old, reader.column(), if_exists)
    reader.accept_any("TO", "AS", "=")
    return RenameTo(reader.table())


def _read_alter(reader: TokenReader) -> list[Clause]:
    reader.expect("ALTER")
    if reader.accept_any("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        reader.accept("IF", "EXISTS")
        reader.name()
        reader.accept("NOT")
        if not reader.accept_any("VISIBLE", "INVISIBLE", "IGNORED", "ENFORCED"):
            reader.fail_as_unknown("ALTER INDEX")
        return [_REMAKE]
    reader.accept("COLUMN")
    reader.accept("IF", "EXISTS")
    name = reader.column()
    if reader.accept("DROP", "DEFAULT"):
        return [_REMAKE]
    reader.expect("SET")
    if word := reader.accept_any("VISIBLE", "INVISIBLE"):
        return [ShowColumn(name, word == "VISIBLE")]
    reader.expect("DEFAULT")
    skip_value(reader)
    return [_REMAKE]


def _read_convert(reader: TokenReader) -> Clause:
    reader.expect("CONVERT")
    if reader.accept("PARTITION"):
        reader.name()
        reader.expect("TO", "TABLE")
        name = reader.table()
        reader.skip_clause()
        return PartitionToTable(name)
    if reader.accept("TABLE"):
        name = reader.table()
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
        reader.column()
        reader.accept_any("ASC", "DESC")
        if reader.word != "," or reader.ahead(2).word not in (",", "", "ASC", "DESC", "."):
            return
        if reader.ahead(1).word in _ALONE:
            return
        reader.next()


def _read_other(reader: TokenReader) -> list[Clause]:
    """Read options, and clauses that change neither columns nor keys nor names."""
    first, word, second = reader.token, reader.word, reader.ahead(1).word
    if word in ("ENABLE", "DISABLE") and second == "KEYS":
        reader.expect(word, "KEYS")
    elif word in ("DISCARD", "IMPORT") and second == "TABLESPACE":
        reader.expect(word, "TABLESPACE")
    elif word in ("WITH", "WITHOUT") and second == "VALIDATION":
        reader.expect(word, "VALIDATION")
    elif (word in _PARTITION_WORK and second == "PARTITION") or word in ("PARTITION", "EXCHANGE"):
        reader.skip_rest()  # comes last, and has commas of its own
    elif word in ("REMOVE", "UPGRADE") and second == "PARTITIONING":
        reader.expect(word, "PARTITIONING")
    elif reader.accept_any("ALGORITHM", "LOCK"):
        reader.accept("=")
        reader.name()
    elif reader.accept_any(*_ALONE):
        return [_REMAKE] if first.word == "FORCE" else []
    else:
        options = read_options(reader)
        if reader.token is first:
            reader.fail_as_unknown("ALTER TABLE")
        return [SetOptions(options)]
    return []
