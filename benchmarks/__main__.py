"""`python -m benchmarks [--tiny] [NAME…]`."""

import importlib
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from benchmarks._scale import choose_tiny, is_tiny

LIMIT_S = 3600  # of one benchmark: the longest takes about a quarter of that
TINY_LIMIT_S = 600


class BenchmarkTimeoutError(Exception):
    """A benchmark did not end in its time."""


def names() -> list[str]:
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def main(arguments: list[str]) -> int:
    options = [argument for argument in arguments if argument.startswith("-")]
    if unknown := [option for option in options if option != "--tiny"]:
        print(f"there is no option {unknown[0]}; there is --tiny", file=sys.stderr)
        return 2
    if options:
        choose_tiny()
    chosen = [argument for argument in arguments if argument not in options] or names()
    if unknown := [name for name in chosen if name not in names()]:
        print(f"there is no benchmark '{unknown[0]}'; choose from: {', '.join(names())}", file=sys.stderr)
        return 2
    # Else the first process that a benchmark measures would compile kernels, and the others would not.
    subprocess.run([sys.executable, "-m", "penstock.binlog.compile"], check=True)
    for name in chosen:
        try:
            with time_limit(name, TINY_LIMIT_S if is_tiny() else LIMIT_S):
                importlib.import_module(f"benchmarks.{name}").main()
        except BenchmarkTimeoutError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


@contextmanager
def time_limit(name: str, seconds: float) -> Generator[None]:
    """Raise in the main thread when the time is over, wherever it waits: what the benchmark has started is ended on the
    way out."""

    def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "nowhere"
        raise BenchmarkTimeoutError(f"benchmark '{name}' did not end within {seconds:g} s: it was at {where}")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
