"""Blocks → the entries of canal's protocol, as protobuf bytes."""

from penstock.render.canal.entries import EntryEncoder, EntryOptions

__all__ = ["EntryEncoder", "EntryOptions"]
