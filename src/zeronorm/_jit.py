"""Decorators for compiled loops.

``kernel`` differs from ``numba.njit`` in six ways that matter to users: numba is imported at
the first call and not at import; compilation is lazy, so read-only and writable arrays both
work; the result is cached on disk if a cache folder is writable, and it is no error if none is; of
several processes one compiles and the others read its result; the interpreter lock is released; and
kernels that only other kernels call are optimised as parts of these, which halves the time.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FunctionType, SimpleNamespace
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Generic[P, R]):
    """A function that is compiled when it is first called."""

    def __init__(
        self,
        function: Callable[P, R],
        fastmath: frozenset[str] = frozenset(),
        error_model: Literal["python", "numpy"] = "python",
    ) -> None:
        self.function = function
        self.options: dict[str, Any] = {"nogil": True, "fastmath": set(fastmath), "error_model": error_model}
        # Kernels are called by Python and by kernels, never by C: without a wrapper for C they compile faster.
        self.options["no_cfunc_wrapper"] = True
        self.is_shared = False
        functools.update_wrapper(self, function)

    def callees(self) -> dict[str, Kernel[..., Any]]:
        """Kernels that this one calls, by the name that it uses for them."""
        namespace = self.function.__globals__
        called = {name: namespace.get(name) for name in self.function.__code__.co_names}
        return {
            name: value for name, value in called.items() if isinstance(value, Kernel) and value is not self
        }

    def source_files(self) -> set[str]:
        """Files on which the compiled code depends."""
        files = {self.function.__code__.co_filename}
        return files.union(*(callee.source_files() for callee in self.callees().values()))

    @functools.cached_property
    def dispatcher(self) -> Callable[P, R]:
        import numba

        compiled: Any
        function = self._with_dispatchers()
        try:
            compiled = numba.njit(function, cache=True, **self.options)
            _watch_callees(compiled, self.source_files())
            _compile_in_one_process(compiled)
        except RuntimeError:  # no cache location is writable
            compiled = numba.njit(function, **self.options)
        return cast("Callable[P, R]", compiled)

    @functools.cached_property
    def _called(self) -> Any:
        """The dispatcher for callers that are kernels."""
        if self.is_shared:
            return self.dispatcher
        import numba

        options = {**self.options, "no_cpython_wrapper": True, "pipeline_class": _inner_compiler()}
        compiled: Any = numba.njit(self._with_dispatchers(), **options)
        compile_types = compiled.compile
        compiled.compile = lambda signature: compile_types(_without_values(signature))
        return compiled

    def _with_dispatchers(self) -> Callable[P, R]:
        """The function, with dispatchers in place of kernels among its globals, where numba looks up callees."""
        called = {name: callee._called for name, callee in self.callees().items()}
        names = {**self.function.__globals__, **called}
        own: Any = self.function
        copied: Any = FunctionType(own.__code__, names, own.__name__, own.__defaults__, own.__closure__)
        functools.update_wrapper(copied, self.function)
        del copied.__wrapped__
        return cast("Callable[P, R]", copied)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.dispatcher(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _find_kernel, (self.function.__module__, self.function.__qualname__)


def _watch_callees(compiled: Any, files: set[str]) -> None:
    """Make the disk cache depend on the files of called kernels too, not only on the kernel's own file."""
    stamps = [(name, os.stat(name).st_mtime, os.stat(name).st_size) for name in sorted(files)]
    cache_file: Any = getattr(compiled._cache, "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = tuple(stamps)


def _compile_in_one_process(compiled: Any) -> None:
    """Let processes that need the same code wait for the first one, then read it from the cache.

    This also prevents a corrupt cache: if two processes add code for different argument types at the same time, numba
    may store the code of one under the types of the other.
    """
    from numba.core.compiler_lock import global_compiler_lock

    compile_or_load = compiled.compile

    def alone(signature: Any) -> Any:
        types = _without_values(signature)
        # In this order: otherwise a thread could wait for the lock file while it blocks the thread that holds it.
        with global_compiler_lock, _locked(compiled._cache._cache_file._index_path + ".lock"):
            return compile_or_load(types)

    compiled.compile = alone


def _without_values(signature: Any) -> tuple[Any, ...]:
    """Types without literals: a kernel that is called with the constant 0 and with a variable is compiled once."""
    from numba.core.types import unliteral

    return tuple(unliteral(argument) for argument in signature)  # type: ignore[no-untyped-call]


@functools.cache
def _inner_compiler() -> Any:
    """numba's compiler without the last steps, for functions that only become a part of others.

    Usually numba optimises each function with all that it calls and makes machine code of it, and does the same again
    for each caller. Both are done only once, for the kernel that Python calls.
    """
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler

    class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
        def _optimize_final_module(self) -> None:
            """Left to the callers."""

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
            self._finalized = True

        @property
        def codegen(self) -> Any:
            return SimpleNamespace(set_env=lambda _name, _environment: None)

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()  # type: ignore[no-untyped-call]
            return 0

    class InnerCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            library: Any = InnerLibrary
            self.state.library = library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
            return super().define_pipelines()  # type: ignore[no-untyped-call]

    return InnerCompiler


_HELD: set[str] = set()


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold a lock between processes, if the system has file locks and the folder is writable."""
    if path in _HELD:  # a kernel that calls itself
        yield
        return
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            import fcntl

            os.makedirs(os.path.dirname(path), exist_ok=True)
            file = stack.enter_context(open(path, "a", encoding="utf-8"))
            fcntl.flock(file, fcntl.LOCK_EX)
            stack.callback(
                fcntl.flock, file, fcntl.LOCK_UN
            )  # a process forked in the meantime has the file open too
        _HELD.add(path)
        stack.callback(_HELD.discard, path)
        yield


def _find_kernel(module: str, name: str) -> Any:
    import importlib

    return getattr(importlib.import_module(module), name)


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Compile ``function`` with numba in nopython mode when it is first called."""
    return Kernel(function)


def reduction(function: Callable[P, R]) -> Kernel[P, R]:
    """As ``kernel``, for sums whose terms may be added in any order, as BLAS does.

    Only then can a sum use vector instructions, which makes it about four times faster. No other rule of
    floating-point arithmetic is relaxed: inf and NaN are kept.
    """
    return Kernel(function, frozenset({"reassoc"}))


def dividing_kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """As ``kernel``, for loops that divide: division by zero gives inf or NaN, as in NumPy, and no error.

    A loop that may raise an error cannot use vector instructions.
    """
    return Kernel(function, error_model="numpy")


def shared(called: Kernel[P, R]) -> Kernel[P, R]:
    """Mark a long kernel that both Python and kernels call: it is compiled once, not as a part of each caller."""
    called.is_shared = True
    return called
