"""What all settings have in common: they do not change, and a key that nobody knows is a mistake."""

from typing import Any, TypeGuard

from pydantic import BaseModel, ConfigDict, WithJsonSchema


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


# In a JSON Schema: a list of texts, or one.
TEXTS_SCHEMA = WithJsonSchema({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]})


def is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
