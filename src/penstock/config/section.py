"""The base of all settings: they are immutable, and an unknown key is an error."""

from typing import Any, TypeGuard

from pydantic import BaseModel, ConfigDict, WithJsonSchema


class Section(BaseModel):
    """A section of the settings. Unknown keys are errors, and values never appear in error messages."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


# In a JSON Schema: a list of texts, or one.
TEXTS_SCHEMA = WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]})


def is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a dict."""
    return isinstance(value, dict)
