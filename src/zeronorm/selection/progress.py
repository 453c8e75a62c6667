"""Progress of long computations: silent by default, a bar for people with ``verbose``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]


class Progress:
    """Where every method reports how far it is: ``with progress.task("Eliminating", total) as advance``."""

    def __init__(self, verbose: bool | int = False) -> None:
        self.verbose = bool(verbose)

    @contextmanager
    def task(self, description: str, total: int | None = None) -> Iterator[Advance]:
        """Yield a function that is called with the number of steps just done."""
        if not self.verbose:
            yield _ignore
            return
        try:
            from rich.console import Console
            from rich.progress import Progress as RichProgress
        except ImportError:
            print(f"{description} …", file=sys.stderr)
            yield _ignore
            return
        with RichProgress(console=Console(stderr=True), transient=True) as bar:
            identifier = bar.add_task(description, total=total)
            yield lambda steps: bar.advance(identifier, steps)


def _ignore(steps: int) -> None:
    """Progress that nobody watches."""
