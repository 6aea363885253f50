"""Charsets and collations by name: which belongs to which, and what a server takes where nothing is said.

A charset is called as in the log: utf8mb3, also where the server or the statement says utf8.
"""

from penstock.binlog.values.charset import TABLES, TEXT, UNITS
from penstock.errors import SchemaError
from penstock.schema.ddl.column import CharsetSpec
from penstock.schema.dialect import SqlDialect

_GENERAL = "general_ci"
_USUAL = {
    "big5": "chinese_ci", "cp932": "japanese_ci", "dec8": "swedish_ci", "eucjpms": "japanese_ci",
    "euckr": "korean_ci", "gb18030": "chinese_ci", "gb2312": "chinese_ci", "gbk": "chinese_ci", "hp8": "english_ci",
    "latin1": "swedish_ci", "latin5": "turkish_ci", "sjis": "japanese_ci", "swe7": "swedish_ci",
    "tis620": "thai_ci", "ujis": "japanese_ci",
}  # fmt: skip
_WIDEST = {"ascii": 1, "binary": 1, "utf8mb3": 3, "utf8mb4": 4, **TABLES}
_UCA_1400 = {"utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"}


def charset_of_collation(collation: str) -> str:
    """Return the charset of a collation; empty for MariaDB's collations that go with several charsets
    (uca1400_ai_ci)."""
    charset = collation.partition("_")[0]
    if charset == "utf8":
        return "utf8mb3"
    return charset if charset in TEXT or charset == "binary" else ""


def max_character_bytes(charset: str) -> int:
    """Return the most bytes that a character of a charset has."""
    return 2 if charset == "ucs2" else 4 if charset in UNITS else _WIDEST[charset]


def default_collation(charset: str, dialect: SqlDialect) -> str:
    """Return the collation that a server gives a charset when none is named."""
    server, session = dialect.server, dialect.session
    for name, collation in server.default_collations:
        if name == charset:
            return collation
    if charset == "utf8mb4" and not server.is_mariadb and server.version >= 80001:
        return session.utf8mb4_collation or "utf8mb4_0900_ai_ci"
    if server.is_mariadb and server.version >= 110500 and charset in _UCA_1400:
        return f"{charset}_uca1400_ai_ci"
    return built_in_collation(charset)


def built_in_collation(charset: str) -> str:
    """Return the default collation of a charset in servers before MySQL 8.0 and MariaDB 11.5, and where nothing is
    configured."""
    return "binary" if charset == "binary" else f"{charset}_{_USUAL.get(charset, _GENERAL)}"


def bin_collation(charset: str) -> str:
    """Return the binary collation of a charset."""
    return "binary" if charset == "binary" else f"{charset}_bin"


def resolve_charset_name(name: str, dialect: SqlDialect) -> str:
    """Return the full name of a charset that a statement names, such as utf8mb3 for utf8; raise SchemaError for an
    unknown one."""
    if name == "utf8":
        return "utf8mb3" if dialect.server.utf8_is_utf8mb3 else "utf8mb4"
    if name not in TEXT and name != "binary":
        raise SchemaError(f"charset {name} is not known")
    return name


def resolve_collation_name(name: str, charset: str, dialect: SqlDialect) -> str:
    """Return the full name of a collation that a statement names, which may take its charset from the context."""
    if name == "default":
        return default_collation(charset, dialect)
    if charset_of_collation(name):
        if name.startswith("utf8_"):
            return f"{resolve_charset_name('utf8', dialect)}_{name.removeprefix('utf8_')}"
        return name
    return f"{charset}_{name}"


def choose_collation(spec: CharsetSpec, default: str, dialect: SqlDialect, above: str = "") -> str:
    """Return the collation that a definition asks for, with `default` where it asks for none; `above` is what DEFAULT
    stands for."""
    if spec.charset == "default":
        base = above or default
        if dialect.server.is_mariadb:  # which takes the charset only, and what is built in whatever is configured
            base = built_in_collation(charset_of_collation(base))
    elif spec.charset:
        base = default_collation(resolve_charset_name(spec.charset, dialect), dialect)
    else:
        base = default
    if spec.collation:
        return resolve_collation_name(spec.collation, charset_of_collation(base), dialect)
    return bin_collation(charset_of_collation(base)) if spec.is_bin else base
