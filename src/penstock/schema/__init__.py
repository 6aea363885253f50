"""What a table looks like."""

from penstock.schema.live import check_cascades, read_live_schema

__all__ = ["check_cascades", "read_live_schema"]
