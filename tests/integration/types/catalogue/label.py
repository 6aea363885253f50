"""ENUM and SET: counts of labels at which the number takes another byte, and labels beyond ASCII."""

from collections.abc import Sequence

from tests.integration.types.column import Column, Kind, Table

_FOREIGN = {
    "utf8mb4": ("😀", "漢字", "ünï"),
    "latin1": ("é", "ü ß", "€"),
    "cp1251": ("абв", "где"),
    "sjis": ("漢字", "ソ"),  # the second has a byte that is a backslash in ASCII
    "gbk": ("中文", "简"),
    "utf16": ("漢😀", "b"),
    "utf32": ("漢😀", "b"),
    "ucs2": ("漢", "b"),
    "koi8r": ("жук", "z"),
}


def labels() -> Table:
    columns: list[Column] = []
    for count in (1, 2, 255, 256, 700):
        names = [f"label {i}" for i in range(1, count + 1)]
        picks = sorted({1, 2, count // 2 + 1, 255, 256, count} & set(range(1, count + 1)))
        columns.append(_enum(f"enum{count}", names, [f"'label {i}'" for i in picks]))
    for count in (1, 7, 8, 9, 16, 17, 24, 25, 32, 33, 40, 41, 56, 57, 63, 64):
        names = [f"s{i}" for i in range(count)]
        values = ("''", "'s0'", f"'s{count - 1}'", f"'{','.join(names)}'", f"'{','.join(names[::2])}'")
        columns.append(_set(f"set{count}", names, values))
    for charset, names in _FOREIGN.items():
        columns.append(_enum(f"enum_{charset}", names, [f"'{name}'" for name in names], charset))
        columns.append(_set(f"set_{charset}", names, (f"'{','.join(names)}'", f"'{names[0]}'", "''"), charset))
    columns += [
        # Labels have a list of charsets of their own.
        Column("between", Kind.TEXT, "VARCHAR(9) CHARACTER SET cp1251", ("'ж'",), charset="cp1251"),
        _enum("enum_odd", ("it''s", "back\\\\slash", "", "a,b"), ("'it''s'", "'back\\\\slash'", "''", "'a,b'")),
        # A value that is not among the labels becomes number 0 when the server is not strict.
        _enum("enum_invalid", ("a", "b"), ("'nothing'", "'b'", "0", "1")),
        _enum("enum_required", ("a", "b"), ("'b'", "'a'"), attributes="NOT NULL"),
    ]
    return Table("labels", columns)


def _enum(
    name: str, labels: Sequence[str], values: Sequence[str], charset: str = "utf8mb4", attributes: str = ""
) -> Column:
    ddl = f"ENUM({_listed(labels)}) CHARACTER SET {charset} {attributes}"
    return Column(name, Kind.ENUM, ddl, tuple(values), charset=charset)


def _set(name: str, labels: Sequence[str], values: Sequence[str], charset: str = "utf8mb4") -> Column:
    return Column(name, Kind.SET, f"SET({_listed(labels)}) CHARACTER SET {charset}", tuple(values), charset=charset)


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(f"'{label}'" for label in labels)
