"""Threads of the linear algebra libraries: one for many small matrix products."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL_SIDE = 500  # of the matrices that are multiplied again and again


def one_thread_if_small(side: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread where the products are small: the threads would mostly wait for each other.

    On a busy machine that waiting can take ten times as long as the work.
    """
    return nullcontext() if side > SMALL_SIDE else one_thread()


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread."""
    limit: AbstractContextManager[Any] = thread_controller().limit(limits=1, user_api="blas")
    return limit


@cache
def thread_controller() -> ThreadpoolController:
    """The thread pools of this process. Finding them takes milliseconds, so it is done once."""
    return ThreadpoolController()
