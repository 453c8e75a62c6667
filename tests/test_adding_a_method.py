"""A method is added to the package by its own file and one generated file; nothing else has to change."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import zeronorm

ROOT = Path(__file__).parents[1]
METHOD = '''
"""A filter: the largest standard deviation first."""

from __future__ import annotations

from typing import Any

from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector


@register(
    "deviation",
    family="filters",
    tasks=("binary", "multiclass"),
    reference="Nobody 2026, section 1",
    papers={"Nobody 2026": ("N. Nobody. Deviations. Journal of Examples 1, 1–2, 2026.", "10.1000/example")},
    cost="n p; one pass over the data",
    oracle="NumPy's standard deviation",
    avoid="standardised columns",
)
class DeviationScore(BaseSelector):
    """Rank features by their standard deviation.

    Examples
    --------
    >>> from zeronorm import DeviationScore
    >>> DeviationScore(1).fit([[1.0, 2.0], [1.5, 4.0], [1.2, 9.0]], [0, 1, 0]).get_support().tolist()
    [False, True]
    """

    def _select(self, problem: Problem) -> SelectionPath:
        return SelectionPath.from_scores(problem.design.block(slice(None)).std(axis=0))
'''
# The checks of all methods: that the index is fresh, the page, the references, the parameters, the contract.
CHECKS = ("contract", "docs", "docstrings", "layers", "parameters", "registry")
THOSE_OF_ALL = "fresh or described or references or gpu_names or toy_problem or generated_pages or direction"


@pytest.fixture(scope="module")
def enlarged(tmp_path_factory):
    """A copy of the package with one method more, whose index was written anew, and the checks beside it."""
    folder = tmp_path_factory.mktemp("enlarged")
    without = shutil.ignore_patterns("__pycache__")
    # With what Python has compiled of it: to compile 80,000 lines anew takes seconds.
    shutil.copytree(Path(zeronorm.__file__).parent, folder / "src" / "zeronorm")
    (folder / "tests" / "selectors" / "filters").mkdir(parents=True)
    for check in CHECKS:
        shutil.copy(ROOT / "tests" / f"test_{check}.py", folder / "tests")
    shutil.copy(ROOT / "tests" / "selectors" / "test_snapshots.py", folder / "tests" / "selectors")
    shutil.copytree(ROOT / "tests" / "selectors" / "snapshots", folder / "tests" / "selectors" / "snapshots")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=without)
    for name in ("benchmarks", "studies", "conftest.py", "pyproject.toml", "CONTRIBUTING.md"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "src/zeronorm/selectors/filters/deviation.py").write_text(METHOD.lstrip(), encoding="utf-8")
    (folder / "tests/selectors/filters/test_deviation.py").write_text('"""Its own test."""\n')
    run(folder, "-m", "zeronorm.registry")
    return folder


def run(folder, *arguments):
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(folder / "src"), str(ROOT / "studies" / "src")]),
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_files_are_new_or_changed(enlarged):
    old, new = Path(zeronorm.__file__).parent, enlarged / "src" / "zeronorm"
    files = [file for file in new.rglob("*") if file.is_file() and file.parent.name != "__pycache__"]
    changed = [
        file.relative_to(new).as_posix() for file in files if not is_same(old / file.relative_to(new), file)
    ]
    assert sorted(changed) == ["__init__.pyi", "selectors/filters/deviation.py"]


def is_same(old, new):
    return old.exists() and filecmp.cmp(old, new, shallow=False)


def test_the_checks_of_all_methods_pass(enlarged):
    files = [f"tests/test_{check}.py" for check in CHECKS]
    chosen = [
        "-k",
        f"deviation or DeviationScore or {THOSE_OF_ALL}",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
    ]
    said = run(enlarged, "-m", "pytest", "-q", "-rs", *chosen, *files, "tests/selectors/test_snapshots.py")
    assert (
        "deviation has no snapshot yet: `python tests/selectors/test_snapshots.py deviation` writes it"
        in said
    )


def test_its_page_is_complete(enlarged):
    code = (
        "import sys; sys.path.insert(0, 'docs')\n"
        "from method_cards import card\n"
        "from zeronorm.registry import get_method\n"
        "print(card(get_method('deviation')))\n"
    )
    page = run(enlarged, "-c", code)
    for text in (
        "N. Nobody. Deviations. Journal of Examples 1, 1–2, 2026. `doi:10.1000/example",
        "Not measured yet: ``python docs/toy/measure.py deviation``",
        ":Data on a GPU: not measured yet",
        "tests/selectors/filters/test_deviation.py",
        ".. autoclass:: zeronorm.DeviationScore",
    ):
        assert text in page
