"""penstock config"""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.config import InstanceSettings, ServerSettings, Snapshot
from penstock.config.folder_look import look_at
from penstock.config.shown import as_yaml
from penstock.config.snapshot import SERVER, FoundInstance

app = typer.Typer(help="Look at configuration files.", no_args_is_help=True, rich_markup_mode="markdown")

Conf = Annotated[Path, typer.Argument(help="A conf folder, or the YAML of a server.", show_default=False)]


@app.command()
def schema(
    what: Annotated[Literal["server", "instance"], typer.Argument(help="Of which file.")] = "server",
) -> None:
    """Print the JSON Schema of a file, for editors that complete and check.

    Examples:

        penstock config schema > server.schema.json

        penstock config schema instance
    """
    model = ServerSettings if what == "server" else InstanceSettings
    typer.echo(json.dumps(model.model_json_schema(), indent=2, ensure_ascii=False))


@app.command()
def check(
    path: Conf,
    output: Annotated[Literal["text", "json"], typer.Option(help="How to print it.")] = "text",
) -> None:
    """Say of each destination whether its settings are right; nothing is connected to.

    Keys of canal's files that count for nothing are named, with the reasons in JSON. Ends with 1 if something is wrong.

    Examples:

        penstock config check /etc/penstock

        penstock config check penstock.yml --output json
    """
    found = look_at(path)
    if output == "json":
        typer.echo(json.dumps(_as_json(found), indent=2, ensure_ascii=False))
    else:
        width = max(map(len, [SERVER, *found.instances]))
        typer.echo(f"{SERVER:{width}}  {_verdict([key for key, _ in found.ignored])}")
        for name, one in found.instances.items():
            typer.echo(f"{name:{width}}  {one.error or _verdict([key for key, _ in one.ignored])}")
    if any(one.error for one in found.instances.values()):
        raise typer.Exit(1)


@app.command()
def show(
    path: Conf,
    destination: Annotated[str | None, typer.Option(help="This instance alone.", show_default=False)] = None,
) -> None:
    """Print the settings that count, defaults included, as YAML; secrets are masked.

    Examples:

        penstock config show /etc/penstock

        penstock config show penstock.yml --destination shop
    """
    settings = look_at(path).settings()
    typer.echo(as_yaml(settings if destination is None else settings.instance(destination)), nl=False)


def _verdict(ignored: list[str]) -> str:
    return f"ok, ignored: {', '.join(ignored)}" if ignored else "ok"


def _as_json(found: Snapshot) -> dict[str, object]:
    return {
        "server": {"ignored": dict(found.ignored)},
        "instances": {name: _instance_json(one) for name, one in found.instances.items()},
    }


def _instance_json(one: FoundInstance) -> dict[str, object]:
    return {"error": one.error, "ignored": dict(one.ignored), "files": [str(path) for path in one.paths]}
