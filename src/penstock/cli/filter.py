"""penstock filter"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from penstock.cli.instance_options import instance_of
from penstock.config import FilterSettings
from penstock.config.filter_settings import KINDS
from penstock.errors import ConfigurationError
from penstock.model import TableName

app = typer.Typer(help="Look at the filter of an instance.", no_args_is_help=True, rich_markup_mode="markdown")


@app.callback()
def options() -> None:
    """With one command, typer would take its name for an argument."""


@app.command()
def explain(
    tables: Annotated[list[str], typer.Argument(help="Tables, as database.table.", show_default=False)],
    config: Annotated[
        Path | None, typer.Option(help="The conf folder or YAML that `penstock serve` runs with.", show_default=False)
    ] = None,
    destination: Annotated[
        str | None, typer.Option(help="Which of its instances, when there are several.", show_default=False)
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(help="Rules, with commas between them, instead of a YAML.", show_default=False)
    ] = None,
    deny: Annotated[
        list[str] | None, typer.Option(help="Rules for tables that do not pass.", show_default=False)
    ] = None,
    keep: Annotated[
        str, typer.Option(help="Columns to keep, as database.table:column/column,…", show_default=False)
    ] = "",
    drop: Annotated[str, typer.Option(help="Columns to drop, in the same form.", show_default=False)] = "",
    kind: Annotated[
        list[str] | None, typer.Option(help=f"What passes: {', '.join(KINDS)}; by default all.", show_default=False)
    ] = None,
    output: Annotated[Literal["text", "json"], typer.Option(help="How to print it.")] = "text",
) -> None:
    """Say whether a table passes the filter, and which rule decides.

    Rules are regular expressions for `database.table`, the whole of it, in any case. A table passes when a rule of the
    allow list matches, or that list is empty, and none of the deny list does.

    Examples:

        penstock filter explain shop.product shop.audit_2026 --config penstock.yml --destination shop

        penstock filter explain shop.product --allow 'shop\\..*,crm\\..*' --deny '.*\\._.*_gho'
    """
    from penstock.filter import explain as explained  # noqa: PLC0415 - numpy takes a moment to load

    columns = {"keep": keep, "drop": drop} if keep or drop else None
    given = {"allow": allow, "deny": deny, "columns": columns, "kinds": kind}
    settings = _settings(config, destination, {name: value for name, value in given.items() if value is not None})
    found = [explained(settings, TableName.parse(table)) for table in tables]
    if output == "json":
        typer.echo(json.dumps([asdict(one) for one in found], indent=2))
        return
    for one in found:
        colour = typer.colors.GREEN if one.passes else typer.colors.RED
        verdict = typer.style("passes" if one.passes else "is dropped", fg=colour)
        typer.echo(f"{one.table} {verdict}: {one.reason}")
        if one.passes:
            typer.echo(f"  columns: {one.columns}")
            typer.echo(f"  kinds: {', '.join(one.kinds)}")


def _settings(config: Path | None, destination: str | None, given: dict[str, Any]) -> FilterSettings:
    if config is not None:
        if given:
            raise ConfigurationError("--config has a filter already: leave the rules away, or --config")
        return instance_of(config, destination).filter
    if destination is not None:
        raise ConfigurationError("--destination goes with --config")
    return FilterSettings.model_validate(given)
