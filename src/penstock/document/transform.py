"""The transform of a document spec: a function in Python that changes documents before they are indexed.

Documents are JSON texts. Here each becomes Python values and JSON again, so that a number which the function leaves
alone keeps all of its digits:

| JSON                                | Python                                                     |
|-------------------------------------|------------------------------------------------------------|
| integer of at most 64 bits          | int                                                        |
| every other number                  | decimal.Decimal                                            |
| text, true and false, null          | str, bool, None                                            |
| object, array                       | dict, list                                                 |

Invariant: whatever the function does with one document, the others are not affected.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, cast

import pyarrow as pa

from penstock.document.graph import REFERENCES_FIELD
from penstock.document.python_function import PythonFunction
from penstock.errors import MissingExtraError, TransformError

try:
    import orjson
except ImportError as error:
    raise MissingExtraError.for_extra("search", "building documents") from error

_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**64 - 1
_SHORT_INTEGER = 18  # characters of a number that has 64 bits in any case
_MOST_REASON = 1000  # characters
_MOST_ZEROS = 40  # behind the point, more than any column has; a smaller number is written with an exponent


@dataclass(frozen=True, slots=True, eq=False)
class TransformedDocuments:
    """What became of documents: texts, null where there is nothing to index, and by row the reasons of failures."""

    texts: pa.Array
    failures: Mapping[int, str]


class DocumentTransform:
    """Applies the function of a spec to documents.

    transform = DocumentTransform(spec.transform.python)
    text = transform.transform_text('{"number": "A-17"}')
    """

    def __init__(self, function: PythonFunction) -> None:
        """Load the function, which may raise ConfigurationError."""
        self._function = function
        self._call: Callable[[Any], Any] = function.load()

    def transform_documents(self, documents: pa.Array) -> TransformedDocuments:
        """Apply the function to documents, one after the other."""
        texts: list[str | None] = []
        failures: dict[int, str] = {}
        for row, text in enumerate(documents.to_pylist()):
            try:
                texts.append(self.transform_text(text))
            except TransformError as error:
                texts.append(None)
                failures[row] = str(error)
        return TransformedDocuments(pa.array(texts, pa.large_string()), failures)

    def transform_text(self, text: str) -> str | None:
        """Return the document to index instead of this one; None when there is none. Raises TransformError.

        The function does not see the field in which a document names rows that it depends on, and cannot lose it.
        """
        document = json.loads(text, parse_int=_read_integer, parse_float=Decimal)
        references: Any = document.pop(REFERENCES_FIELD, None)
        try:
            result = self._call(document)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's own code may raise anything
            raise self._error(self._function.describe_failure(error)) from None
        if result is None:
            return None
        if not isinstance(result, dict):
            name = type(result).__name__
            raise self._error(f"{self._function.text}: returned a value of the type {name}; return a dict, or None")
        transformed = cast("dict[Any, Any]", result)
        if references is not None:
            transformed = transformed | {REFERENCES_FIELD: references}
        try:
            return _write_document(transformed)
        except (TypeError, ValueError) as error:
            raise self._error(f"{self._function.text}: what it returned cannot be written as JSON: {error}") from None

    def _error(self, text: str) -> TransformError:
        """Return the error for one document."""
        reason = f"transform {text}"
        return TransformError(reason if len(reason) <= _MOST_REASON else f"{reason[:_MOST_REASON]}…")


def _read_integer(text: str) -> int | Decimal:
    """Return an integer; one that has more than 64 bits as a decimal."""
    if len(text) <= _SHORT_INTEGER:
        return int(text)
    number = Decimal(text)
    return int(number) if _LEAST_INTEGER <= number <= _MOST_INTEGER else number


def _write_document(document: dict[Any, Any]) -> str:
    """Return a document as JSON. Raises TypeError or ValueError for what JSON does not have."""
    text = orjson.dumps(document, default=_write_value, option=orjson.OPT_SERIALIZE_NUMPY)
    if b"null" in text:  # which orjson writes for numbers that JSON does not have, too
        _check_numbers(document)
    return text.decode()


def _write_value(value: Any) -> Any:
    """Return a value that orjson does not know: decimals are numbers with all of their digits."""
    if not isinstance(value, Decimal):
        raise TypeError
    if not value.is_finite():
        return None
    text = str(value)
    return orjson.Fragment(format(value, "f") if "E-" in text and value.adjusted() >= -_MOST_ZEROS else text)


def _check_numbers(value: Any) -> None:
    """Raise ValueError when a number in a value is infinite or none at all."""
    is_number = value.is_finite() if isinstance(value, Decimal) else not isinstance(value, float) or isfinite(value)
    if not is_number:
        raise ValueError(f"a number is {value}")
    if isinstance(value, dict):
        for part in cast("dict[Any, Any]", value).values():
            _check_numbers(part)
    elif isinstance(value, list | tuple):
        for part in cast("list[Any]", value):
            _check_numbers(part)
