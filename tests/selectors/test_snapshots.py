"""The results of every selector on a few data sets do not change from one release to the next.

A difference here affects users; if it is intended, it belongs in the changelog. The known results are in
``snapshots/<family>.json``, one line for each case, and ``python tests/selectors/test_snapshots.py`` writes them
again: all of them, or those of the named methods (``... test_snapshots.py rfe arom``). A new method needs no
snapshot: until it has one its test is skipped.

A case is ``method/set of test parameters/task``, then the data or the constraint, or other values of parameters
(``relief/0/binary/n_neighbors=5``); to try other values write such a line with ``null`` and the command fills it in.
The line of a method alone holds its defaults. A result is the order of the features (one character each), the size
that the method chose, the number of iterations, whether it converged, a checksum of the sizes that were visited, and
sums of the scores, of the objective and of all fitted arrays (see `weighted_sum`).
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import string
import sys
import warnings
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.validation import has_fit_parameter

from zeronorm.registry import all_methods, get_method
from zeronorm.selection.target import TASKS, TimeToEvent

FOLDER = Path(__file__).with_name("snapshots")
KNOWN = {
    case: found
    for file in sorted(FOLDER.glob("*.json"))
    for case, found in json.loads(file.read_text("utf-8")).items()
}
METHODS = [method for kind in ("selector", "meta") for method in all_methods(kind)]
# scikit-learn before 1.8 begins the penalties for several targets elsewhere. Which of a column and its mirror image
# enters a least-angle path first depends on the processor's rounding; the order of the result does not.
OTHER_SCORES = {"lasso/0/multiclass", "dummy-selector/0/binary/odd"}
# Results that change with the rounding of another processor by more than the tolerance.
LEFT_OUT = {"adaptive-scaling/0/binary/wide", "sparse-kernel-fisher/0/binary/wide"}
WRAPPED = {"consensus", "knockoff-selector", "probe-selector", "selector-cv", "stability-selection"}
# Attributes that follow from the order of the features and the size, which are compared.
FROM_THE_PATH = {"support_", "ranking_", "n_features_", "n_features_in_", "converged_", "n_iter_", "classes_"}
LETTERS = string.digits + string.ascii_letters

# -- Data -----------------------------------------------------------------------------------------------


def data():
    """Three features have additive effects, two interact, one is nearly a copy; no two are equal."""
    rng = np.random.default_rng(21)
    X = rng.normal(size=(60, 12)) * np.linspace(0.5, 2.0, 12) + 6.0
    X[:, 3] += 0.6 * X[:, 7]
    f = X @ np.r_[1.0, 0, 0.8, 0, 0, -0.6, 0, 0, 0.5, 0, 0, 0]
    f = f - f.mean() + 0.4 * (X[:, 1] - 6) * (X[:, 4] - 6) + 0.5 * rng.normal(size=60)
    thirds = np.digitize(f, np.quantile(f, [0.33, 0.66]))
    return X, {"binary": (f > 0).astype(int), "multiclass": thirds, "regression": f}


def wide_data():
    """More features than samples, half of the values zero, in a sparse matrix."""
    rng = np.random.default_rng(22)
    X = np.where(rng.random((24, 40)) < 0.5, 0.0, rng.uniform(0.5, 2.0, size=(24, 40)))
    f = X[:, 3] - X[:, 17] + 0.5 * X[:, 30] + 0.1 * rng.normal(size=24)
    return sparse.csr_matrix(X), {"binary": (f > np.median(f)).astype(int), "regression": f}


def odd_data():
    """One column constant, one a copy, one a mirror image, one nearly constant and one in another unit."""
    X, targets = data()
    X = np.column_stack([X[:, :9], np.full(60, 3.0), X[:, 2], -X[:, 5], 1e6 + X[:, 10], 1e-4 * X[:, 11]])
    return X, targets


def tall_data():
    """Many samples of few features, in classes that overlap."""
    rng = np.random.default_rng(23)
    X = rng.normal(size=(240, 5))
    f = X[:, 1] - 0.7 * X[:, 3] + 0.8 * rng.normal(size=240)
    return X, {"binary": (f > 0.3).astype(int), "regression": f}


def survival_of(f):
    """Times that are shorter where f is large, a third of them censored."""
    return TimeToEvent.prepared({"event": np.arange(len(f)) % 3 > 0, "time": np.exp(-f)})


DATA = {"wide": wide_data, "odd": odd_data, "tall": tall_data}
CONSTRAINTS = {"feature_groups": [0, 1, 2, 3, 4, 5, 0, 1, 6, 7, 8, 9], "always_keep": [9, 1]}

# -- Cases ----------------------------------------------------------------------------------------------


def usual_cases(method):
    """The first parameters of a method with every task, with constraints, weights and other data; the others once."""
    tasks = [task for task in method.tasks if task != "multilabel"]
    if method.name in WRAPPED:  # the method inside is one for classes
        tasks.remove("regression")
    if method.kind == "meta" and "survival" in tasks:  # likewise; tests/workflow/test_survival.py has them
        tasks.remove("survival")
    first, *others = method.instances()
    takes = [name for name in CONSTRAINTS if name in first.get_params(deep=False)]
    takes += ["sample_weight"] if has_fit_parameter(first, "sample_weight") else []
    takes += [kind for kind in DATA if kind != "wide" or first.__sklearn_tags__().input_tags.sparse]
    cases = [f"{method.name}/0/{task}" for task in tasks]
    cases += [f"{method.name}/{index}/{tasks[0]}" for index in range(1, len(others) + 1)]
    cases += [f"{method.name}/0/{tasks[0]}/{what}" for what in takes]
    return [case for case in cases if case not in LEFT_OUT]


def values_of(text):
    """Values of parameters from text as in a call: ``step=3, kernel='rbf'``."""
    call = ast.parse(f"_({text})", mode="eval").body
    return {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}


@cache
def fitted(case):
    """The selector of a case after its fit."""
    name, index, task, *more = case.split("/", 3)
    what = more[0] if more else ""
    values = values_of(what) if "=" in what else {}
    selector = get_method(name).instances()[int(index)]
    chosen = {"random_state": 0, "task": task if task in TASKS else "classification"}
    chosen |= {key: value for key, value in CONSTRAINTS.items() if key == what}
    known = selector.get_params(deep=False)
    selector.set_params(**{key: value for key, value in chosen.items() if key in known}, **values)
    X, targets = DATA.get(what, data)()
    targets["survival"] = survival_of(targets["regression"])
    for column in values.get("discrete_features", ()):
        X[:, column] = np.round(X[:, column])
    weight = np.random.default_rng(5).uniform(0.5, 2.0, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations, nothing selected: tested elsewhere
        return selector.fit(
            X, targets[task], **({"sample_weight": weight} if what == "sample_weight" else {})
        )


# -- Results --------------------------------------------------------------------------------------------


def result_of(selector):
    """The values that are compared: exact ones of the path first, then sums, each with the scale of its tolerance."""
    path = selector.path_
    order = "".join(LETTERS[column] for column in path.order)
    selected_size = None if path.selected_size is None else int(path.selected_size)
    sizes = f"{zlib.crc32(path.sizes.astype('<i8').tobytes()):08x}"
    exact = [order, selected_size, bool(path.converged), sizes]
    scores, objective = path.feature_scores(), [] if path.objective is None else [path.objective]
    numbers = (scores, scores[::-1], *objective, *arrays_of(selector))
    return exact, int(path.n_iter), [weighted_sum(found) for found in numbers]


def arrays_of(selector):
    """Every numeric array among the fitted attributes, by name."""
    for name, value in sorted(vars(selector).items()):
        if name.endswith("_") and not name.startswith("_") and name not in FROM_THE_PATH:
            try:
                yield np.asarray(value, dtype=np.float64).ravel()
            except (TypeError, ValueError):  # no numbers
                continue


def weighted_sum(numbers):
    """A sum that depends on the order of the numbers, and the sum of their sizes."""
    numbers = numbers[np.isfinite(numbers)]
    return numbers @ (1.25 + np.cos(np.arange(numbers.size))), np.abs(numbers).sum()


@pytest.mark.parametrize("case", [case for case in KNOWN if "/" in case])
def test_results_do_not_change(case):
    *exact, n_iter, sums = KNOWN[case]
    found, n_iter_now, sums_now = result_of(fitted(case))
    assert found == exact
    if case not in OTHER_SCORES:
        assert len(sums_now) == len(sums)
        for (total, size), known in zip(sums_now, sums, strict=True):
            assert total == pytest.approx(known, rel=1e-4, abs=1e-4 * size)
    # Rounding may add or save a step, and more where a model starts from the last solution.
    share = 0.5 if case.startswith(("rfe/", "sensitivity/")) else 0.2
    assert abs(n_iter_now - n_iter) <= int(share * n_iter)


def defaults_of(method):
    """Defaults as in a call, without those that are None."""
    given = {"selector": None} if "selector" in inspect.signature(method.cls).parameters else {}
    values = method.cls(**given).get_params(deep=False)
    return ", ".join(f"{name}={value!r}" for name, value in values.items() if value is not None)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_defaults_do_not_change_and_every_usual_case_has_a_snapshot(method):
    command = f"python tests/selectors/test_snapshots.py {method.name}"
    if method.name not in KNOWN:
        pytest.skip(f"{method.name} has no snapshot yet: `{command}` writes it")
    assert defaults_of(method) == KNOWN[method.name]
    assert set(usual_cases(method)) <= set(KNOWN), f"`{command}` adds the cases that are missing"


# -- Units ----------------------------------------------------------------------------------------------

# The median of the standard deviations, or a regression of the columns as they are, weighs columns of different units.
IN_ONE_UNIT = {"shrunken-centroids", "consensus"}
# A penalty, or the width of the insensitive zone, in the unit of the target.
UNIT_OF_THE_TARGET = {"grafting", "rfecv", "sensitivity"}


@pytest.mark.parametrize(
    "case", [case for case in KNOWN if re.fullmatch(r"(?!tree/0/reg)[\w-]+/0/(binary|regression)", case)]
)
def test_units_do_not_matter(case):
    """Rescaling each column and the target by powers of two changes no digit of the result.

    A tree of real targets has splits that are equally good up to rounding.
    """
    name, _, task = case.split("/")
    X, targets = data()
    X *= 2.0**-9 if name in IN_ONE_UNIT else 2.0 ** np.array([-12, 3, -7, 0, 5, -9, 2, -3, 8, -11, 1, -6])
    y = targets[task]
    if task == "regression" and name not in UNIT_OF_THE_TARGET:
        y = 2.0**-12 * y
    usual = fitted(case)
    selector = get_method(name).cls(**usual.get_params(deep=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = selector.fit(X, y).path_
    assert path.order.tolist() == usual.path_.order.tolist()
    assert path.selected_size == usual.path_.selected_size


# -- Writing --------------------------------------------------------------------------------------------


def line_of(case):
    exact, n_iter, sums = result_of(fitted(case))
    return [*exact, n_iter, [float(f"{total:.6g}") for total, _ in sums]]


def write(names):
    """Rewrite the snapshots of these methods and keep those of the others."""
    FOLDER.mkdir(exist_ok=True)
    for family in sorted({method.family for method in METHODS}):
        lines = {}
        for method in (method for method in METHODS if method.family == family):
            known = {
                c: found for c, found in KNOWN.items() if c == method.name or c.startswith(f"{method.name}/")
            }
            if method.name in names:
                others = [case for case in known if "=" in case]
                cases = [*usual_cases(method), *others]
                known = {method.name: defaults_of(method)} | {case: line_of(case) for case in cases}
            lines |= known
        text = ",\n".join(f"{json.dumps(case)}: {json.dumps(found)}" for case, found in lines.items())
        (FOLDER / f"{family}.json").write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:] or [method.name for method in METHODS])
