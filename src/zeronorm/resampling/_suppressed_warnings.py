"""Suppression of warnings of an inner fit that the outer fit gives itself."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def suppress_nested_warnings(*kinds: type[Warning], starting: str = "") -> Iterator[None]:
    """Suppress warnings of a fit inside another one, which checks the same and can name a remedy that works.

    Warning filters are global to the process, so only the main thread changes them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        for kind in kinds:
            warnings.filterwarnings("ignore", starting, kind)
        yield
