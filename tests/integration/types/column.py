"""Columns and tables of the tests: how a server declares them, and what is put into them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """What a column holds, which decides how it is shown and compared."""

    INTEGER = auto()
    YEAR = auto()
    BIT = auto()
    DECIMAL = auto()
    FLOAT = auto()
    DOUBLE = auto()
    DATE = auto()
    DATETIME = auto()
    TIMESTAMP = auto()
    TIME = auto()
    TEXT = auto()
    BYTES = auto()
    BINARY = auto()  # BINARY(n): the log cuts its trailing zeros
    ADDRESS = auto()  # MariaDB's UUID, INET4 and INET6, which the log does not tell from BINARY(n)
    ENUM = auto()
    SET = auto()
    JSON = auto()  # MySQL's; MariaDB's is TEXT
    GEOMETRY = auto()
    VECTOR = auto()


@dataclass(frozen=True, slots=True)
class Column:
    """`values` are SQL expressions; `size` is in bits or digits or bytes, as the type counts."""

    name: str
    kind: Kind
    ddl: str
    values: Sequence[str] = ()
    size: int = 0
    scale: int = 0
    unsigned: bool = False
    charset: str = "binary"
    generated: bool = False  # the server computes it, so nothing is put into it

    @property
    def nullable(self) -> bool:
        return "NOT NULL" not in self.ddl


ID = Column("id", Kind.INTEGER, "INT NOT NULL", size=32)
COUNTER = Column("counter", Kind.INTEGER, "INT NOT NULL DEFAULT 0", size=32)


@dataclass(frozen=True, slots=True)
class Table:
    """`columns` without `id`, the key, and `counter`, which every update of all rows raises.

    Rows take the columns' values in turn, and NULL once the values of a nullable column are used up.
    """

    name: str
    columns: Sequence[Column]
    rows: int = 0
    options: str = "DEFAULT CHARSET=utf8mb4"
    keys: str = "PRIMARY KEY (id)"
    sql_mode: str = ""
    updates: int = 12  # how many columns are updated alone, about
    assignments: Sequence[str] = ()  # further updates, of all rows

    @property
    def all_columns(self) -> tuple[Column, ...]:
        return (ID, COUNTER, *self.columns)

    @property
    def size(self) -> int:
        return self.rows or max((len(_turns(column)) for column in self.columns), default=1)

    def create(self) -> str:
        lines = [f"`{column.name}` {column.ddl}" for column in self.all_columns]
        return f"CREATE TABLE `{self.name}` ({', '.join([*lines, self.keys] if self.keys else lines)}) {self.options}"

    def insert(self) -> str:
        filled = [column for column in self.columns if not column.generated]
        names = ", ".join(["id", *(f"`{column.name}`" for column in filled)])
        rows = (
            f"({', '.join([str(row), *(value_of(column, row) for column in filled)])})"
            for row in range(1, self.size + 1)
        )
        return f"INSERT INTO `{self.name}` ({names}) VALUES {', '.join(rows)}"


def value_of(column: Column, row: int) -> str:
    turns = _turns(column)
    return turns[(row - 1) % len(turns)]


def _turns(column: Column) -> tuple[str, ...]:
    return (*column.values, "NULL") if column.nullable else tuple(column.values)
