"""Checks the sources of instances before they start, for `penstock check`."""

from collections.abc import Sequence
from datetime import UTC, datetime

from penstock.capture.position_resolver import PositionResolver
from penstock.config import DirectorySettings, InstanceSettings, SourceSettings
from penstock.errors import PenstockError
from penstock.source import open_source
from penstock.source.examine import examine_server
from penstock.source.examine_folder import examine_folder
from penstock.source.finding import Finding, Verdict


def examine_instances(instances: Sequence[InstanceSettings]) -> dict[str, list[Finding]]:
    """Check all sources and standbys of the instances, and return the findings by the address of each."""
    findings_by_address: dict[str, list[Finding]] = {}
    for settings in instances:
        for source in settings.sources:
            if source.address not in findings_by_address:
                if isinstance(source, DirectorySettings):
                    findings_by_address[source.address] = list(examine_folder(source))
                else:
                    findings_by_address[source.address] = list(
                        examine_server(source, is_standby=source is settings.standby)
                    )
        if settings.start is not None and not _is_unreadable(findings_by_address[settings.source.address]):
            findings_by_address[settings.source.address].append(_examine_start(settings.source, settings.start))
    return findings_by_address


def _is_unreadable(findings: list[Finding]) -> bool:
    """Return whether the check found that the source's log cannot be read."""
    return not any(finding.check == "reading the log" and finding.verdict is Verdict.OK for finding in findings)


def _examine_start(source: SourceSettings | DirectorySettings, text: str) -> Finding:
    """Check whether the configured start position is in the source's log."""
    try:
        resolver = PositionResolver(open_source(source), 0, 0)
        position = resolver.align(resolver.resolve(text, datetime.now(UTC)))
    except PenstockError as error:
        return Finding(f"start at {text}", Verdict.FAIL, "not in the log", str(error))
    return Finding(f"start at {text}", Verdict.OK, f"found at {position}")
