"""What a table looks like."""

from penstock.schema.live import read_live_schema

__all__ = ["read_live_schema"]
