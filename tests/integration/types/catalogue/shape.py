"""GEOMETRY of all kinds with several SRIDs; compared byte for byte, the SRID included."""

from collections.abc import Sequence

from tests.integration.types.column import Column, Kind, Table

_SHAPES = {
    "POINT": ("POINT(1 2)", "POINT(-0.1 1e-300)", "POINT(1.7976931348623157e308 -4.5)"),
    "LINESTRING": ("LINESTRING(0 0, 1 1, 2 0.5)",),
    "POLYGON": ("POLYGON((0 0, 0 9, 9 9, 9 0, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))",),
    "MULTIPOINT": ("MULTIPOINT(1 1, 2 2, 3 3)",),
    "MULTILINESTRING": ("MULTILINESTRING((0 0, 1 1), (2 2, 3 3, 4 4))",),
    "MULTIPOLYGON": ("MULTIPOLYGON(((0 0, 0 3, 3 3, 3 0, 0 0)), ((5 5, 5 7, 7 7, 7 5, 5 5)))",),
    "GEOMETRYCOLLECTION": ("GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))", "GEOMETRYCOLLECTION()"),
}


def shapes(*, columns_have_srid: bool) -> Table:
    every = [text for texts in _SHAPES.values() for text in texts]
    # Latitudes have limits in 4326.
    small = [text for text in every if "e308" not in text]
    columns = [Column(kind.lower(), Kind.GEOMETRY, kind, _made(texts, 0)) for kind, texts in _SHAPES.items()]
    columns += [
        Column("geometry", Kind.GEOMETRY, "GEOMETRY", _made(every, 0)),
        Column("with_4326", Kind.GEOMETRY, "GEOMETRY", _made(small, 4326)),
        Column("with_3857", Kind.GEOMETRY, "GEOMETRY", _made(every, 3857)),
        Column("required", Kind.GEOMETRY, "POINT NOT NULL", _made(_SHAPES["POINT"], 0)),
    ]
    # To MariaDB a geometry has its place in the log's list of charsets, to MySQL it has none.
    columns.insert(3, Column("between", Kind.TEXT, "TEXT CHARACTER SET utf16", ("'漢'",), charset="utf16"))
    columns.append(Column("after", Kind.TEXT, "VARCHAR(9) CHARACTER SET latin1", ("'é'",), charset="latin1"))
    if columns_have_srid:
        columns.append(Column("only_4326", Kind.GEOMETRY, "POINT SRID 4326", _made(("POINT(1 2)",), 4326)))
    return Table("shapes", columns)


def _made(texts: Sequence[str], srid: int) -> tuple[str, ...]:
    return tuple(f"ST_GeomFromText('{text}', {srid})" for text in texts)
