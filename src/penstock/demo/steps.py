"""What the terminal shows: one line per step with its seconds, a bar for long ones."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class StepDisplay:
    """Shows on the terminal what is done: one line per step with its seconds."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._number = 0

    @contextmanager
    def step(self, title: str) -> Generator[Callable[[str], None], None, None]:
        """Show a step while it runs; yields a function that replaces the line's detail."""
        self._number += 1
        began = time.monotonic()
        if not self.console.is_terminal:
            self.console.print(f"  {self._number}. {title} …")
            yield lambda detail: self.console.print(f"     {detail}")
        else:
            with self.console.status(title) as status:
                yield lambda detail: status.update(f"{title} [dim]{detail}[/dim]")
        took = time.monotonic() - began
        self.console.print(f"[green]✓[/green] {self._number}. {title} [dim]{took:.1f} s[/dim]", highlight=False)

    @contextmanager
    def counted_step(self, title: str, total: int) -> Generator[Callable[[int], None], None, None]:
        """Show a step that counts; yields a function that takes the count so far."""
        self._number += 1
        began = time.monotonic()
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console, transient=True, disable=not self.console.is_terminal) as progress:
            task = progress.add_task(title, total=total)
            yield lambda count: progress.update(task, completed=count)
        took = time.monotonic() - began
        line = f"[green]✓[/green] {self._number}. {title}: {total} [dim]{took:.1f} s[/dim]"
        self.console.print(line, highlight=False)
