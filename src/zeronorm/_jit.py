"""The one decorator for compiled loops.

``kernel`` differs from ``numba.njit`` in three ways that matter to users: numba is imported at
the first call and not at import; compilation is lazy, so read-only and writable arrays both
work; and the result is cached on disk wherever a place is writable, without failing where none is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Generic[P, R]):
    """A function that is compiled when it is first called."""

    def __init__(self, function: Callable[P, R]) -> None:
        self.function = function
        functools.update_wrapper(self, function)

    @functools.cached_property
    def dispatcher(self) -> Callable[P, R]:
        import numba

        # numba resolves callees through the globals of the function: hand it dispatchers, not wrappers.
        namespace = self.function.__globals__
        for name in self.function.__code__.co_names:
            callee = namespace.get(name)
            if isinstance(callee, Kernel) and callee is not self:
                namespace[name] = callee.dispatcher
        try:
            compiled = numba.njit(self.function, cache=True, nogil=True)
        except RuntimeError:  # no cache location is writable
            compiled = numba.njit(self.function, nogil=True)
        return cast("Callable[P, R]", compiled)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.dispatcher(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _find_kernel, (self.function.__module__, self.function.__qualname__)


def _find_kernel(module: str, name: str) -> Any:
    import importlib

    return getattr(importlib.import_module(module), name)


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Compile ``function`` with numba in nopython mode when it is first called."""
    return Kernel(function)
