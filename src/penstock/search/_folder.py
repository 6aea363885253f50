"""What lies beside tantivy's own files: which fields the index was made for, the epoch of its versions, and the newest
term of each pipeline that writes to it.

Invariant: the file is written before the index is created, so an index that exists always has it.
"""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.disk import open_replacement
from penstock.errors import ConfigurationError
from penstock.search import _json
from penstock.search.index import FieldKind

_FORMAT = 2
_FIELDS_FILE = "penstock.json"


def has_index(folder: Path) -> bool:
    """Tell whether tantivy has made an index in this folder."""
    return (folder / "meta.json").exists()


@dataclass(frozen=True, slots=True)
class FolderState:
    """What an index in a folder remembers besides its documents."""

    fields: dict[str, FieldKind]
    epoch: int = 0  # the highest one that it was written with
    terms: dict[str, int] = field(default_factory=dict[str, int])  # the newest one of each pipeline
    load_id: str = ""  # of the load that has filled it


def write_state(folder: Path, state: FolderState) -> None:
    """Write what an index remembers atomically: the file is old or new, never half."""
    folder.mkdir(parents=True, exist_ok=True)
    with open_replacement(folder / _FIELDS_FILE, suffix=f".{os.getpid()}", mode=0o666) as file:
        file.write(_json.dumps({"format": _FORMAT, **asdict(state)}))


def read_state(folder: Path) -> FolderState:
    """Return what the index in this folder remembers."""
    try:
        content: Any = _json.loads((folder / _FIELDS_FILE).read_bytes())
        if content["format"] == _FORMAT:
            fields = {name: FieldKind(kind) for name, kind in content["fields"].items()}
            terms = {name: int(number) for name, number in content.get("terms", {}).items()}
            return FolderState(fields, int(content.get("epoch", 0)), terms, str(content.get("load_id", "")))
    except (OSError, _json.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{folder} holds an index that is not Penstock's ({_FIELDS_FILE}: {error}); choose a folder of its own"
        ) from error
    raise ConfigurationError(
        f"the index in {folder} has format {content['format']}, this version has {_FORMAT}: rebuild it in a new folder"
    )
