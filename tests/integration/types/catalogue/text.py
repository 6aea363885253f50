"""Text and bytes: every type, lengths on both sides of where a length takes another byte, every charset."""

from collections.abc import Sequence

from tests.integration.types.column import Column, Kind, Table

_EMOJI = "'😀 ünï 漢字 𐍈'"
_SAMPLE = (
    "Aa1~ äöüßéñçåø ąęłżźőű čšžřďť абвгд єіїґ αβγδ אבגד ابتث กขฃ ქართ Հայ"
    " あいう アイウ ｱｲｳ 漢字語 中文简体 한국어 €™“”… ①Ⅷ㎏ 😀𐍈"
)
_BLOBS = {"TINY": 255, "": 65535, "MEDIUM": 70_000, "LONG": 70_000}


def texts() -> Table:
    columns = [
        _text("char0", "CHAR(0)", ("''",)),
        _text("char1", "CHAR(1)", ("''", "'a'", "'😀'", "' '")),
        _text("char63", "CHAR(63)", ("REPEAT('😀', 63)", "'trailing  '")),
        _text("char64", "CHAR(64)", ("REPEAT('😀', 64)", "REPEAT('é', 64)")),
        _text("char255", "CHAR(255)", ("REPEAT('😀', 255)", "REPEAT('x', 255)", "''")),
        _text("char_required", "CHAR(10) NOT NULL", ("''", _EMOJI)),
        _text("char_latin1", "CHAR(255) CHARACTER SET latin1", ("REPEAT('é', 255)", "''"), "latin1"),
        _text("varchar0", "VARCHAR(0)", ("''",)),
        _text("varchar63", "VARCHAR(63)", ("REPEAT('😀', 63)", "'trailing  '")),
        _text("varchar64", "VARCHAR(64)", ("REPEAT('😀', 64)", _EMOJI)),
        _text("varchar255", "VARCHAR(255) CHARACTER SET latin1", ("REPEAT('é', 255)", "''"), "latin1"),
        _text("varchar256", "VARCHAR(256) CHARACTER SET latin1", ("REPEAT('é', 256)", "'a'"), "latin1"),
        _text("varchar1000", "VARCHAR(1000)", ("REPEAT('漢', 1000)", r"'quote \' slash \\ \n \t \0 \Z end'")),
        _text("varchar_required", "VARCHAR(30) NOT NULL", ("''", _EMOJI)),
        *(
            _text(f"{size or 'plain'}text".lower(), f"{size}TEXT", ("''", _EMOJI, f"REPEAT('x', {length})"))
            for size, length in _BLOBS.items()
        ),
    ]
    return Table("texts", columns)


def binaries() -> Table:
    columns = [
        Column(
            f"binary{size}",
            Kind.BINARY,
            f"BINARY({size})",
            ("''", "x'00'", "x'0100'" if size > 1 else "x'01'", f"REPEAT(x'ff', {size})", f"REPEAT(x'00', {size})"),
            size,
        )
        for size in (1, 2, 4, 16, 255)
    ]
    columns += [
        Column("binary0", Kind.BINARY, "BINARY(0)", ("''",), 0),
        Column("binary_required", Kind.BINARY, "BINARY(8) NOT NULL", ("x'2000'", "x'0020'"), 8),
        Column("varbinary0", Kind.BYTES, "VARBINARY(0)", ("''",)),
        Column("varbinary255", Kind.BYTES, "VARBINARY(255)", ("x'00ff00'", "REPEAT(x'00', 255)", "x'2020'")),
        Column("varbinary256", Kind.BYTES, "VARBINARY(256)", ("x'00'", "REPEAT(x'ff', 256)")),
        *(
            Column(f"{size or 'plain'}blob".lower(), Kind.BYTES, f"{size}BLOB", ("''", "x'00'", f"REPEAT(x'c3', {n})"))
            for size, n in _BLOBS.items()
        ),
    ]
    return Table("binaries", columns)


def charsets(names: Sequence[str]) -> Table:
    """The same text in every charset of the server; what a charset lacks, the server replaces."""
    columns: list[Column] = []
    for name in names:
        every_byte = f"_{name} x'{bytes(range(1, 256)).hex()}'"
        sample = f"CONVERT(_utf8mb4 '{_SAMPLE}' USING {name})"
        columns += [
            _text(f"c_{name}", f"CHAR(3) CHARACTER SET {name}", (f"LEFT({sample}, 3)", "'a'", "''"), name),
            _text(f"v_{name}", f"VARCHAR(300) CHARACTER SET {name}", (sample, "''"), name),
            _text(f"t_{name}", f"TEXT CHARACTER SET {name}", (sample, "''"), name),
        ]
        if name in ONE_BYTE:
            columns.append(_text(f"b_{name}", f"TINYTEXT CHARACTER SET {name}", (every_byte,), name))
    return Table("charsets", columns)


ONE_BYTE = {
    "armscii8", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8", "greek", "hebrew",
    "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "swe7", "tis620",
    "ascii",
}  # fmt: skip


def _text(name: str, ddl: str, values: Sequence[str], charset: str = "utf8mb4") -> Column:
    return Column(name, Kind.TEXT, ddl, tuple(values), charset=charset)
