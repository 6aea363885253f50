"""In which ways a server can write its log, and switching between them for the length of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

_IMAGES = ("FULL", "MINIMAL", "NOBLOB")
_METADATA = {
    "mariadb": ("FULL", "MINIMAL", "NO_LOG"), "mariadb11": ("FULL", "MINIMAL", "NO_LOG"), "mysql57": ("",),
    "mysql80": ("FULL", "MINIMAL"), "mysql9": ("FULL", "MINIMAL"),
}  # fmt: skip
_COMPRESSING = {"mariadb", "mariadb11", "mysql9"}
_POSITIONS = {"mariadb11": ("ON", "OFF")}
"""Whether events inside a transaction say where they end (binlog_legacy_event_pos): MariaDB from 11.4 on."""


@dataclass(frozen=True, slots=True)
class Mode:
    """`metadata` and `positions` are empty where the server has no such setting."""

    server: str
    image: str
    metadata: str
    is_compressed: bool
    positions: str

    def __str__(self) -> str:
        parts = [self.server, self.image, self.metadata or "none", "packed" if self.is_compressed else "plain"]
        return "-".join([*parts, f"positions_{self.positions}"] if self.positions else parts).lower()

    @property
    def has_names(self) -> bool:
        return self.metadata == "FULL"


def every_mode(server: str) -> list[Mode]:
    compression = (False, True) if server in _COMPRESSING else (False,)
    choices = product(_IMAGES, _METADATA[server], compression, _POSITIONS.get(server, ("",)))
    return [Mode(server, *choice) for choice in choices]


@contextmanager
def applied(cursor: Any, mode: Mode) -> Iterator[None]:
    """For this connection and, where that cannot be, for the server; its settings come back at the end."""
    is_mariadb = mode.server.startswith("mariadb")
    globally = {"binlog_row_metadata": mode.metadata} if mode.metadata else {}
    if is_mariadb:
        globally |= {"log_bin_compress": "ON" if mode.is_compressed else "OFF", "log_bin_compress_min_len": "10"}
    if mode.positions:
        globally["binlog_legacy_event_pos"] = mode.positions
    cursor.execute(f"SET SESSION binlog_row_image = '{mode.image}', SESSION time_zone = '+00:00'")
    if mode.is_compressed and not is_mariadb:
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
    before = dict[str, str]()
    try:
        for name, value in globally.items():
            cursor.execute(f"SHOW GLOBAL VARIABLES LIKE '{name}'")
            ((_, before[name]),) = cursor.fetchall()
            cursor.execute(f"SET GLOBAL {name} = {value}")
        yield
    finally:
        for name, value in before.items():
            cursor.execute(f"SET GLOBAL {name} = {value}")
