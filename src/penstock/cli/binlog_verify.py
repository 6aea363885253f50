"""penstock binlog --verify"""

import time
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.progress import Progress
from penstock.inspect.file_log import printable
from penstock.inspect.verify import verify_file
from penstock.render.bars import size_text


def verify_files(paths: Sequence[Path], progress: Progress) -> bool:
    """A line per file; gives whether all are whole and sound."""
    is_sound = True
    for path in paths:
        begun = time.perf_counter()
        total = path.stat().st_size
        verdict = verify_file(path, lambda done, total=total: progress.show(done, total))
        took = time.perf_counter() - begun
        progress.clear()
        sums = "checksums match" if verdict.has_checksums else "no checksums in this file"
        about = f"{verdict.events:,} events, {size_text(verdict.bytes)}, {size_text(verdict.bytes / took)}/s"
        print(f"{printable(path)}: {about}: {verdict.problem or f'whole, {sums}'}", flush=True)
        is_sound &= not verdict.problem
    return is_sound
