"""Found by Spark by its name: makes `format("penstock")` work without registration."""

from penstock.spark.source import PenstockDataSource as DefaultSource

__all__ = ["DefaultSource"]
