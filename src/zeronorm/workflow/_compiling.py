"""Shows that loops are compiled, which takes most of the time of a first run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zeronorm.selection._problem import RunBar

# Processor time of all loops that `select` needs by default: 7.4 s, 13 s on busy cores (62 × 500 values; 2026-11-20).
NOTICE = "Compiling the numerical loops once (about 10 s in all); later runs start at once."


@contextmanager
def compilation_shown(bar: RunBar) -> Iterator[None]:
    """Print a line when the first loop is compiled, and count the loops in the bar; those of the cache are silent."""
    if not bar.is_shown:
        yield
        return
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        """Counts the loops as numba begins to compile them."""

        count = 0

        def on_start(self, _event: object) -> None:
            if self.count == 0:
                bar.print(NOTICE)
            self.count += 1
            bar.describe(f"compiling loop {self.count}")

        def on_end(self, _event: object) -> None:
            """Nothing: the next step of the run has its own text."""

    with event.install_listener("numba:compile", Listener()):
        yield
