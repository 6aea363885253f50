"""penstock binlog --verify"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.binlog.events.file_log import printable
from penstock.cli.binlog_request import INCIDENT_CODE
from penstock.cli.progress import ProgressLine
from penstock.inspect.verify import FileVerdict, verify_file
from penstock.render.bars import format_size


def verify_files(
    paths: Sequence[Path], progress: ProgressLine, warn: Callable[[str], None], *, is_json: bool = False
) -> int:
    """Print a line per file, warn of each incident; return 0 if all files are sound, 1 if not, 3 for an incident."""
    is_sound, has_incidents = True, False
    for path in paths:
        begun = time.perf_counter()
        total = path.stat().st_size
        verdict = verify_file(path, lambda done, total=total: progress.show(done, total))
        took = time.perf_counter() - begun
        progress.clear()
        print(_verdict_to_json(path, verdict) if is_json else _format_verdict(path, verdict, took), flush=True)
        for incident in verdict.incidents:
            warn(str(incident))
        is_sound &= not verdict.problem
        has_incidents |= bool(verdict.incidents)
    if not is_sound:
        return 1
    return INCIDENT_CODE if has_incidents else 0


def _format_verdict(path: Path, verdict: FileVerdict, took_s: float) -> str:
    """Return the verdict on a file as a line of text."""
    sums = "checksums match" if verdict.has_checksums else "no checksums in this file"
    amount = f"{verdict.events:,} events, {format_size(verdict.bytes)}, {format_size(verdict.bytes / took_s)}/s"
    return f"{printable(path)}: {amount}: {verdict.problem or f'whole, {sums}'}"


def _verdict_to_json(path: Path, verdict: FileVerdict) -> str:
    """Return the verdict on a file as a JSON object."""
    data = {
        "file": printable(path),
        "is_sound": not verdict.problem,
        "problem": verdict.problem or None,
        "events": verdict.events,
        "bytes": verdict.bytes,
        "has_checksums": verdict.has_checksums,
        "incidents": [
            {"position": f"{incident.file}:{incident.position}", "message": incident.message}
            for incident in verdict.incidents
        ],
    }
    return json.dumps(data, ensure_ascii=False)
