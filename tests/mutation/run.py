"""Puts one fault at a time into a copy of the package and runs the tests of that part.

``python tests/mutation/run.py`` tries the named faults of ``faults.py`` and then random ones in the packages given, as
many as fit into the time: a comparison swapped, a negation dropped, a number off by one, + for −, "and" for "or", a
statement left out. A fault that no test notices survives; survivors are listed with their place, to be judged.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from faults import NAMED_FAULTS

ROOT = Path(__file__).parents[2]
ON_A_GPU = {"device_kernels.py"}  # its tests need one
KILLED, SURVIVED, LATE, LOST = "killed", "survived", "killed by time", "lost"
# Tests of a package that are not in the folder of its own name: those that have the name of the module, and all.
NAMING_TESTS = {"solvers": ("tests/selectors", "tests/models")}
MORE_TESTS = {
    "resampling": ("tests/evaluation",),
    "engines": ("tests/selectors",),
    "selection": ("tests/selectors",),
}


@dataclass(frozen=True)
class Mutant:
    """One change of a file: the text between two places becomes another."""

    file: Path
    line: int
    start: int
    end: int
    replacement: str
    meaning: str

    def applied_to(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


# -- Random faults --

SWAPS: dict[type, tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: (" in ", " not in "),
    ast.NotIn: (" not in ", " in "),
    ast.Is: (" is ", " is not "),
    ast.IsNot: (" is not ", " is "),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.And: (" and ", " or "),
    ast.Or: (" or ", " and "),
}


def mutants_of(file: Path) -> Iterator[Mutant]:
    """All single changes of a file that keep it a program."""
    text = file.read_text(encoding="utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    as_bytes = text.encode()

    def place(node: ast.AST, end: bool = False) -> int:
        row, column = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return len(as_bytes[: starts[row - 1] + column].decode())

    tree = ast.parse(text)
    skipped = _not_run(tree)
    for node in ast.walk(tree):
        if node in skipped:
            continue
        for start, end, replacement, meaning in _changes(node, place, text):
            yield Mutant(file, text.count("\n", 0, start) + 1, start, end, replacement, meaning)


def _not_run(tree: ast.Module) -> set[ast.AST]:
    """Docstrings, annotations, messages and imports: no test is meant for their wording."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)):
            parts = [node]
        elif isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif isinstance(node, ast.FunctionDef):
            arguments = [*node.args.args, *node.args.kwonlyargs]
            parts = [a.annotation for a in arguments if a.annotation] + (
                [node.returns] if node.returns else []
            )
            parts += node.decorator_list
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts = [node]
        for part in parts:
            skipped.update(ast.walk(part))
    return skipped


def _changes(node: ast.AST, place, text: str) -> Iterator[tuple[int, int, str, str]]:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands[:-1], operands[1:], strict=True):
            yield from _swap(operator, place(left, True), place(right), text)
    elif isinstance(node, ast.BinOp):
        yield from _swap(node.op, place(node.left, True), place(node.right), text)
    elif isinstance(node, ast.BoolOp):
        for left, right in zip(node.values[:-1], node.values[1:], strict=True):
            yield from _swap(node.op, place(left, True), place(right), text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield (
            place(node),
            place(node.operand),
            "",
            f"drop {text[place(node) : place(node.operand)].strip()!r}",
        )
    elif isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        new = str(not node.value if isinstance(node.value, bool) else node.value + 1)
        yield place(node), place(node, True), new, f"{node.value} → {new}"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield (
            place(node),
            place(node, True),
            "pass",
            f"leave out {text[place(node) : place(node, True)][:60]!r}",
        )
    elif isinstance(node, ast.If):
        yield (
            place(node.test),
            place(node.test, True),
            "False",
            f"never {text[place(node.test) : place(node.test, True)]!r}",
        )


def _swap(operator: ast.AST, start: int, end: int, text: str) -> Iterator[tuple[int, int, str, str]]:
    found = SWAPS.get(type(operator))
    if found is not None and text[start:end].count(found[0].strip()) == 1:
        gap = text[start:end].replace(found[0].strip(), found[1].strip())
        yield start, end, gap, f"{found[0].strip()} → {found[1].strip()}"


# -- Trying one --


class Copy:
    """The package, its tests and its settings in a folder of their own, which is always the same one.

    Compiled code is filed under the folder and the times of its sources: it serves the next fault, and the next run.
    """

    def __init__(self, place: Path) -> None:
        self.folder, self.compiled, self.altered = place / "copy", place / "numba", place / "numba-altered"
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("src", "tests", "benchmarks", "docs", "examples"):
            ignored = shutil.ignore_patterns("__pycache__", "_build", "auto_examples")
            shutil.copytree(ROOT / name, self.folder / name, ignore=ignored)
        for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile"):
            shutil.copy(ROOT / name, self.folder / name)
        self.compiled.mkdir(exist_ok=True)
        self.passed: set[tuple[str, ...]] = set()

    def outcome(self, file: Path, text: str, parts: list[tuple[str, ...]], limit_s: int) -> str:
        """Whether the tests notice that the file has another text; the later parts run if the first do not."""
        original, when = file.read_text(encoding="utf-8"), file.stat().st_mtime_ns
        compiled = self.compiled
        if "zeronorm._jit" in original:
            self._compile_for(parts, limit_s)
            compiled = self._altered_code()
        file.write_text(text, encoding="utf-8")
        try:
            outcomes = (self._run(tests, compiled, limit_s) for tests in parts if tests)
            return next((outcome for outcome in outcomes if outcome != SURVIVED), SURVIVED)
        finally:
            file.write_text(original, encoding="utf-8")
            os.utime(file, ns=(when, when))

    def _compile_for(self, parts: list[tuple[str, ...]], limit_s: int) -> None:
        """Run the tests once without a fault: each fault then compiles only what it changes."""
        tests = tuple(sorted(test for part in parts for test in part))
        if tests not in self.passed:
            self.passed.add(tests)
            if self._run(tests, self.compiled, 10 * limit_s) != SURVIVED:
                raise RuntimeError(f"The tests fail without a fault: {' '.join(tests)}")

    def _altered_code(self) -> Path:
        """A place for compiled code that the next fault does not see."""
        shutil.rmtree(self.altered, ignore_errors=True)
        shutil.copytree(self.compiled, self.altered, copy_function=os.link)
        return self.altered

    def _run(self, tests: tuple[str, ...], compiled: Path, limit_s: int) -> str:
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder / "src"),
            "NUMBA_CACHE_DIR": str(compiled),
            "OMP_NUM_THREADS": "1",
        }
        # Otherwise the sources of Python would be compiled anew for each fault.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            *tests,
        ]
        # Processor time: the clock says little on a busy machine.
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 5)),
        )
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return LATE
        return SURVIVED if done.returncode == 0 else KILLED


def tests_of(file: Path, source: Path) -> list[tuple[str, ...]]:
    """The test files of a source file's package: those that name the module, and the others."""
    parts = file.relative_to(source).with_suffix("").parts
    folders = [f"tests/{parts[0]}", *MORE_TESTS.get(parts[0], ())]
    if parts[0] == "selectors" and len(parts) > 2:
        folders = [f"tests/selectors/{parts[1]}"]
    found, others = (
        [path for folder in some for path in sorted((ROOT / folder).rglob("test_*.py"))]
        for some in (folders, NAMING_TESTS.get(parts[0], ()))
    )
    words = {parts[-1], parts[-1].replace("_", "")}
    near = [path for path in found if any(w in path.stem or w in path.read_text("utf-8") for w in words)]
    near += [path for path in others if any(w in path.stem for w in words)]
    rest = [path for path in found if path not in near]
    return [tuple(str(path.relative_to(ROOT)) for path in part) for part in (near, rest)]


def try_named(copy: Copy, chosen: str, limit_s: int) -> list[tuple[str, str]]:
    results = []
    for fault in NAMED_FAULTS:
        if chosen == "-" or chosen not in fault.meaning:
            continue
        file = copy.folder / "src" / "zeronorm" / fault.file
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if text.count(fault.text) != 1:
            outcome = LOST
        else:
            outcome = copy.outcome(file, text.replace(fault.text, fault.replacement), [fault.tests], limit_s)
        print(f"{outcome:15} {fault.meaning} ({fault.file})", flush=True)
        results.append(("named", outcome))
    return results


def try_random(
    copy: Copy, packages: list[str], seed: int, chosen: slice, deadline: float, limit_s: int
) -> list[tuple[str, str]]:
    source = copy.folder / "src" / "zeronorm"
    pools = {}
    for package in packages:
        files = (
            sorted((source / package).rglob("*.py"))
            if (source / package).is_dir()
            else [source / f"{package}.py"]
        )
        pools[package] = [mutant for file in files for mutant in mutants_of(file)]
        random.Random(f"{seed} {package}").shuffle(pools[package])
        pools[package] = [mutant for mutant in pools[package] if mutant.file.name not in ON_A_GPU][chosen]
    results = []
    while any(pools.values()) and time.monotonic() < deadline:
        for package in packages:
            if not pools[package] or time.monotonic() >= deadline:
                continue
            mutant = pools[package].pop(0)
            text = mutant.applied_to(mutant.file.read_text(encoding="utf-8"))
            outcome = copy.outcome(mutant.file, text, tests_of(mutant.file, source), limit_s)
            where = f"{mutant.file.relative_to(source)}:{mutant.line}"
            print(f"{outcome:15} {where}: {mutant.meaning}", flush=True)
            results.append((package, outcome))
    return results


def summary(results: list[tuple[str, str]]) -> str:
    lines = []
    for package in dict.fromkeys(name for name, _ in results):
        counts = Counter(outcome for name, outcome in results if name == package)
        found = counts[KILLED] + counts[LATE]
        lines.append(f"{package:12} {found} of {sum(counts.values())} found, {counts[SURVIVED]} survived")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "packages", nargs="*", default=["design", "solvers", "selectors", "evaluation", "workflow"]
    )
    parser.add_argument("--minutes", type=float, default=25.0, help="time for random faults")
    parser.add_argument(
        "--limit", type=int, default=300, help="seconds of the processor for the tests of one fault"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first random fault of each package to try")
    parser.add_argument("--count", type=int, default=10**9, help="how many random faults of each package")
    parser.add_argument("--named", default="", help="only named faults with this text; '-' for none")
    options = parser.parse_args()
    place = ROOT / ".cache" / "mutation"
    place.mkdir(parents=True, exist_ok=True)
    copy = Copy(place)
    results = try_named(copy, options.named, options.limit)
    chosen = slice(options.first, options.first + options.count)
    deadline = time.monotonic() + 60.0 * options.minutes
    results += try_random(copy, options.packages, options.seed, chosen, deadline, options.limit)
    print(summary(results))
    return int(any(outcome == LOST or (name == "named" and outcome == SURVIVED) for name, outcome in results))


if __name__ == "__main__":
    sys.exit(main())
