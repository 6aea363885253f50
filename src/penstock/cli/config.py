"""penstock config"""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.cli.config_check import check_lines, describe_check
from penstock.config import InstanceSettings, ServerSettings
from penstock.config.folder_look import look_at
from penstock.config.shown import as_yaml

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

    A port that is open to everybody is warned about. Keys of canal's files that count for nothing are listed by the
    reason; one that is almost a property of canal is named with it. For each destination it says in which time zone
    canal's clients see TIMESTAMP values. Ends with 1 if something is wrong.

    Examples:

        penstock config check /etc/penstock

        penstock config check penstock.yml --output json
    """
    found = look_at(path)
    if output == "json":
        typer.echo(json.dumps(describe_check(found), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(check_lines(found)))
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
