"""Tells whether two specs make the same documents."""

import hashlib
import json
from pathlib import Path

from penstock.config.yaml_file import read_yaml
from penstock.document.spec import DocumentSpec


def hash_spec(file: Path, spec: DocumentSpec) -> str:
    """Return a hash of a spec as it was read from a file, with the source of its transform. Comments and the order of
    keys do not count."""
    source = None if spec.transform is None else spec.transform.python.source
    return hashlib.sha256(json.dumps([read_yaml(file), source], sort_keys=True).encode()).hexdigest()
