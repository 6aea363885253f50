"""Random DDL on a real server: whatever it takes must leave our model equal to its catalogue; what it refuses counts
for nothing."""

import random

from pymysql import MySQLError

from penstock.schema.shape import TableDefinition
from tests.support.ddl_server import FollowedServer

_CHARSETS = ("latin1", "utf8", "utf8mb4", "ucs2", "gbk", "cp1251", "ascii", "utf16", "binary")
# Labels keep their bytes, and MySQL 5.7 reads beyond the end of those that are half a character; two columns with the
# same labels share them in its files, even in charsets that write them differently.
_CONVERTIBLE = tuple(charset for charset in _CHARSETS if charset not in ("ucs2", "utf16"))
_COLLATIONS = ("latin1_bin", "utf8mb4_unicode_ci", "utf8_bin", "gbk_bin", "latin1_german1_ci", "utf8mb4_bin")
_PLAIN = (
    "TINYINT", "SMALLINT UNSIGNED", "MEDIUMINT(7) ZEROFILL", "INT", "INTEGER UNSIGNED", "BIGINT(20)", "BOOL", "DECIMAL",
    "NUMERIC(9)", "DEC(12,4) UNSIGNED", "FLOAT", "FLOAT(30)", "DOUBLE PRECISION", "REAL", "BIT", "BIT(17)", "DATE",
    "TIME(2)",
    "DATETIME", "DATETIME(6)", "TIMESTAMP NULL", "TIMESTAMP", "YEAR", "BINARY(7)", "VARBINARY(40)", "BLOB", "TINYBLOB",
    "MEDIUMBLOB", "BLOB(300)", "JSON", "POINT", "GEOMETRY", "LONG VARBINARY", "NCHAR(4)", "NVARCHAR(9)",
)  # fmt: skip
_TEXTS = ("CHAR", "CHAR(9)", "VARCHAR(30)", "VARCHAR(300)", "VARCHAR(900)", "TEXT", "TINYTEXT", "MEDIUMTEXT",
          "LONGTEXT", "TEXT(200)", "TEXT(20000)", "LONG", "ENUM('a','b')", "ENUM('it''s','é ')",
          "SET('x','y','z')")  # fmt: skip
_NAMES = ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "Col", "col x", "é", "key", "PRIMARY", "x_2")
_MODES = ("DEFAULT", "DEFAULT", "''", "'ANSI_QUOTES'", "'NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES'", "'REAL_AS_FLOAT'")
_LOST = (0, 2006, 2013)  # the connection


class RandomDdl:
    def __init__(self, followed: FollowedServer, release: str, seed: int) -> None:
        self.followed, self.release = followed, release
        self.chance = random.Random(f"{seed} {release}")
        self.refused = 0

    def run(self, steps: int) -> int:
        """How many statements the server took."""
        taken = 0
        while taken < steps:
            statement = self._statement()
            try:
                self.followed.run(statement)
                taken += 1
                if taken % 50 == 0:
                    self.followed.compare_live()
            except MySQLError as error:
                if error.args[0] in _LOST:
                    raise
                self.refused += 1
            except Exception as error:
                raise AssertionError(f"after {taken} statements: {statement}") from error
        return taken

    def _statement(self) -> str:
        tables = self._tables()
        if not tables or (len(tables) < 8 and self._happens(0.1)):
            return self._create()
        kinds = [
            (self._alter, 70),
            (self._index, 8),
            (self._rename, 5),
            (self._like, 2),
            (self._drop, 3),
            (self._other, 6),
        ]
        choices, weights = zip(*kinds, strict=True)
        make = self.chance.choices(choices, weights)[0]
        return make(self.chance.choice(tables))

    def _tables(self) -> list[TableDefinition]:
        definitions = [self.followed.sent.find(name) for name in self.followed.sent.table_names()]
        return [table for table in definitions if table]

    def _happens(self, share: float) -> bool:
        return self.chance.random() < share

    def _one_of(self, *texts: str) -> str:
        return self.chance.choice(texts)

    def _create(self) -> str:
        names = self.chance.sample(_NAMES, self.chance.randint(1, 7))
        elements = [f"{_name(name)} {self._definition()}" for name in names]
        elements += [self._key(names) for _ in range(self.chance.choice((0, 1, 1, 2, 3)))]
        start = "CREATE OR REPLACE TABLE" if self._is_mariadb and self._happens(0.1) else "CREATE TABLE"
        return f"{start} {self._new_table()} ({', '.join(elements)}){self._options()}"

    @property
    def _is_mariadb(self) -> bool:
        return self.release.startswith("mariadb")

    def _new_table(self) -> str:
        return _name(self._one_of("t1", "t2", "t3", "T1", "t 4", "t5", "t6", "t7", "t8"))

    def _options(self) -> str:
        options = [
            self._one_of(
                "", "", f" CHARSET={self.chance.choice(_CHARSETS)}", f" COLLATE {self.chance.choice(_COLLATIONS)}"
            ),
            self._one_of("", "", " ENGINE=InnoDB", " ENGINE=MyISAM"),
            self._one_of("", "", " COMMENT 'x, y' ROW_FORMAT=DYNAMIC"),
        ]
        if self._is_mariadb and self._happens(0.1):
            options.append(" WITH SYSTEM VERSIONING")
        return "".join(options)

    def _definition(self) -> str:
        if self._happens(0.5):
            text = self.chance.choice(_PLAIN)
        else:
            text = self.chance.choice(_TEXTS)
            charsets = _CHARSETS if text[:4] not in {"ENUM", "SET("} else _CONVERTIBLE
            text += self._one_of(
                "", "", "", f" CHARSET {self.chance.choice(charsets)}", f" COLLATE {self.chance.choice(_COLLATIONS)}",
                " BINARY", " ASCII",
            )  # fmt: skip
            if self._is_mariadb and self._happens(0.1):
                text += " COMPRESSED"
        text += self._one_of("", "", "", " NOT NULL", " NULL", " NOT NULL COMMENT 'c'", " DEFAULT NULL")
        text += self._one_of(
            *[""] * 12, " UNIQUE", " PRIMARY KEY", " AUTO_INCREMENT UNIQUE", " INVISIBLE", self._generated()
        )
        return text

    def _generated(self) -> str:
        # MySQL 8.0.12 can crash when a virtual column comes to a table (dd_copy_private).
        return " AS (1) STORED" if self.release == "mysql80" else self._one_of(" AS (1) VIRTUAL", " AS (1) STORED")

    def _key(self, names: list[str]) -> str:
        kind = self._one_of(
            "KEY", "INDEX", "UNIQUE", "UNIQUE KEY", "PRIMARY KEY", "FULLTEXT KEY", "CONSTRAINT cx UNIQUE"
        )
        name = "" if kind == "PRIMARY KEY" else self._one_of("", "", "", " k1", " k2", " a")
        return f"{kind}{name} ({self._parts(names)})"

    def _parts(self, names: list[str]) -> str:
        chosen = self.chance.sample(names, min(len(names), self.chance.choice((1, 1, 2, 3))))
        return ", ".join(_name(name) + self._one_of("", "", "", "(3)", "(30)", " DESC") for name in chosen)

    def _alter(self, table: TableDefinition) -> str:
        names = [field.name for field in table.fields if not field.is_hidden]
        clauses = [self._clause(table, names) for _ in range(self.chance.choice((1, 1, 1, 2, 2, 3, 4)))]
        if sum(clause.startswith(("CONVERT", "CHARSET", "COLLATE")) for clause in clauses) > 1:
            # MySQL refuses two of them, and MariaDB takes some columns for the one and some for the other.
            clauses = clauses[:1]
        return f"ALTER TABLE {_name(table.name.table)} {', '.join(clauses)}"

    def _clause(self, table: TableDefinition, names: list[str]) -> str:  # noqa: C901, PLR0911 - one per clause
        old, new = _name(self.chance.choice(names)), _name(self.chance.choice(_NAMES))
        where = self._one_of("", "", " FIRST", f" AFTER {_name(self.chance.choice(names))}", f" AFTER {new}")
        index = _name(self.chance.choice(table.indexes).name) if table.indexes else "none"
        exists, absent = (" IF EXISTS", " IF NOT EXISTS") if self._is_mariadb and self._happens(0.3) else ("", "")
        match self.chance.randrange(17):
            case 0 | 1 | 2:
                return f"ADD COLUMN{absent} {new} {self._definition()}{where}"
            case 3:
                other = _name(self.chance.choice(_NAMES))
                return f"ADD ({new} {self._definition()}, {other} {self._definition()})"
            case 4 | 5:
                return f"MODIFY{exists} {old} {self._definition()}{where}"
            case 6 | 7:
                return f"CHANGE COLUMN{exists} {old} {new} {self._definition()}{where}"
            case 8:
                return f"DROP COLUMN{exists} {old}"
            case 9:
                return f"RENAME COLUMN {old} TO {new}"
            case 10 | 11:
                return f"ADD {self._key(names)}"
            case 12:
                return self._one_of(f"DROP KEY{exists} {index}", "DROP PRIMARY KEY", f"DROP INDEX {index}")
            case 13:
                return f"RENAME KEY {index} TO {self._one_of('k1', 'k2', 'k9')}"
            case 14:
                return f"CONVERT TO CHARACTER SET {self.chance.choice(_CONVERTIBLE)}"
            case 15:
                return self._one_of(
                    f"CHARSET {self.chance.choice(_CHARSETS)}", f"COLLATE {self.chance.choice(_COLLATIONS)}",
                    "ENGINE=InnoDB", "ENGINE=MyISAM", "FORCE",
                )  # fmt: skip
            case _:
                return self._rare(old)

    def _rare(self, column: str) -> str:
        if self._is_mariadb:
            return self._one_of("ADD SYSTEM VERSIONING", "DROP SYSTEM VERSIONING", f"ALTER {column} DROP DEFAULT")
        return self._one_of(
            f"ALTER {column} SET INVISIBLE", f"ALTER {column} SET VISIBLE", f"ALTER COLUMN {column} SET DEFAULT NULL"
        )

    def _index(self, table: TableDefinition) -> str:
        names = [field.name for field in table.fields if not field.is_hidden]
        if table.indexes and self._happens(0.4):
            return f"DROP INDEX {_name(self.chance.choice(table.indexes).name)} ON {_name(table.name.table)}"
        kind = self._one_of("INDEX", "UNIQUE INDEX", "FULLTEXT INDEX")
        return (
            f"CREATE {kind} {self._one_of('k1', 'k2', 'k3', 'a')} ON {_name(table.name.table)} ({self._parts(names)})"
        )

    def _rename(self, table: TableDefinition) -> str:
        old, new = _name(table.name.table), self._new_table()
        return self._one_of(
            f"RENAME TABLE {old} TO {new}",
            f"ALTER TABLE {old} RENAME TO {new}",
            f"RENAME TABLE {old} TO tmp, {new} TO {old}, tmp TO {new}",
        )

    def _like(self, table: TableDefinition) -> str:
        return f"CREATE TABLE {self._new_table()} LIKE {_name(table.name.table)}"

    def _drop(self, table: TableDefinition) -> str:
        return self._one_of(
            f"DROP TABLE {_name(table.name.table)}", f"DROP TABLE IF EXISTS {self._new_table()}, nothing"
        )

    def _other(self, table: TableDefinition) -> str:
        return self._one_of(
            f"TRUNCATE TABLE {_name(table.name.table)}",
            f"ALTER DATABASE CHARACTER SET {self.chance.choice(_CHARSETS)}",
            f"ALTER DATABASE COLLATE {self.chance.choice(_COLLATIONS)}",
            f"SET sql_mode = {self.chance.choice(_MODES)}",
            "SET system_versioning_alter_history = KEEP" if self._is_mariadb else "SET sql_mode = ''",
            f"SET explicit_defaults_for_timestamp = {self.chance.randrange(2)}",
        )


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
