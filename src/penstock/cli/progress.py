"""How far a long work is, on a terminal; elsewhere nothing."""

import sys
import time
from collections.abc import Callable

_AFTER_S = 1.0
_EVERY_S = 0.2


class ProgressLine:
    """A progress line on stderr that is overwritten, and cleared at the end; silent where output and progress share a
    screen, unless the line is cleared before each output.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, shares_screen: bool = False) -> None:
        self._clock = clock
        self._is_shown = sys.stderr.isatty() and (shares_screen or not sys.stdout.isatty())
        self._next = clock() + _AFTER_S
        self._is_dirty = False

    def show(self, done: int, total: int) -> None:
        """Show how many of the bytes are done."""
        if not self._is_shown or self._clock() < self._next:
            return
        self._next = self._clock() + _EVERY_S
        share = f" of {total / 1e6:,.0f} MB, {done / total:.0%}" if total else " MB"
        sys.stderr.write(f"\r\x1b[K{done / 1e6:,.0f}{share}")
        sys.stderr.flush()
        self._is_dirty = True

    def show_rows(self, done: int, estimated: int, seconds: float, *, unit: str = "rows") -> None:
        """Show how many rows are done of the estimated ones, how fast, and how long the rest may take."""
        if not self._is_shown or self._clock() < self._next:
            return
        self._next = self._clock() + _EVERY_S
        total, rate = max(done, estimated), done / max(seconds, 1e-9)
        left_s = (total - done) / max(rate, 1e-9)
        share = f"of about {total:,} {unit}, {done / max(total, 1):.0%}, {rate:,.0f} {unit}/s, {left_s:,.0f} s left"
        sys.stderr.write(f"\r\x1b[K{done:,} {share}")
        sys.stderr.flush()
        self._is_dirty = True

    @property
    def is_shown(self) -> bool:
        """Return whether there is a terminal to show progress on."""
        return self._is_shown

    def show_text(self, text: str) -> None:
        """Show a text, if the last one is old enough."""
        if not self._is_shown or self._clock() < self._next:
            return
        self._next = self._clock() + _EVERY_S
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._is_dirty = True

    def clear(self) -> None:
        """Remove the line."""
        if self._is_dirty:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_dirty = False
