"""Which functions of a package a call goes through."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any


@dataclass(frozen=True)
class Trace:
    """The functions of a package that one call entered, in the order in which they were entered first."""

    functions: tuple[tuple[str, str], ...]  # file, qualified name
    depth: int
    calls: frozenset[tuple[str, str]]  # from which file into which other

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    @property
    def mutual(self) -> set[frozenset[str]]:
        """Pairs of files that call each other."""
        return {frozenset(pair) for pair in self.calls if pair[::-1] in self.calls}


def trace(call: Callable[[], Any], package: Path) -> Trace:
    """Run a call and note which functions of the package it enters."""
    inside = f"{package}{os.sep}"
    stack: list[CodeType] = []
    functions: dict[tuple[str, str], None] = {}
    calls: set[tuple[str, str]] = set()
    depth = 0

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal depth
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(inside):
            return
        if event == "return":
            stack.pop()
            return
        file = code.co_filename.removeprefix(inside)
        if stack and stack[-1].co_filename != code.co_filename:
            calls.add((stack[-1].co_filename.removeprefix(inside), file))
        stack.append(code)
        functions[file, code.co_qualname] = None
        depth = max(depth, len(stack))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    if not functions:
        raise ValueError(
            f"The call enters no function of {package}; is another copy of the package imported?"
        )
    return Trace(tuple(functions), depth, frozenset(calls))
