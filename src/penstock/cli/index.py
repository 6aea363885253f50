"""penstock index"""

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.index_build import build, rollback
from penstock.cli.index_verify import verify
from penstock.cli.output import Output, OutputFormat
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings

app = typer.Typer(
    help="Explain document specs, which define what a search index holds, build indexes behind an alias, and prove that"
    " an index equals its database.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

app.command()(build)
app.command()(rollback)
app.command()(verify)


@app.command()
def explain(
    spec: Annotated[Path, typer.Argument(help="The document spec, a YAML file.", show_default=False)],
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    svg: Annotated[
        Path | None, typer.Option(help="Also write a diagram of the tables to this SVG file.", show_default=False)
    ] = None,
    output: OutputFormat = "text",
) -> None:
    """Check a document spec against the database, and say what `penstock sync` would do with it.

    Shows the tables of a document, which columns touch which documents and by which SQL, the server's plan for each
    query, missing indexes, foreign keys that cascade, and the mapping. Nothing is changed in the database.

    Examples:

        penstock index explain product.yml --host db1 --user penstock

        penstock index explain product.yml --svg product.svg --output json
    """
    from penstock.document.explain_live import explain_spec  # noqa: PLC0415 - numba takes a second to load
    from penstock.document.explain_picture import draw_report  # noqa: PLC0415
    from penstock.document.explain_text import write_report  # noqa: PLC0415
    from penstock.document.spec_location import load_located_spec  # noqa: PLC0415
    from penstock.source import connect  # noqa: PLC0415
    from penstock.source.connection import translate_errors  # noqa: PLC0415

    load_located_spec(spec)  # a mistake in the file is told without a database
    source = build_source_settings(host, port, user, password)
    with closing(connect(source)) as connection, translate_errors(source), connection.cursor() as cursor:
        report = explain_spec(cursor, spec)
    if svg is not None:
        svg.write_text(draw_report(report), encoding="utf-8")
    Output(output).print_result(asdict(report), lambda: write_report(report))


@app.command()
def schema(output: OutputFormat = "text") -> None:
    """Print the JSON Schema of a document spec, for editors that complete and check. As text it is JSON, too.

    A spec names it in its first line: `# yaml-language-server: $schema=penstock.schema.json`

    Examples:

        penstock index schema > penstock.schema.json
    """
    from penstock.document.spec_schema import build_spec_schema  # noqa: PLC0415 - numba takes a second to load

    content = build_spec_schema()
    Output(output).print_result(content, lambda: json.dumps(content, indent=2, ensure_ascii=False).splitlines())
