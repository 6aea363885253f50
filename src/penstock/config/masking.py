"""Settings for display: secrets are masked, and differences are listed by key."""

from typing import Any, cast

import yaml
from pydantic import BaseModel, SecretStr

MASK = "***"


def mask_secrets(value: Any) -> Any:
    """Return settings as plain data for YAML or JSON, with secrets masked. An empty secret stays empty."""
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
    """Return settings as YAML with secrets masked."""
    return yaml.safe_dump(mask_secrets(value), sort_keys=False, allow_unicode=True)


def describe_differences(old: BaseModel, new: BaseModel) -> list[str]:
    """Return one line for each key whose value differs, as in `store.memory: 67108864 → 134217728`."""
    before, after = _flatten(old), _flatten(new)
    keys = [*before, *(key for key in after if key not in before)]
    return [
        _describe_difference(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)
    ]


def _describe_difference(key: str, old: Any, new: Any) -> str:
    """Return the line for one key; the values of a secret are masked."""
    if isinstance(old, SecretStr) or isinstance(new, SecretStr):
        return f"{key}: {MASK}"
    return f"{key}: {mask_secrets(old)} → {mask_secrets(new)}"


def _flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return all values of settings by their dotted keys."""
    if isinstance(value, BaseModel):
        items = {name: getattr(value, name) for name in type(value).model_fields}
    elif isinstance(value, dict):
        items = cast("dict[str, Any]", value)
    else:
        return {prefix: value}
    flat: dict[str, Any] = {}
    for name, item in items.items():
        flat |= _flatten(item, f"{prefix}.{name}" if prefix else str(name))
    return flat
