"""Tables at the edge of what a server allows: very many columns, very many labels, names beyond ASCII."""

from tests.integration.types.column import Column, Kind, Table


def with_many_columns(count: int) -> Table:
    columns = [Column(f"column_{i}", Kind.INTEGER, "TINYINT", ("1", "-1"), 8) for i in range(count)]
    # InnoDB has at most 1017 columns.
    return Table("with_many_columns", columns, options="ENGINE=MyISAM", updates=2)


def with_many_labels(count: int, padding: int) -> Table:
    """Servers look for a label twice in a time that grows with the square of their number."""
    labels = ", ".join(f"'label é {'x' * padding} {i}'" for i in range(count))
    values = ("1", "255", "256", str(count))
    ddl = f"ENUM({labels}) CHARACTER SET utf8mb4"
    return Table("with_many_labels", [Column("label", Kind.ENUM, ddl, values, charset="utf8mb4")])


def with_unusual_names() -> Table:
    names = ("ä b", "漢字", "q'u\"o", "@1", "x" * 64, "_seq", "UPPER")
    columns = [Column(name, Kind.INTEGER, "INT", ("1", "2"), 32) for name in names]
    return Table("täble 漢", columns)


def with_many_nulls() -> Table:
    """More NULLs than rows in the first event, none in the many rows after it."""
    names = [f"t{i}" for i in range(6)]
    columns = [Column(name, Kind.TEXT, "TEXT", ("NULL", "'x'"), charset="utf8mb4") for name in names]
    filled = "".join(f"{name} = 'a', " for name in names)
    return Table("with_many_nulls", columns, rows=10, assignments=[filled, *["t0 = CONCAT('y', counter),"] * 80])
