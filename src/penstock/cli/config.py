"""penstock config"""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.cli.config_check import check_lines, describe_check
from penstock.cli.output import Output, OutputFormat
from penstock.config import InstanceSettings, ServerSettings
from penstock.config.folder_reader import read_configuration
from penstock.config.masking import mask_secrets, to_yaml

app = typer.Typer(help="Check and show configuration files.", no_args_is_help=True, rich_markup_mode="markdown")

Conf = Annotated[Path, typer.Argument(help="A conf folder, or the YAML file of a server.", show_default=False)]


@app.command()
def schema(
    what: Annotated[
        Literal["server", "instance"], typer.Argument(help="For the file of a server, or of an instance.")
    ] = "server",
) -> None:
    """Print the JSON Schema of a file, for editors that complete and check. It is always JSON.

    Examples:

        penstock config schema > server.schema.json

        penstock config schema instance
    """
    model = ServerSettings if what == "server" else InstanceSettings
    typer.echo(json.dumps(model.model_json_schema(), indent=2, ensure_ascii=False))


@app.command()
def check(
    path: Conf,
    output: OutputFormat = "text",
) -> None:
    """Check the settings of each destination, without connecting to anything.

    A port that is open to everybody is warned about. Keys of canal's files that have no effect are listed by the
    reason; one that looks like a misspelled property of canal is named with that property. For each destination it says
    in which time zone canal's clients see TIMESTAMP values. Ends with 1 if something is wrong.

    Examples:

        penstock config check /etc/penstock

        penstock config check penstock.yml --output json
    """
    snapshot = read_configuration(path)
    Output(output).print_result(describe_check(snapshot), lambda: check_lines(snapshot))
    if any(instance.error for instance in snapshot.instances.values()):
        raise typer.Exit(1)


@app.command()
def show(
    path: Conf,
    destination: Annotated[str | None, typer.Option(help="Show only this instance.", show_default=False)] = None,
    output: OutputFormat = "text",
) -> None:
    """Print the settings that count, defaults included; secrets are masked. The text is YAML.

    Examples:

        penstock config show /etc/penstock

        penstock config show penstock.yml --destination shop
    """
    settings = read_configuration(path).settings()
    chosen = settings if destination is None else settings.instance(destination)
    Output(output).print_result(mask_secrets(chosen), lambda: to_yaml(chosen).splitlines())
