"""Types that one server alone has: VECTOR of MySQL 9; UUID, INET4, INET6 and COMPRESSED columns of MariaDB."""

from hashlib import sha256

from tests.integration.types.column import Column, Kind, Table

_VECTORS = (
    "STRING_TO_VECTOR('[1, 2, 3]')",
    "STRING_TO_VECTOR('[0, -0.0, 3.4028234e38]')",
    "STRING_TO_VECTOR('[0.1, 1.17549435e-38, -1.5e10]')",
    "STRING_TO_VECTOR('[7]')",
)

# Bytes that do not shrink; without a backslash, which MariaDB's tool does not escape.
_NOISE = b"".join(sha256(bytes([i])).digest() for i in range(16)).replace(b"\\", b"")


def vectors() -> Table:
    long = f"STRING_TO_VECTOR('[{', '.join(f'{i / 7:.6f}' for i in range(3000))}]')"
    columns = [
        # A vector has its place in the log's list of charsets, so texts stand around it.
        _text("before", "VARCHAR(9) CHARACTER SET latin1", ("'é'",), "latin1"),
        Column("v3", Kind.VECTOR, "VECTOR(3)", _VECTORS),
        _text("between", "TEXT CHARACTER SET utf16", ("'漢'",), "utf16"),
        Column("v", Kind.VECTOR, "VECTOR", _VECTORS),
        Column("v16383", Kind.VECTOR, "VECTOR(16383)", (long,)),
        Column("required", Kind.VECTOR, "VECTOR(2) NOT NULL", ("STRING_TO_VECTOR('[1,2]')",)),
        _text("after", "VARCHAR(9)", ("'😀'",)),
    ]
    return Table("vectors", columns)


def addresses() -> Table:
    uuids = (
        "'00112233-4455-6677-8899-aabbccddeeff'",
        "'01234567-89ab-1def-8123-456789abcdef'",
        "'01234567-89ab-4def-8123-456789abcd00'",
        "'01234567-89ab-7def-8000-000000000000'",
        "'00000000-0000-0000-0000-000000000000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
    )
    columns = [
        Column("uuid", Kind.ADDRESS, "UUID", uuids, 16),
        Column("uuid_required", Kind.ADDRESS, "UUID NOT NULL", uuids, 16),
        Column("inet4", Kind.ADDRESS, "INET4", ("'1.2.3.4'", "'0.0.0.0'", "'10.0.0.0'", "'255.255.255.255'"), 4),
        Column("inet6", Kind.ADDRESS, "INET6", ("'::1'", "'::'", "'1::'", "'::ffff:1.2.3.0'", "'2001:db8::ff00'"), 16),
    ]
    return Table("addresses", columns)


def compressed() -> Table:
    """On both sides of where compression begins (100 bytes), and of one, two and three bytes of length."""
    texts = ("''", "'a'", "REPEAT('ü', 49)", "REPEAT('ü', 50)", "REPEAT('a', 255)", "REPEAT('ab', 128)", "UUID()")
    long = (*texts, "REPEAT('xyz', 20000)")
    bytes_ = ("''", "x'00'", "REPEAT(x'00', 300)", "x'80'", "x'8a'", "REPEAT(x'c3', 65535)", f"x'{_NOISE.hex()}'")
    attribute = "COMPRESSED"
    columns = [
        _text("v100", f"VARCHAR(100) {attribute}", texts[:4]),
        _text("v254", f"VARCHAR(254) {attribute} CHARACTER SET latin1", texts[:5], "latin1"),
        _text("v255", f"VARCHAR(255) {attribute} CHARACTER SET latin1", texts, "latin1"),
        _text("v1000", f"VARCHAR(1000) {attribute}", texts),
        _text("required", f"VARCHAR(1000) {attribute} NOT NULL", texts),
        _text("sjis", f"VARCHAR(1000) {attribute} CHARACTER SET sjis", ("'漢字'", "REPEAT('漢字', 200)"), "sjis"),
        _text("tiny", f"TINYTEXT {attribute}", texts[:4]),
        _text("plain", f"TEXT {attribute}", texts),
        _text("medium", f"MEDIUMTEXT {attribute}", (*long, "REPEAT('z', 200000)")),
        _text("long", f"LONGTEXT {attribute}", (*long, "REPEAT('z', 200000)")),
        Column("vb", Kind.BYTES, f"VARBINARY(1000) {attribute}", bytes_[:5]),
        Column("tinyb", Kind.BYTES, f"TINYBLOB {attribute}", bytes_[:2]),
        Column("plainb", Kind.BYTES, f"BLOB {attribute}", bytes_),
        Column("mediumb", Kind.BYTES, f"MEDIUMBLOB {attribute}", bytes_),
        Column("longb", Kind.BYTES, f"LONGBLOB {attribute}", bytes_),
    ]
    return Table("compressed", columns)


def _text(name: str, ddl: str, values: tuple[str, ...], charset: str = "utf8mb4") -> Column:
    return Column(name, Kind.TEXT, ddl, values, charset=charset)
