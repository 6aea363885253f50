"""`python -m tests.campaign [--count N] [--seed N] [--workers N] [--bounds] [--only SEED:NUMBER]`."""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import penstock
from penstock.testing import cache_folder

if TYPE_CHECKING:
    from tests.campaign.crew import Failure, Worker

_FAILURES = Path(tempfile.gettempdir()) / "penstock-campaign"
_KEPT = 5  # mutants of one finding that are written down
_PROGRESS_S = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description="broken logs, read to their end")
    parser.add_argument("--count", type=int, default=200_000, help="how many mutants")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--bounds", action="store_true", help="kernels check every index they read or write")
    parser.add_argument("--only", metavar="SEED:NUMBER", help="one mutant, here and with its trace")
    parser.add_argument("--output", type=Path, default=_FAILURES, help="folder for mutants that fail")
    asked = parser.parse_args()
    if asked.bounds:
        # Before numba is imported: it looks at the environment once.
        os.environ |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(_checked_kernels())}
    if asked.only:
        seed, number = map(int, asked.only.split(":"))
        return _run_one(seed, number, asked.output)
    return _run_all(asked.seed, asked.count, asked.workers, asked.output, is_checked=asked.bounds)


def _checked_kernels() -> Path:
    """numba's cache sees neither the setting nor changed helpers, so each state of the sources has its own."""
    rooms = Path(penstock.__file__).parent
    sources = sorted(path for room in ("binlog", "inspect", "render") for path in (rooms / room).rglob("*.py"))
    state = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = cache_folder() / "checked-kernels" / state
    for old in folder.parent.glob("*") if not folder.exists() else ():
        shutil.rmtree(old, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run_one(seed: int, number: int, output: Path) -> int:
    from tests.campaign.mutant import mutant
    from tests.campaign.reading import outcome_of

    mutation = mutant(seed, number)
    print(f"{mutation.log}: {', '.join(mutation.what)}; verify={mutation.verify}, {mutation.choice}", flush=True)
    print(f"written to {_write(output, seed, number)}", flush=True)
    print(outcome_of(mutation))
    return 0


def _run_all(seed: int, count: int, workers: int, output: Path, *, is_checked: bool) -> int:
    from tests.campaign.crew import Worker

    findings: Counter[str] = Counter()
    began, shown = time.monotonic(), 0.0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="penstock-campaign-")))
        crew = [Worker(seed, i, count, workers, folder / str(i)) for i in range(workers)]
        for worker in crew:
            stack.callback(worker.stop)
        while not all(worker.is_done for worker in crew):
            time.sleep(0.1)
            for failure in (failure for worker in crew for failure in worker.failures()):
                findings[failure.where] += 1
                if findings[failure.where] <= _KEPT:
                    _note(output, seed, failure)
            if time.monotonic() - shown > _PROGRESS_S:
                shown = time.monotonic()
                _progress(_counts(crew), count, shown - began)
        counts = _counts(crew)
    took = time.monotonic() - began
    _progress(counts, count, took)
    print(
        json.dumps(
            {
                "campaign": "binlog", "seed": seed, "mutants": counts.total(), "bounds": is_checked,
                "seconds": round(took), "outcomes": dict(counts), "findings": dict(findings),
            }
        )
    )  # fmt: skip
    return 1 if findings else 0


def _counts(crew: "list[Worker]") -> Counter[str]:
    return sum((worker.counts for worker in crew), Counter())


def _progress(counts: Counter[str], count: int, seconds: float) -> None:
    done = counts.total()
    outcomes = ", ".join(f"{number:,} {name}" for name, number in counts.most_common())
    print(
        f"{done:>9,} of {count:,} in {seconds:,.0f} s, {done / max(seconds, 1):,.0f} a second: {outcomes}", flush=True
    )


def _note(output: Path, seed: int, failure: "Failure") -> None:
    path = _write(output, seed, failure.number)
    path.with_suffix(".txt").write_text(f"--only {seed}:{failure.number}\n{failure.trace}", encoding="utf-8")
    print(f"FAILED --only {seed}:{failure.number}  {failure.where}  {path}", flush=True)


def _write(output: Path, seed: int, number: int) -> Path:
    from tests.campaign.mutant import mutant

    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{seed}-{number}.binlog"
    path.write_bytes(mutant(seed, number).data)
    return path


if __name__ == "__main__":
    sys.exit(main())
