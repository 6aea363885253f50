"""All that one can find out of the sources of instances before they start."""

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
    """By the address of each source and standby."""
    found: dict[str, list[Finding]] = {}
    for settings in instances:
        for source in settings.sources:
            if source.address not in found:
                if isinstance(source, DirectorySettings):
                    found[source.address] = list(examine_folder(source))
                else:
                    found[source.address] = list(examine_server(source, is_standby=source is settings.standby))
        if settings.start is not None and not _cannot_be_read(found[settings.source.address]):
            found[settings.source.address].append(_start(settings.source, settings.start))
    return found


def _cannot_be_read(findings: list[Finding]) -> bool:
    return not any(one.what == "reading the log" and one.verdict is Verdict.OK for one in findings)


def _start(source: SourceSettings | DirectorySettings, text: str) -> Finding:
    try:
        resolver = PositionResolver(open_source(source), 0, 0)
        place = resolver.align(resolver.resolve(text, datetime.now(UTC)))
    except PenstockError as error:
        return Finding(f"start at {text}", Verdict.FAIL, "not in the log", str(error))
    return Finding(f"start at {text}", Verdict.OK, f"found at {place}")
