"""Spark: the data source `penstock`, the session settings, and the pipelines. The only room that imports pyspark."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from penstock.errors import MissingExtraError

if find_spec("pyspark") is None:
    raise MissingExtraError.for_extra("spark", "reading changes with Spark")

if TYPE_CHECKING:
    from penstock.spark.sessions import applied_settings, session

__all__ = ["applied_settings", "session"]


def __getattr__(name: str) -> Any:
    """Load the session's module when it is asked for: Spark's workers do without it."""
    if name not in __all__:
        raise AttributeError(f"module 'penstock.spark' has no attribute {name!r}")
    from penstock.spark import sessions  # noqa: PLC0415

    return getattr(sessions, name)
