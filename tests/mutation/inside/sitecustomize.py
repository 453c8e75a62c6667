"""Loaded by every interpreter that a trial starts: puts the fault in, or watches which lines run.

The sources on the disk stay as they are. A module with a fault is compiled from its changed text under the name of
its file, so that trials can run side by side and share the compiled code of everything else.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType
from typing import Any

FAULT = json.loads(os.environ.get("ZERONORM_FAULT", "null"))  # {"module": ..., "file": ..., "text": ...}
SOURCE = os.environ.get("ZERONORM_WATCH")
TOOL = 4  # of the numbers that sys.monitoring has for tools, one that nobody claims

RAN: set[tuple[str, int]] = set()


class Changed(SourceFileLoader):
    """A module with its fault, or with its lines watched."""

    def get_code(self, fullname: str) -> CodeType | None:
        if FAULT is not None and fullname == FAULT["module"]:
            with open(FAULT["text"], encoding="utf-8") as file:
                return compile(file.read(), self.path, "exec", dont_inherit=True)
        code = super().get_code(fullname)
        if SOURCE is not None and code is not None:
            _watch(code)
        return code

    def exec_module(self, module: Any) -> None:
        super().exec_module(module)
        if FAULT is not None and module.__name__ == "zeronorm._jit":
            module._watch_callees = _keep_from_cache(module._watch_callees)
        if SOURCE is not None and module.__name__ == "zeronorm._jit":
            module.Kernel.__call__ = _noted(module.Kernel.__call__)


def _keep_from_cache(watch_callees: Any) -> Any:
    """Compiled code that holds the fault is neither read from the cache nor written to it."""

    def watch(compiled: Any, files: set[str]) -> None:
        if FAULT["file"] in files:
            raise RuntimeError("This is how the decorator learns that nothing can be kept.")
        watch_callees(compiled, files)

    return watch


def _noted(call: Any) -> Any:
    """A test that calls compiled code itself runs no line of Python that names it: its first line is noted."""

    def noted(kernel: Any, *arguments: Any, **named: Any) -> Any:
        code = kernel.function.__code__
        RAN.add((code.co_filename, code.co_firstlineno))
        return call(kernel, *arguments, **named)

    return noted


class Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "zeronorm":
            return None
        if SOURCE is None and name not in (FAULT["module"], "zeronorm._jit"):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Changed(spec.loader.name, spec.loader.path)
        return spec


def _watch(code: CodeType) -> None:
    if sys.version_info < (3, 12):
        return
    sys.monitoring.set_local_events(TOOL, code, sys.monitoring.events.LINE)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _watch(constant)


def _line(code: CodeType, line: int) -> Any:
    RAN.add((code.co_filename, line))
    return sys.monitoring.DISABLE


def _trace(frame: Any, event: str, argument: Any) -> Any:
    """The same before Python 3.12, at some cost for each line."""
    if not frame.f_code.co_filename.startswith(SOURCE):
        return None
    if event == "line":
        RAN.add((frame.f_code.co_filename, frame.f_lineno))
    return _trace


if FAULT is not None or SOURCE is not None:
    sys.meta_path.insert(0, Finder)
if SOURCE is not None and sys.version_info < (3, 12):
    sys.settrace(_trace)
    threading.settrace(_trace)
elif SOURCE is not None:
    sys.monitoring.use_tool_id(TOOL, "zeronorm")
    sys.monitoring.register_callback(TOOL, sys.monitoring.events.LINE, _line)
