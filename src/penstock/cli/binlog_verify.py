"""penstock binlog --verify"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.cli.binlog_request import INCIDENT_CODE
from penstock.cli.progress import Progress
from penstock.inspect.file_log import printable
from penstock.inspect.verify import verify_file
from penstock.render.bars import size_text


def verify_files(paths: Sequence[Path], progress: Progress, warn: Callable[[str], None]) -> int:
    """Print a line per file, warn of each incident; return 0 if all files are sound, 1 if not, 3 for an incident."""
    is_sound, has_incidents = True, False
    for path in paths:
        begun = time.perf_counter()
        total = path.stat().st_size
        verdict = verify_file(path, lambda done, total=total: progress.show(done, total))
        took = time.perf_counter() - begun
        progress.clear()
        sums = "checksums match" if verdict.has_checksums else "no checksums in this file"
        about = f"{verdict.events:,} events, {size_text(verdict.bytes)}, {size_text(verdict.bytes / took)}/s"
        print(f"{printable(path)}: {about}: {verdict.problem or f'whole, {sums}'}", flush=True)
        for incident in verdict.incidents:
            warn(str(incident))
        is_sound &= not verdict.problem
        has_incidents |= bool(verdict.incidents)
    if not is_sound:
        return 1
    return INCIDENT_CODE if has_incidents else 0
