"""What a table looks like."""

from penstock.schema.live import live_schema

__all__ = ["live_schema"]
