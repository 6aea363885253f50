"""What a table looks like."""

from penstock.schema.live import check_cascades, live_schema

__all__ = ["check_cascades", "live_schema"]
