"""One column's definition: `name type attribute…`."""

from dataclasses import dataclass, replace

from penstock.schema.ddl.data_type import DataType, normalize_width, read_type
from penstock.schema.ddl.reader import TokenReader
from penstock.schema.ddl.tokens import TokenKind

_NOTHING_TO_US = {"COLUMN_FORMAT", "STORAGE", "SRID", "REF_SYSTEM_ID", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"}
_OLD_WORDS = {"ASCII": "latin1", "UNICODE": "ucs2", "BYTE": "binary"}
_LITERALS = (TokenKind.STRING, TokenKind.NUMBER, TokenKind.HEX, TokenKind.BITS)


@dataclass(frozen=True, slots=True)
class CharsetSpec:
    """The charset and collation of a definition; empty where it does not name them."""

    charset: str = ""
    collation: str = ""
    is_bin: bool = False  # BINARY: the charset's collation by bytes


NO_CHARSET = CharsetSpec()


@dataclass(slots=True)
class ColumnSpec:
    """A column as DDL writes it, before the defaults of its table are applied. None and empty mean that DDL does not
    say it.

    The parser fills it in place, since copies would make parsing twice as slow; nothing changes it later.
    """

    name: str
    type: DataType
    charset: CharsetSpec = NO_CHARSET
    is_nullable: bool | None = None
    is_auto: bool = False
    is_generated: bool = False
    is_visible: bool = True
    is_primary: bool = False
    is_unique: bool = False
    is_reference: bool = False
    row: str = ""  # START or END: a column of MariaDB's system versioning
    is_versioned: bool | None = None


def read_column(reader: TokenReader) -> ColumnSpec:
    """Read a column definition that begins with its name."""
    name = reader.read_column()
    return read_definition(reader, name)


def read_definition(reader: TokenReader, name: str) -> ColumnSpec:
    """Read the type and the attributes of a column."""
    parsed = read_type(reader)
    spec = ColumnSpec(name, parsed.type, CharsetSpec(parsed.charset) if parsed.charset else NO_CHARSET)
    if parsed.is_serial:
        _make_serial(spec)
    while (
        _read_type_attribute(reader, spec)
        or _read_column_attribute(reader, spec)
        or _read_ignored_attribute(reader, spec)
    ):
        pass
    spec.type = normalize_width(spec.type, reader.dialect.server)
    return spec


def _make_serial(spec: ColumnSpec) -> None:
    """Set the attributes that the type SERIAL implies."""
    spec.is_nullable, spec.is_auto, spec.is_unique = False, True, True


def read_charset_name(reader: TokenReader) -> str:
    """Read the name of a charset, in lower case."""
    return reader.read_name_or_text("a charset's name").lower()


def skip_value(reader: TokenReader) -> None:
    """Skip one expression that needs no brackets: a literal, a call, a name, or what is in brackets."""
    reader.accept_any("+", "-")
    if reader.word in ("(", "{"):
        reader.skip_group()
    elif reader.word == "CASE":
        _skip_case(reader)
    elif reader.sees("NEXT", "VALUE", "FOR") or reader.sees("PREVIOUS", "VALUE", "FOR"):
        reader.expect(reader.word, "VALUE", "FOR")
        reader.read_table()
    elif reader.token.kind in _LITERALS:
        kind = reader.next().kind
        while kind is TokenKind.STRING and reader.token.kind is TokenKind.STRING:
            reader.next()
    else:
        _skip_name(reader)


def _skip_name(reader: TokenReader) -> None:
    """Skip a name, a call, or a literal with a word before it (DATE '2020-01-01', _utf8mb4'x')."""
    introduces = reader.word in ("DATE", "TIME", "TIMESTAMP", "BINARY") or reader.word.startswith("_")
    reader.read_name("a value")
    while reader.accept("."):
        reader.read_name()
    if introduces and reader.token.kind in _LITERALS:
        skip_value(reader)
    elif reader.word == "(":
        reader.skip_group()


def _skip_case(reader: TokenReader) -> None:
    """Skip an expression `CASE … END`."""
    reader.expect("CASE")
    while not reader.accept("END"):
        if reader.is_done:
            reader.fail("END is missing")
        if reader.word == "CASE":
            _skip_case(reader)
        else:
            reader.next()


def _read_type_attribute(reader: TokenReader, spec: ColumnSpec) -> bool:
    """Read an attribute that belongs to the type; return whether there was one."""
    match reader.word:
        case "UNSIGNED" | "ZEROFILL":
            is_zerofill = spec.type.is_zerofill or reader.word == "ZEROFILL"
            spec.type = replace(spec.type, is_unsigned=True, is_zerofill=is_zerofill)
        case "SIGNED":
            pass
        case "COMPRESSED":
            spec.type = replace(spec.type, is_compressed=True)
            if reader.peek(1).word == "=":
                reader.next()
                reader.next()
        case "CHARACTER" | "CHARSET" | "CHAR":
            if reader.next().word != "CHARSET":
                reader.expect("SET")
            spec.charset = replace(spec.charset, charset=read_charset_name(reader))
            return True
        case "COLLATE":
            reader.next()
            spec.charset = replace(spec.charset, collation=read_charset_name(reader))
            return True
        case "BINARY":
            spec.charset = replace(spec.charset, is_bin=True)
        case "ASCII" | "UNICODE" | "BYTE":
            spec.charset = replace(spec.charset, charset=_OLD_WORDS[reader.word])
        case _:
            return False
    reader.next()
    return True


def _read_column_attribute(reader: TokenReader, spec: ColumnSpec) -> bool:
    """Read an attribute of the column that the model has; return whether there was one."""
    match reader.word:
        case "NOT" if reader.peek(1).word == "NULL":
            reader.next()
            spec.is_nullable = False
        case "NULL":
            spec.is_nullable = True
        case "AUTO_INCREMENT":
            spec.is_auto = True
        case "SERIAL":
            reader.expect("SERIAL", "DEFAULT")
            _make_serial(spec)
        case "PRIMARY" | "KEY":
            spec.is_primary = True
            reader.accept("PRIMARY")
        case "UNIQUE":
            spec.is_unique = True
            if reader.peek(1).word in ("KEY", "INDEX"):
                reader.next()
        case "VISIBLE" | "INVISIBLE":
            spec.is_visible = reader.word == "VISIBLE"
        case "WITH" | "WITHOUT":
            spec.is_versioned = reader.next().word == "WITH"
            reader.expect("SYSTEM")
        case _:
            return False
    reader.next()
    return True


def _read_ignored_attribute(reader: TokenReader, spec: ColumnSpec) -> bool:
    """Read an attribute that changes nothing in the model, generated columns and references; return whether there was
    one."""
    word = reader.word
    if reader.accept("DEFAULT") or reader.accept("ON", "UPDATE"):
        skip_value(reader)
    elif reader.accept("COMMENT"):
        reader.read_string()
    elif word in ("GENERATED", "AS"):
        _read_generated(reader, spec)
    elif word in ("CHECK", "CONSTRAINT"):
        if reader.accept("CONSTRAINT") and reader.word != "CHECK":
            reader.read_name()
        reader.expect("CHECK")
        reader.skip_group()
    elif reader.accept("REFERENCES"):
        skip_reference(reader)
        spec.is_reference = _has_references(reader)
    elif reader.accept_any("VIRTUAL", "STORED", "PERSISTENT", "ENFORCED") or reader.accept("NOT", "ENFORCED"):
        pass
    elif word in _NOTHING_TO_US or (reader.is_mariadb and reader.peek(1).word == "="):
        reader.read_name()
        reader.accept("=")
        skip_value(reader)
    else:
        return False
    return True


def _has_references(reader: TokenReader) -> bool:
    """Return whether REFERENCES in a column definition is a foreign key; older servers ignore it."""
    return reader.dialect.server.version >= (100500 if reader.is_mariadb else 90000)


def _read_generated(reader: TokenReader, spec: ColumnSpec) -> None:
    """Read `[GENERATED ALWAYS] AS (…)`, and MariaDB's `AS ROW START` and `AS ROW END`."""
    if reader.accept("GENERATED"):
        reader.expect("ALWAYS")
    reader.expect("AS")
    if reader.accept("ROW"):
        spec.row = reader.accept_any("START", "END") or reader.fail("START or END is missing")
        return
    reader.skip_group()
    spec.is_generated = True


def skip_reference(reader: TokenReader) -> None:
    """Skip the table, the columns and the actions that follow REFERENCES."""
    reader.read_table()
    if reader.word == "(":
        reader.skip_group()
    while True:
        if reader.accept("MATCH"):
            reader.read_name()
        elif reader.accept("ON", "DELETE") or reader.accept("ON", "UPDATE"):
            if not (reader.accept("SET", "NULL") or reader.accept("SET", "DEFAULT") or reader.accept("NO", "ACTION")):
                reader.read_name("RESTRICT or CASCADE")
        else:
            return
