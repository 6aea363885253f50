"""What lies beside tantivy's own files: which fields the index was made for.

Invariant: the file is written before the index is created, so an index that exists always has it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.disk import open_replacement
from penstock.errors import ConfigurationError
from penstock.search import _json
from penstock.search.index import FieldKind

_FORMAT = 1
_FIELDS_FILE = "penstock.json"


def has_index(folder: Path) -> bool:
    """Tell whether tantivy has made an index in this folder."""
    return (folder / "meta.json").exists()


def write_fields(folder: Path, fields: Mapping[str, FieldKind]) -> None:
    """Write the declared fields of an index atomically: the file is old or new, never half."""
    folder.mkdir(parents=True, exist_ok=True)
    with open_replacement(folder / _FIELDS_FILE, suffix=f".{os.getpid()}", mode=0o666) as file:
        file.write(_json.dumps({"format": _FORMAT, "fields": dict(fields)}))


def read_fields(folder: Path) -> dict[str, FieldKind]:
    """Return the declared fields of the index in this folder."""
    try:
        content: Any = _json.loads((folder / _FIELDS_FILE).read_bytes())
        if content["format"] == _FORMAT:
            return {name: FieldKind(kind) for name, kind in content["fields"].items()}
    except (OSError, _json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{folder} holds an index that is not Penstock's ({_FIELDS_FILE}: {error}); choose a folder of its own"
        ) from error
    raise ConfigurationError(
        f"the index in {folder} has format {content['format']}, this version has {_FORMAT}: rebuild it in a new folder"
    )
