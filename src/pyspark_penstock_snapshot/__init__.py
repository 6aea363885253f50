"""Found by Spark by its name: makes `format("penstock_snapshot")` work without registration."""

from penstock.spark.snapshot_source import SnapshotDataSource as DefaultSource

__all__ = ["DefaultSource"]
