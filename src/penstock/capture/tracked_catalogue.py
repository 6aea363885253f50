"""Finds the tables at a position of the log in the schema history. A position of another epoch is never answered from
the tables of this one."""

from penstock.binlog.events.block import Block
from penstock.errors import SchemaError
from penstock.model import Position
from penstock.schema.catalogue import Catalogue
from penstock.schema.history import SchemaHistory


def catalogue_at(history: SchemaHistory, position: Position) -> Catalogue:
    """Return the tables at a position; raise SchemaError when they are not known."""
    if history.begin_of_part(position).epoch != position.epoch:
        raise SchemaError(f"what the tables were at {position}, before the source was switched, is not known")
    return history.catalogue if position >= history.last else history.catalogue_at(position)


def catalogue_or_none(history: SchemaHistory, position: Position) -> Catalogue | None:
    """Return the tables at a position; None when they are not known."""
    try:
        return catalogue_at(history, position)
    except SchemaError:
        return None


def is_uniform(history: SchemaHistory, block: Block) -> bool:
    """Return whether the tables are the same from the begin to the end of a block."""
    if history.last <= block.start or block.end <= history.first:
        return True
    return catalogue_or_none(history, block.start) is catalogue_or_none(history, block.end)
