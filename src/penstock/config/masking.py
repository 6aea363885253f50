"""Settings for people to look at: secrets are masked, and what changed is said by key."""

from typing import Any, cast

import yaml
from pydantic import BaseModel, SecretStr

MASK = "***"


def mask_secrets(value: Any) -> Any:
    """As plain data that YAML and JSON can write. An empty secret is mask_secrets: it is none."""
    if isinstance(value, SecretStr):
        return MASK if value.get_secret_value() else ""
    if isinstance(value, BaseModel):
        return {name: mask_secrets(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, dict):
        return {str(key): mask_secrets(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [mask_secrets(item) for item in cast("list[Any]", value)]
    if value is None or isinstance(value, bool):
        return value
    return next((kind(value) for kind in (int, float, str) if isinstance(value, kind)), str(value))


def to_yaml(value: Any) -> str:
    return yaml.safe_dump(mask_secrets(value), sort_keys=False, allow_unicode=True)


def describe_differences(old: BaseModel, new: BaseModel) -> list[str]:
    """One line for each key that has another value, `store.memory: 67108864 → 134217728`."""
    before, after = _flat(old), _flat(new)
    keys = [*before, *(key for key in after if key not in before)]
    return [_line(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)]


def _line(key: str, old: Any, new: Any) -> str:
    if isinstance(old, SecretStr) or isinstance(new, SecretStr):
        return f"{key}: {MASK}"
    return f"{key}: {mask_secrets(old)} → {mask_secrets(new)}"


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, BaseModel):
        several = {name: getattr(value, name) for name in type(value).model_fields}
    elif isinstance(value, dict):
        several = cast("dict[str, Any]", value)
    else:
        return {prefix: value}
    found: dict[str, Any] = {}
    for name, item in several.items():
        found |= _flat(item, f"{prefix}.{name}" if prefix else str(name))
    return found
