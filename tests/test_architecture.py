"""The page about the architecture is right: the steps that it shows are called in that order and nesting."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import zeronorm
from test_layers import LEVEL
from zeronorm import ZeroNormSVM
from zeronorm.cli._main import run

PACKAGE = Path(zeronorm.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"
STEP = re.compile(r"(?P<indent>[│├└─ ]*)(?P<file>[\w/]+\.py) +(?P<function>[\w.]+)(?: {2,}.+)?")


@dataclass(frozen=True)
class Step:
    """A line of a drawing; ``parent`` is the line inside which it runs."""

    function: tuple[str, str]
    parent: int | None


def drawn(page: str, name: str) -> list[Step]:
    """The steps of the drawing with this name."""
    block = re.search(rf"   :name: {name}\n\n((?:   .+\n)+)", page)[1]
    lines = [STEP.fullmatch(line[3:]) for line in block.splitlines()]
    assert all(lines), "a line of the drawing is no step"
    indents = [len(line["indent"]) for line in lines]
    steps = []
    for at, line in enumerate(lines):
        above = [i for i in range(at) if indents[i] < indents[at]]
        steps.append(Step((line["file"], line["function"]), max(above, default=None)))
    return steps


def first_missing(steps: list[Step], spans: list) -> Step | None:
    """The first step that does not run after the step before it and inside its parent; None if all do."""
    matched = []
    for step in steps:
        after = matched[-1].start if matched else 0
        before = np.inf if step.parent is None else matched[step.parent].end
        fits = (s for s in spans if s.function == step.function and after < s.start <= before)
        found = next(fits, None)
        if found is None:
            return step
        matched.append(found)
    return None


@pytest.fixture(scope="module")
def call_trace():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS.parent / "tools"))
        import call_trace

        yield call_trace
    sys.modules.pop("call_trace", None)


@pytest.fixture(scope="module")
def page():
    return (DOCS / "architecture.rst").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 100))
    X[:, :3] += y[:, None]
    return X, y


def test_the_way_of_fit_is_the_one_that_is_drawn(page, call_trace, data):
    steps = drawn(page, "way-of-fit")
    spans = call_trace.spans(lambda: ZeroNormSVM().fit(*data), PACKAGE, {step.function for step in steps})
    assert len(steps) >= 15
    assert first_missing(steps, spans) is None


def test_the_way_of_select_is_the_one_that_is_drawn(page, call_trace, data, tmp_path):
    X, y = data
    file = tmp_path / "file.csv"
    header = ",".join([*(f"x{k}" for k in range(X.shape[1])), "outcome"])
    np.savetxt(file, np.column_stack([X, y]), delimiter=",", header=header, comments="")
    (command,) = re.findall(r"``zeronorm (select file\.csv [^`]+)``", page)
    arguments = [str(file) if word == "file.csv" else word for word in command.split()]

    def select():
        with contextlib.redirect_stdout(io.StringIO()):
            assert run([*arguments, "--jobs", "1", "--out", str(tmp_path / "out")]) == 0

    steps = drawn(page, "way-of-select")
    assert len(steps) >= 20
    assert first_missing(steps, call_trace.spans(select, PACKAGE, {step.function for step in steps})) is None


def test_a_drawing_in_another_order_or_with_another_name_is_noticed(page, call_trace, data):
    steps = drawn(page, "way-of-fit")
    spans = call_trace.spans(lambda: ZeroNormSVM().fit(*data), PACKAGE, {step.function for step in steps})
    for at in (1, len(steps) - 2):  # siblings: exchange one with the next
        changed = [*steps[:at], steps[at + 1], steps[at], *steps[at + 2 :]]
        assert first_missing(changed, spans) is not None
    renamed = Step(("selectors/_base.py", "BaseSelector._gone"), 0)
    assert first_missing([*steps[:3], renamed], spans) is renamed
    outside = [
        steps[0],
        Step(("design/_convert.py", "as_design"), 0),
        Step(("design/_base.py", "Design.gram"), 1),
    ]
    assert first_missing(outside, spans) is outside[-1]


def test_the_packages_are_listed_in_the_order_of_their_imports(page):
    listed = re.findall(r"^   \* - ``(\w+)``$", page, re.MULTILINE)
    folders = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()} - {"studies"}
    assert set(listed) == folders
    assert [LEVEL[name] for name in listed] == sorted(LEVEL[name] for name in listed)
