"""Options of tables and databases, of which the charset counts."""

from dataclasses import dataclass, replace

from penstock.schema.ddl.column import NO_CHARSET, CharsetSpec, read_charset_name, skip_value
from penstock.schema.ddl.reader import TokenReader
from penstock.schema.ddl.tokens import TokenKind

_VALUED = {
    "AUTOEXTEND_SIZE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHECKSUM", "COMMENT", "COMPRESSION", "CONNECTION",
    "DELAY_KEY_WRITE", "ENCRYPTED", "ENCRYPTION", "ENCRYPTION_KEY_ID", "ENGINE_ATTRIBUTE", "IETF_QUOTES",
    "INSERT_METHOD", "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM", "PASSWORD",
    "SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "SEQUENCE", "STATS_AUTO_RECALC", "STATS_PERSISTENT",
    "STATS_SAMPLE_PAGES", "STORAGE", "TABLESPACE", "TABLE_CHECKSUM", "TRANSACTIONAL", "UNION",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a table that are evaluated: charset, engine, row format and system versioning."""

    charset: CharsetSpec = NO_CHARSET
    engine: str = ""
    row_format: str | None = None  # empty: what the engine takes by itself
    is_versioned: bool = False


NO_OPTIONS = TableOptions()


def read_charset(reader: TokenReader, spec: CharsetSpec) -> CharsetSpec | None:
    """Read `[DEFAULT] {CHARACTER SET | CHARSET | COLLATE} [=] name`; DEFAULT as a name is the database's."""
    if reader.word == "DEFAULT" and reader.peek(1).word in ("CHARACTER", "CHARSET", "CHAR", "COLLATE"):
        reader.next()
    if reader.accept("CHARACTER", "SET") or reader.accept("CHAR", "SET") or reader.accept("CHARSET"):
        reader.accept("=")
        name = read_charset_name(reader)
        return replace(spec, charset=name, collation="" if _forgets(reader) else spec.collation)
    if reader.accept("COLLATE"):
        reader.accept("=")
        return replace(spec, collation=read_charset_name(reader))
    return None


def _forgets(reader: TokenReader) -> bool:
    """Return whether a charset after a collation cancels it; seen in MySQL 5.7 and 8.0.12, not in 9 and MariaDB."""
    return not reader.is_mariadb and reader.dialect.server.version <= 80012


def read_options(reader: TokenReader) -> TableOptions:
    """Read table options, as many as come, with or without commas between them; there may be none."""
    options = NO_OPTIONS
    while (changed := read_option(reader, options)) is not None:
        options = changed
        if reader.word == "," and _is_option(reader, 1):
            reader.next()
    return options


def read_option(reader: TokenReader, options: TableOptions) -> TableOptions | None:  # noqa: PLR0911 - one per option
    """Read one table option and return `options` with it; None when what follows is no option. Options that are not
    evaluated are skipped."""
    charset = read_charset(reader, options.charset)
    if charset is not None:
        return replace(options, charset=charset)
    if reader.accept("WITH", "SYSTEM", "VERSIONING"):
        return replace(options, is_versioned=True)
    if reader.accept("START", "TRANSACTION"):  # MySQL's, of a table whose rows come with it
        return options
    if reader.word in ("ENGINE", "TYPE"):
        return replace(options, engine=_value(reader).lower())
    if reader.word == "ROW_FORMAT":
        return replace(options, row_format=_value(reader).lower().replace("default", ""))
    if reader.word in ("DATA", "INDEX") and reader.peek(1).word == "DIRECTORY":
        reader.next()
        _value(reader)
        return options
    if reader.word in _VALUED or (_is_named(reader, 0) and reader.peek(1).word == "="):
        _skip(reader)
        return options
    return None


def _is_option(reader: TokenReader, at: int) -> bool:
    return reader.peek(at).word in _VALUED | {
        "ENGINE",
        "ROW_FORMAT",
        "DEFAULT",
        "CHARSET",
        "CHARACTER",
        "COLLATE",
    } or (_is_named(reader, at) and reader.peek(at + 1).word == "=")


def _is_named(reader: TokenReader, at: int) -> bool:
    return reader.peek(at).kind in (TokenKind.WORD, TokenKind.NAME)


def _value(reader: TokenReader) -> str:
    reader.next()
    reader.accept("=")
    return reader.read_name_or_text("a value")


def _skip(reader: TokenReader) -> None:
    reader.next()
    reader.accept("=")
    skip_value(reader)
