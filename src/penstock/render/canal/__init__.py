"""Blocks → the entries of canal's protocol, as protobuf bytes."""

from penstock.render.canal.entries import Entries, Rendering

__all__ = ["Entries", "Rendering"]
