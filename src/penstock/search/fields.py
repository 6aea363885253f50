"""Rules for declared fields, the same for every index.

Invariant: a declared field means the same search everywhere, so names that one product would read as a pattern or a
path of its own are refused by all.
"""

import re
from collections.abc import Mapping

from penstock.errors import ConfigurationError
from penstock.search.index import FieldKind

_STEP = r"[^\s.:=*?\"\\,/]+"
_NAME = re.compile(rf"(?!_){_STEP}(?:\.{_STEP})*")


def check_fields(fields: Mapping[str, FieldKind]) -> None:
    """Refuse names that cannot be searched, and a field that is also the folder of another."""
    for name in fields:
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"field '{name}' cannot be indexed: a name is letters, digits, '-' and '_' in steps divided by dots, "
                "and does not begin with '_'; rename it in the document spec"
            )
    for name in fields:
        steps = name.split(".")
        for end in range(1, len(steps)):
            parent = ".".join(steps[:end])
            if parent in fields:
                raise ConfigurationError(
                    f"fields '{parent}' and '{name}' exclude each other: one is a value, the other needs an object"
                )


def check_same_fields(declared: Mapping[str, FieldKind], present: Mapping[str, str], where: str) -> None:
    """Raise an error if an index lacks declared fields or has them with other types; it may have more fields."""
    differences = [
        f"'{name}' is {present.get(name, 'not there')}, declared {kind}"
        for name, kind in declared.items()
        if present.get(name) != kind
    ]
    if differences:
        raise ConfigurationError(
            f"{where} exists with other fields: {'; '.join(differences)}. Documents already in it are not searchable "
            "as declared: build a new index, or declare what is there"
        )
