"""Writes docs/settings.md from the settings themselves and the tables of canal's properties."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ByteSize, SecretStr
from pydantic.fields import FieldInfo

from penstock.config import (
    AdminSettings,
    CanalAdminSettings,
    CanalRendering,
    CanalSettings,
    ColumnSettings,
    DirectorySettings,
    FailoverSettings,
    FilterSettings,
    FlightSettings,
    GroupSettings,
    InstanceSettings,
    ManagerSettings,
    MetaSettings,
    RunningSettings,
    ServerSettings,
    SnapshotSettings,
    SourceSettings,
    StoreSettings,
)
from penstock.config.canal.instance_keys import INSTANCE_KEYS
from penstock.config.canal.rules import Honoured, Refused, Rule, RuleTable
from penstock.config.canal.server_keys import SERVER_KEYS

HEAD = """# Settings

Made by `tools/make_settings_doc.py` from `src/penstock/config`. [configuration.md](configuration.md) says where they
are written, [concepts.md](concepts.md) explains the words.

A *destination* is the name of an instance, that is of one capture pipeline, as in canal: clients subscribe to it. It is
not a sink. *Needed* in the column of defaults means that the key has none and must be set.

"""
CANAL = """
## canal's properties

Properties files of canal are read as they are. Of each property:

| outcome | meaning |
|---|---|
| honoured | it sets YAML keys of the tables above: `store.memory` is the key `memory` of the section `store` |
| ignored | it has no effect, for the reason that is given; a log line names the ignored properties of a destination |
| refused | it is an error at the start, because ignoring it would lose data or security, or could not work |

"""
SERVER = (
    ("The server", "", ServerSettings),
    ("Arrow Flight", "flight", FlightSettings),
    ("canal's protocol", "canal", CanalSettings),
    ("HTTP", "admin", AdminSettings),
    ("canal's admin protocol", "canal_admin", CanalAdminSettings),
    ("Several servers", "running", RunningSettings),
    ("canal-admin as the source of instances", "manager", ManagerSettings),
    ("A group", "groups[]", GroupSettings),
)
INSTANCE = (
    ("An instance", "", InstanceSettings),
    ("A server as its source", "source", SourceSettings),
    ("A folder as its source", "source", DirectorySettings),
    ("When the standby takes over", "failover", FailoverSettings),
    ("What is captured", "filter", FilterSettings),
    ("Columns", "filter.columns", ColumnSettings),
    ("What canal's clients see", "canal", CanalRendering),
    ("The store", "store", StoreSettings),
    ("Snapshots", "snapshot", SnapshotSettings),
    ("Cursors", "meta", MetaSettings),
)


def render() -> str:
    lines = [HEAD + "## server.yml"]
    for keys, title in ((SERVER, ""), (INSTANCE, "\n## An instance's file")):
        if title:
            lines.append(title)
        for name, prefix, model in keys:
            lines += ["", f"### {name}" + (f" (`{prefix}`)" if prefix else ""), "", *_settings(model)]
    lines.append(CANAL + "### canal.properties\n")
    lines += _properties(SERVER_KEYS)
    lines.append("\n### instance.properties\n")
    lines += _properties(INSTANCE_KEYS)
    return "\n".join(lines) + "\n"


def _settings(model: type[BaseModel]) -> Iterator[str]:
    yield "| key | default | |"
    yield "|---|---|---|"
    for name, field in model.model_fields.items():
        yield f"| `{name}` | {_default(field)} | {_cell(field.description or '')} |"


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True)
    if field.is_required():
        return "needed"
    if value is None or isinstance(value, BaseModel):
        return ""
    if isinstance(value, SecretStr):
        return "" if value.get_secret_value() else "empty"
    if isinstance(value, ByteSize):
        return f"`{value.human_readable()}`"
    if isinstance(value, tuple | list | dict):
        return _cell(", ".join(f"`{item}`" for item in value))
    return f"`{str(value).lower() if isinstance(value, bool) else value}`" if value != "" else ""


def _properties(table: RuleTable) -> Iterator[str]:
    yield "| property | outcome | |"
    yield "|---|---|---|"
    for key, rule in table.keys.items():
        yield f"| `{key}` | {_outcome(rule)} |"
    for prefix, rule in table.prefixes.items():
        yield f"| `{prefix}*` | {_outcome(rule)} |"


def _outcome(rule: Rule) -> str:
    if isinstance(rule, Honoured):
        paths = [f"`{path}`" for path in rule.to.split(", ")]
        keys = f"YAML key{'s' if len(paths) > 1 else ''} {', '.join(paths)}"
        return f"honoured | sets the {keys}. {_cell(rule.note or _describe(rule.to))}"
    return f"{'refused' if isinstance(rule, Refused) else 'ignored'} | {_cell(rule.reason)}"


def _describe(path: str) -> str:
    """Return the descriptions of the settings with these paths, such as `store.segment`."""
    return "; ".join(_find_description(each.split(".")) for each in path.split(", "))


def _find_description(names: list[str]) -> str:
    *sections, name = names
    prefix = ".".join("source" if section == "standby" else section for section in sections)
    models = [model for _, section, model in (*INSTANCE, *SERVER) if section == prefix]
    return next(model.model_fields[name].description or "" for model in models if name in model.model_fields)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    (Path(__file__).parents[1] / "docs" / "settings.md").write_text(render(), encoding="utf-8")
