"""penstock filter"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.instance_options import load_instance
from penstock.cli.output import Output, OutputFormat
from penstock.config import FilterSettings
from penstock.config.filter_settings import KINDS
from penstock.errors import ConfigurationError
from penstock.model import TableName

if TYPE_CHECKING:
    from penstock.filter.explain import FilterExplanation

app = typer.Typer(help="Explain the filter of an instance.", no_args_is_help=True, rich_markup_mode="markdown")


@app.callback()
def keep_subcommand() -> None:
    """Do nothing: with a single command, typer would take its name for an argument."""


@app.command()
def explain(
    tables: Annotated[list[str], typer.Argument(help="Tables, as database.table.", show_default=False)],
    config: Annotated[
        Path | None, typer.Option(help="The conf folder or YAML that `penstock serve` runs with.", show_default=False)
    ] = None,
    destination: Annotated[
        str | None, typer.Option(help="With --config: name of the instance, if there are several.", show_default=False)
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="Instead of --config: rules for tables that pass, separated by commas.", show_default=False),
    ] = None,
    deny: Annotated[
        list[str] | None,
        typer.Option(help="Instead of --config: rules for tables that do not pass.", show_default=False),
    ] = None,
    keep: Annotated[
        str, typer.Option(help="Columns to keep, as database.table:column/column,…", show_default=False)
    ] = "",
    drop: Annotated[
        str, typer.Option(help="Columns to drop, as database.table:column/column,…", show_default=False)
    ] = "",
    kind: Annotated[
        list[str] | None,
        typer.Option(help=f"Kinds of events that pass: {', '.join(KINDS)}; by default all.", show_default=False),
    ] = None,
    output: OutputFormat = "text",
) -> None:
    """Show whether a table passes the filter, and which rule decides.

    Rules are regular expressions that must match the whole of `database.table`, ignoring case. A table passes when a
    rule of the allow list matches, or that list is empty, and none of the deny list does.

    Examples:

        penstock filter explain shop.product shop.audit_2026 --config penstock.yml --destination shop

        penstock filter explain shop.product --allow 'shop\\..*,crm\\..*' --deny '.*\\._.*_gho'
    """
    from penstock.filter import explain_filter as explain_table  # noqa: PLC0415 - numpy takes a moment to load

    columns = {"keep": keep, "drop": drop} if keep or drop else None
    given = {"allow": allow, "deny": deny, "columns": columns, "kinds": kind}
    settings = _load_filter_settings(
        config, destination, {name: value for name, value in given.items() if value is not None}
    )
    explanations = [explain_table(settings, TableName.parse(table)) for table in tables]
    Output(output).print_result(explanations, lambda: _format_explanations(explanations))


def _format_explanations(explanations: "Sequence[FilterExplanation]") -> Iterator[str]:
    """Yield a line for each table: whether it passes, and which rule decides."""
    for explanation in explanations:
        colour = typer.colors.GREEN if explanation.passes else typer.colors.RED
        verdict = typer.style("passes" if explanation.passes else "is dropped", fg=colour)
        yield f"{explanation.table} {verdict}: {explanation.reason}"
        if explanation.passes:
            yield f"  columns: {explanation.columns}"
            yield f"  kinds: {', '.join(explanation.kinds)}"


def _load_filter_settings(config: Path | None, destination: str | None, given: dict[str, Any]) -> FilterSettings:
    """Return the filter from the options, or from an instance of a configuration."""
    if config is not None:
        if given:
            raise ConfigurationError("--config has a filter already: leave the rules away, or --config")
        return load_instance(config, destination).filter
    if destination is not None:
        raise ConfigurationError("--destination goes with --config")
    return FilterSettings.model_validate(given)
