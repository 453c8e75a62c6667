"""Trace of the functions of a package that a call enters."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

Function = tuple[str, str]  # file within the package, qualified name


@dataclass(frozen=True)
class Trace:
    """The functions of a package that one call entered, in the order in which they were entered first."""

    functions: tuple[Function, ...]
    depth: int
    calls: frozenset[tuple[str, str]]  # from which file into which other

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    @property
    def mutual(self) -> set[frozenset[str]]:
        """Pairs of files that call each other."""
        return {frozenset(pair) for pair in self.calls if pair[::-1] in self.calls}


@dataclass(frozen=True)
class Span:
    """One run of a function: the times, in entries of any function, at which it began and ended."""

    function: Function
    start: int
    end: int


def trace(call: Callable[[], Any], package: Path) -> Trace:
    """Run a call and note which functions of the package it enters."""
    stack: list[Function] = []
    functions: dict[Function, None] = {}
    calls: set[tuple[str, str]] = set()
    depth = 0

    def enter(function: Function) -> None:
        nonlocal depth
        if stack and stack[-1][0] != function[0]:
            calls.add((stack[-1][0], function[0]))
        stack.append(function)
        functions[function] = None
        depth = max(depth, len(stack))

    _watch(call, package, enter, stack.pop)
    return Trace(tuple(functions), depth, frozenset(calls))


def spans(call: Callable[[], Any], package: Path, wanted: set[Function]) -> list[Span]:
    """Run a call and note every run of the wanted functions, by the time at which it began."""
    stack: list[tuple[Function, int]] = []
    found: list[Span] = []
    time = 0

    def enter(function: Function) -> None:
        nonlocal time
        time += 1
        stack.append((function, time))

    def leave() -> None:
        function, start = stack.pop()
        if function in wanted:
            found.append(Span(function, start, time))

    _watch(call, package, enter, leave)
    return sorted(found, key=lambda span: span.start)


def _watch(
    call: Callable[[], Any], package: Path, enter: Callable[[Function], None], leave: Callable[[], Any]
) -> None:
    inside = f"{package}{os.sep}"
    entered = False

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal entered
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(inside):
            return
        if event == "return":
            leave()
            return
        entered = True
        enter((code.co_filename.removeprefix(inside).replace(os.sep, "/"), code.co_qualname))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    if not entered:
        raise ValueError(
            f"The call enters no function of {package}; is another copy of the package imported?"
        )
