"""Calls into compiled libraries during which Ctrl-C is heard."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Thread, current_thread, main_thread
from typing import TypeVar, cast

from sklearn import config_context, get_config

Result = TypeVar("Result")

LISTENING_S = 0.2  # Ctrl-C is heard at least this often on systems where waiting cannot be interrupted


def stoppable(work: Callable[[], Result]) -> Result:
    """Run a long call into a compiled library in a thread, so that Ctrl-C is heard while it runs.

    After Ctrl-C the thread ends its work, and its result is dropped: libraries offer no way to stop it. Outside of the
    main thread, which alone receives Ctrl-C, the work runs as it is.
    """
    if current_thread() is not main_thread():
        return work()
    outcome: list[tuple[Result | None, BaseException | None]] = []
    context, config = copy_context(), get_config()

    def run() -> None:
        try:
            with config_context(**config):
                outcome.append((context.run(work), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LISTENING_S)
    result, error = outcome[0]
    if error is not None:
        raise error
    return cast("Result", result)


def pass_on_interruption(fitted: object) -> None:
    """Raise the Ctrl-C that a fit took as its end, keeping what it had found: a run of many fits ends as well."""
    if getattr(fitted, "interrupted_", False):
        raise KeyboardInterrupt
