"""Rules for declared fields, the same for every index.

Invariant: a declared field means the same search everywhere, so names that one product would read as a pattern or a
path of its own are refused by all.
"""

import re
from collections.abc import Iterable, Mapping

from penstock.errors import ConfigurationError, SinkError
from penstock.search.index import FieldKind

_STEP = r"[^\s.:=*?\"\\,/]+"
_NAME = re.compile(rf"(?!_){_STEP}(?:\.{_STEP})*")
# Kinds in an index that take the values of a declared kind as well, or all but the largest of them.
_ALSO: dict[str, frozenset[str]] = {
    FieldKind.INTEGER: frozenset({FieldKind.UNSIGNED}),
    FieldKind.UNSIGNED: frozenset({FieldKind.INTEGER, FieldKind.KEYWORD}),
}


def check_fields(fields: Mapping[str, FieldKind], objects: Iterable[str] = ()) -> None:
    """Refuse names that cannot be searched, and a field that is also the folder of another, or one of the objects."""
    for name in (*fields, *objects):
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"field '{name}' cannot be indexed: a name is letters, digits, '-' and '_' in steps divided by dots, "
                "and does not begin with '_'; rename it in the document spec"
            )
    for name in (*fields, *(f"{path}.*" for path in objects)):
        steps = name.split(".")
        for end in range(1, len(steps)):
            parent = ".".join(steps[:end])
            if parent in fields:
                raise ConfigurationError(
                    f"fields '{parent}' and '{name}' exclude each other: one is a value, the other needs an object"
                )


def check_epoch(epoch: int, seen: int, where: str) -> None:
    """Raise an error if an index has versions of a higher epoch than the one that will be written."""
    if epoch < seen:
        raise SinkError(
            f"{where} has been written with epoch {seen}, and this pipeline reads a log of epoch {epoch}: another"
            " pipeline writes to it, or the epoch of the source was reset. Stop the other one, or raise the epoch of"
            f" the instance to at least {seen}, or build a new index"
        )


def check_exact_field(field: str, present: Mapping[str, FieldKind], where: str) -> None:
    """Raise an error unless this is a field of the index that is searched by exact values."""
    if present.get(field, FieldKind.TEXT) is FieldKind.TEXT:
        kind = "full text" if field in present else "not declared"
        raise ConfigurationError(f"{where} cannot be searched for values of '{field}', which is {kind}")


def check_same_fields(declared: Mapping[str, str], present: Mapping[str, str], where: str) -> None:
    """Raise an error if an index lacks declared fields or has them with other types; it may have more fields."""
    differences = [
        f"'{name}' is {present.get(name, 'not there')}, declared {kind}"
        for name, kind in declared.items()
        if present.get(name) != kind and present.get(name) not in _ALSO.get(kind, ())
    ]
    if differences:
        raise ConfigurationError(
            f"{where} exists with other fields: {'; '.join(differences)}. Documents already in it are not searchable "
            "as declared: build a new index, or declare what is there"
        )
