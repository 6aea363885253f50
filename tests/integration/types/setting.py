"""What a server can be told about its log, and telling it for the length of a test."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations, product
from typing import Any

_CHECKSUMS = ("CRC32", "NONE")
_IMAGES = ("FULL", "MINIMAL", "NOBLOB")


@dataclass(frozen=True, slots=True)
class Setting:
    """`metadata` is empty where the server has no such setting."""

    metadata: str = "FULL"
    image: str = "FULL"
    checksum: str = "CRC32"
    compressed: bool = False
    partial_json: bool = False

    def __str__(self) -> str:
        parts = [
            f"metadata={self.metadata or 'none'}",
            f"image={self.image}",
            f"checksum={self.checksum}",
            f"compression={'on' if self.compressed else 'off'}",
        ]
        return "-".join([*parts, "partial_json"] if self.partial_json else parts)


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server offers."""

    metadata: tuple[str, ...] = ("FULL", "MINIMAL")
    can_compress: bool = False
    has_partial_json: bool = False


FACTS: Mapping[str, Facts] = {
    "mariadb": Facts(("FULL", "MINIMAL", "NO_LOG"), can_compress=True),
    "mariadb11": Facts(("FULL", "MINIMAL", "NO_LOG"), can_compress=True),
    "mysql57": Facts(("",)),
    "mysql80": Facts(has_partial_json=True),
    "mysql9": Facts(can_compress=True, has_partial_json=True),
}


def every_setting(name: str) -> list[Setting]:
    facts = FACTS[name]
    choices = product(
        facts.metadata,
        _IMAGES,
        _CHECKSUMS,
        (False, True) if facts.can_compress else (False,),
        (False, True) if facts.has_partial_json else (False,),
    )
    return [Setting(*choice) for choice in choices]


@cache
def covering_settings(name: str) -> frozenset[Setting]:
    """Few settings in which any two values of two different choices still come together."""
    usual, *others = every_setting(name)
    # The order decides how few suffice in the end.
    return min((_cover([usual, *others[i:], *others[:i]]) for i in range(len(others))), key=len)


def _cover(settings: list[Setting]) -> frozenset[Setting]:
    left = {pair for setting in settings for pair in _pairs(setting)}
    chosen: set[Setting] = set()
    while left:
        best = max(settings, key=lambda setting: len(left & _pairs(setting)))
        left -= _pairs(best)
        chosen.add(best)
    return frozenset(chosen)


@cache
def _pairs(setting: Setting) -> set[tuple[tuple[str, object], tuple[str, object]]]:
    return set(combinations(asdict(setting).items(), 2))


@contextmanager
def applied(cursor: Any, name: str, setting: Setting) -> Iterator[None]:
    """For this connection, and where that cannot be for the whole server, which gets its settings back at the end."""
    for statement in _session_statements(name, setting):
        cursor.execute(statement)
    wanted = {"binlog_checksum": setting.checksum}
    if setting.metadata:
        wanted["binlog_row_metadata"] = setting.metadata
    if name.startswith("mariadb"):
        wanted["log_bin_compress"] = "ON" if setting.compressed else "OFF"
        wanted["log_bin_compress_min_len"] = "10"
    with ExitStack() as stack:
        for variable, value in wanted.items():
            cursor.execute(f"SHOW GLOBAL VARIABLES LIKE '{variable}'")
            ((_, before),) = cursor.fetchall()
            if before != value:
                stack.callback(_set_global, cursor, variable, before)
                _set_global(cursor, variable, value)
        yield


def _session_statements(name: str, setting: Setting) -> list[str]:
    statements = ["SET time_zone = '+00:00'", f"SET binlog_row_image = '{setting.image}'"]
    if name == "mysql9":
        statements.append(f"SET binlog_transaction_compression = {'ON' if setting.compressed else 'OFF'}")
    if FACTS[name].has_partial_json:
        statements.append(f"SET binlog_row_value_options = '{'PARTIAL_JSON' if setting.partial_json else ''}'")
    return statements


def _set_global(cursor: Any, variable: str, value: str) -> None:
    cursor.execute(f"SET GLOBAL {variable} = {value if value.isdecimal() else repr(value)}")
