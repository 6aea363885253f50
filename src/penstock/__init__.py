"""Penstock: change data capture for MySQL and MariaDB."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client import connect
    from penstock.inspect.read import read_binlog

__version__ = "0.1.0"

__all__ = ["__version__", "connect", "read_binlog"]


def __getattr__(name: str) -> Any:
    """The kernels take a second to load: only when they are asked for."""
    if name == "read_binlog":
        from penstock.inspect.read import read_binlog  # noqa: PLC0415

        return read_binlog
    if name == "connect":
        from penstock.client import connect  # noqa: PLC0415

        return connect
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
