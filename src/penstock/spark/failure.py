"""Reading Spark's errors."""

import re

from penstock import errors

_OURS = re.compile(r"penstock\.errors\.(\w+): ")


def cause_of(failure: Exception) -> str:
    """Return the line of a Spark error that says what happened, without the stack traces of two languages."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("penstock.errors.")]
    return ours[-1].partition(": ")[2] if ours else lines[0]


def error_class_of(failure: Exception) -> type[errors.PenstockError] | None:
    """Return the class of the Penstock error that made a query fail; None when it was not one of ours."""
    if isinstance(failure, errors.PenstockError):
        return type(failure)
    names = _OURS.findall(str(failure))
    kind = getattr(errors, names[-1], None) if names else None
    return kind if isinstance(kind, type) and issubclass(kind, errors.PenstockError) else None
