"""Measure how simple the package is: ``make house`` prints each figure beside what is wanted.

How many functions a fit goes through is traced, not read: the functions of the package that one call enters, the
files they are in, and how deep they nest, after a first call so that imports do not count. All other figures are
counted in the sources. ``python tools/house.py --names`` also lists what was counted.
"""

from __future__ import annotations

import ast
import contextlib
import csv
import io
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from call_trace import Trace, trace
from own_words import own_words_of
from task_branches import task_branches

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "zeronorm"
sys.path.insert(0, str(PACKAGE.parent))  # this copy, whichever is installed
N_IMPORTS = 5
# Classes with a method ``train`` of their own whose model is not linear, by a part of their names.
NOT_LINEAR = re.compile("Kernel|Network|Bound|Sensitivity|Numerical")
TEXTS = re.compile(r"(?:src|docs|tests|studies|benchmarks)/.*\.(?:py|pyi|csv|json|rst|md)")
# The page of a method says "not measured yet" until it is in these (tests/test_adding_a_method.py).
MEASURED_LATER = {"docs/gpu.csv", "docs/toy/selected.csv"}


@dataclass(frozen=True)
class Figure:
    """A measured figure, of one number or several, and the most that is wanted of each."""

    name: str
    now: tuple[float, ...]
    wanted: tuple[float, ...] = ()
    counted: tuple[str, ...] = ()

    @property
    def row(self) -> list[str]:
        kept = all(now <= most for now, most in zip(self.now, self.wanted, strict=False))
        mark = "" if not self.wanted else "yes" if kept else "no"
        wanted = "≤ " + " / ".join(f"{most:,}" for most in self.wanted) if self.wanted else "–"
        return [self.name, " / ".join(f"{now:,}" for now in self.now), wanted, mark]


# -- What a call goes through -------------------------------------------------------------------------


def small_data() -> tuple[Any, Any]:
    """100 samples of 200 features, and their classes."""
    import numpy as np

    y = np.arange(100) % 2
    X = np.random.default_rng(0).normal(size=(100, 200))
    X[:, :5] += y[:, None]
    return X, y


def fit_figure(selector: Any, wanted: tuple[float, ...] = ()) -> Figure:
    """A fit of a method."""
    X, y = small_data()
    selector.fit(X, y)
    found = trace(partial(selector.fit, X, y), PACKAGE)
    return _of_trace(f"{type(selector).__name__}().fit: files / functions / depth", found, wanted)


def gram_figure() -> Figure:
    """One Gram matrix."""
    from zeronorm import as_design

    X, _ = small_data()
    as_design(X).standardized().gram()
    found = trace(as_design(X).standardized().gram, PACKAGE)
    name = "Gram matrix of standardised data: functions / levels"
    return Figure(name, (len(found.functions), found.depth), (6,), _names(found))


def traced_figures() -> Iterator[Figure]:
    """A fit of two methods, the command ``select``, and one Gram matrix."""
    from zeronorm import FisherScore, ZeroNormSVM

    X, y = small_data()
    yield fit_figure(ZeroNormSVM(), (20, 150, 15))
    yield fit_figure(FisherScore())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file.csv")
        with file.open("w", newline="") as stream:
            table = csv.writer(stream)
            table.writerow([*(f"x{k}" for k in range(X.shape[1])), "outcome"])
            table.writerows([*row, f"class {label}"] for row, label in zip(X, y, strict=True))
        _select(file)
        found = trace(partial(_select, file), PACKAGE)
    yield _of_trace("select file.csv: files / functions / depth", found)
    mutual = tuple(sorted(" ⇄ ".join(sorted(pair)) for pair in found.mutual))
    yield Figure("select file.csv: pairs of files that call each other", (len(mutual),), counted=mutual)
    yield gram_figure()


def _of_trace(name: str, found: Trace, wanted: tuple[float, ...] = ()) -> Figure:
    return Figure(name, (len(found.files), len(found.functions), found.depth), wanted, _names(found))


def _names(found: Trace) -> tuple[str, ...]:
    return tuple(f"{file}: {function}" for file, function in found.functions)


def _select(file: Path) -> None:
    from zeronorm.cli._main import run

    out = str(file.with_name("out"))
    arguments = ["--target", "outcome", "--method", "zeronorm-svm", "--permutations", "0", "--jobs", "1"]
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(["select", str(file), *arguments, "--out", out, "--force"]) == 0


# -- What the sources hold ----------------------------------------------------------------------------


def sources(package: Path = PACKAGE) -> list[Path]:
    """The Python files of the package, without the studies."""
    return [f for f in sorted(package.rglob("*.py")) if f.relative_to(package).parts[0] != "studies"]


def numeric_constants(tree: ast.Module) -> list[str]:
    """Names in capitals at the top of a module whose value holds numbers, and neither texts nor truth values."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        literals = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
        if literals and all(type(literal) in (int, float, complex) for literal in literals):
            found += [name.id for name in names if isinstance(name, ast.Name) and name.id.isupper()]
    return found


def linear_trainers(trees: list[ast.Module]) -> list[str]:
    """Classes with a method ``train`` of their own, except interfaces and those whose model is not linear."""
    classes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return sorted(
        node.name
        for node in classes
        if any(isinstance(part, ast.FunctionDef) and part.name == "train" for part in node.body)
        and not {"Protocol", "ABC"} & {getattr(base, "id", "") for base in node.bases}
        and not NOT_LINEAR.search(node.name)
    )


def files_of_a_method() -> tuple[str, ...]:
    """A new method's own file, and every committed file that names all selectors, save for what is measured later."""
    from zeronorm.registry import all_methods

    names = [(method.name, method.cls.__name__) for method in all_methods("selector")]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    needed = set(listed.splitlines()) - MEASURED_LATER
    files = sorted(file for file in needed if TEXTS.fullmatch(file) and (ROOT / file).exists())
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in files}
    naming = (file for file, text in texts.items() if all(any(n in text for n in both) for both in names))
    return ("its own", *naming)


def source_figures() -> Iterator[Figure]:
    """All figures that are counted in the sources."""
    from zeronorm.design import Design

    files = sources()
    texts = [file.read_text(encoding="utf-8") for file in files]
    trees = [ast.parse(text) for text in texts]
    members = [name for name in vars(Design) if not name.startswith("__")]
    public = [name for name in members if not name.startswith("_")]
    yield Figure("members of Design: all / public", (len(members), len(public)), (40, 22), tuple(members))
    trainers = tuple(linear_trainers(trees))
    yield Figure("classes that train a linear model", (len(trainers),), (6,), trainers)
    branches = tuple(
        f"{f.relative_to(PACKAGE)}:{n}" for f, t in zip(files, trees, strict=True) for n in task_branches(t)
    )
    yield Figure("branches on the task's name", (len(branches),), (25,), branches)
    constants = tuple(
        f"{f.relative_to(PACKAGE)}: {c}"
        for f, t in zip(files, trees, strict=True)
        for c in numeric_constants(t)
    )
    yield Figure("numeric constants of modules", (len(constants),), (450,), constants)
    needed = files_of_a_method()
    yield Figure("files to add a method", (len(needed),), (2,), needed)
    yield Figure("lines of the package", (sum(text.count("\n") for text in texts),), (57_000,))
    in_names, in_texts = own_words_of(files, PACKAGE)
    words = tuple(f"{word}: {count}" for word, count in (in_names + in_texts).most_common())
    yield Figure("words of our own: in names / in text", (in_names.total(), in_texts.total()), (0, 0), words)


def import_seconds() -> float:
    """The time of a new process that imports the package, the best of several."""
    times = []
    for _ in range(N_IMPORTS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import zeronorm"], cwd=PACKAGE.parent, check=True)
        times.append(time.perf_counter() - start)
    return round(min(times), 2)


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    seconds = Figure(f"import zeronorm, seconds (best of {N_IMPORTS})", (import_seconds(),), (0.16,))
    figures = [*traced_figures(), *source_figures(), seconds]
    rows = [["figure", "now", "wanted", "kept"], *(figure.row for figure in figures)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if "--names" in arguments:
        for figure in figures:
            print(f"\n{figure.name}", *figure.counted, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
