"""penstock check"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import Output, OutputFormat
from penstock.cli.source_options import Host, Password, Port, User, build_source_settings
from penstock.config import DirectorySettings, InstanceSettings, load_server_settings

if TYPE_CHECKING:
    from penstock.source.finding import Finding

_COLOURS = {"ok": typer.colors.GREEN, "warn": typer.colors.YELLOW, "fail": typer.colors.RED}


def check(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A conf folder, or a YAML file with `instances`: all their sources are checked.", show_default=False
        ),
    ] = None,
    host: Host = "127.0.0.1",
    port: Port = 3306,
    user: User = "root",
    password: Password = "",
    path: Annotated[
        str | None, typer.Option(help="Check a folder of binlog files, or its URL, instead of a server.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="Also check that the binlog has this start position: see docs/positions.md.")
    ] = None,
    output: OutputFormat = "text",
) -> None:
    """Check whether a source is ready for capture: what is fine, what could be better, and what must change first.

    Ends with 1 if something must change.

    Examples:

        PENSTOCK_PASSWORD=… penstock check --host db1 --user penstock

        penstock check --host db1 --start 0-1-4711

        penstock check --path /backup/binlogs

        penstock check penstock.yml --output json
    """
    from penstock.instance.examine import examine_instances  # noqa: PLC0415 - numba takes a second to load

    if config is not None:
        instances = load_server_settings(config).all_instances
    else:
        source = build_source_settings(host, port, user, password) if path is None else DirectorySettings(path=path)
        instances = (InstanceSettings(source=source, start=start),)
    findings = examine_instances(instances)
    Output(output).print_result(findings, lambda: _finding_lines(findings))
    if any(finding.verdict.value == "fail" for group in findings.values() for finding in group):
        raise typer.Exit(1)


def _finding_lines(findings: "Mapping[str, Sequence[Finding]]") -> Iterator[str]:
    """Yield, for each source, its address and a line for each finding, with the remedy below it."""
    for address, group in findings.items():
        yield address
        width = max(len(finding.check) for finding in group)
        for finding in group:
            verdict = finding.verdict.value
            yield f"  {typer.style(f'{verdict:4}', fg=_COLOURS[verdict])} {finding.check:{width}}  {finding.value}"
            if finding.remedy:
                yield f"       {' ' * width}  {finding.remedy}"
