"""orjson, or an error that says what to install.

Invariant: every JSON text of this room goes through the same parser, so that two indexes agree on what is JSON.
"""

from penstock.errors import MissingExtraError

try:
    from orjson import JSONDecodeError, dumps, loads
except ImportError as error:
    raise MissingExtraError.for_extra("search", "reading and writing documents") from error

__all__ = ["JSONDecodeError", "dumps", "loads"]
