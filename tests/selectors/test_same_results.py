"""The results of every selector on one set of data stay what they are from one release to the next.

A difference here is one that users will meet. Where it is meant, it belongs in the changelog, and
``python tests/selectors/test_same_results.py`` writes the file anew.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.validation import has_fit_parameter

from zeronorm.registry import all_methods, get_method

FILE = Path(__file__).with_name("same_results.json")
KNOWN = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
# scikit-learn before 1.8 begins the penalties for several targets elsewhere.
OTHER_SCORES = {"lasso/0/multiclass"}
WRAPPED = {"consensus", "knockoff-selector", "probe-selector", "selector-cv", "stability-selection"}


def data():
    """Three features add up, two work together, one is nearly a copy; no two are alike."""
    rng = np.random.default_rng(21)
    X = rng.normal(size=(60, 12)) * np.linspace(0.5, 2.0, 12) + 6.0
    X[:, 3] += 0.6 * X[:, 7]
    f = X @ np.r_[1.0, 0, 0.8, 0, 0, -0.6, 0, 0, 0.5, 0, 0, 0]
    f = f - f.mean() + 0.4 * (X[:, 1] - 6) * (X[:, 4] - 6) + 0.5 * rng.normal(size=60)
    thirds = np.digitize(f, np.quantile(f, [0.33, 0.66]))
    return X, {"binary": (f > 0).astype(int), "multiclass": thirds, "regression": f}


CONSTRAINTS = {"feature_groups": [0, 1, 2, 3, 4, 5, 0, 1, 6, 7, 8, 9], "always_keep": [9, 1]}


def cases():
    """The first parameters of each method with every task, then with constraints or weights; the others with one."""
    for kind in ("selector", "meta"):
        for method in all_methods(kind):
            tasks = [task for task in method.tasks if task != "multilabel"]
            if method.name in WRAPPED:  # the method inside is one for classes
                tasks.remove("regression")
            yield from (f"{method.name}/0/{task}" for task in tasks)
            yield from (f"{method.name}/{place}/{tasks[0]}" for place in range(1, len(method.instances())))
            first = method.instances()[0]
            known = first.get_params(deep=False)
            yield from (f"{method.name}/0/{tasks[0]}/{name}" for name in CONSTRAINTS if name in known)
            if has_fit_parameter(first, "sample_weight"):
                yield f"{method.name}/0/{tasks[0]}/sample_weight"


def found(case):
    name, place, task, *more = case.split("/")
    selector = get_method(name).instances()[int(place)]
    known = selector.get_params(deep=False)
    chosen = {"random_state": 0, "task": "regression" if task == "regression" else "classification"}
    chosen |= {key: value for key, value in CONSTRAINTS.items() if key in more}
    selector.set_params(**{key: value for key, value in chosen.items() if key in known})
    X, targets = data()
    weights = (
        {"sample_weight": np.random.default_rng(5).uniform(0.5, 2.0, 60)} if "sample_weight" in more else {}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations, nothing selected: told elsewhere
        path = selector.fit(X, targets[task], **weights).path_
    return {
        "order": path.order.tolist(),
        "own_size": path.own_size if path.own_size is None else int(path.own_size),
        "converged": bool(path.converged),
        "n_iter": int(path.n_iter),
        "scores": [float(f"{score:.6g}") for score in path.feature_scores()],
        "figures": figures_of(selector),
    }


def figures_of(fitted):
    """Of every array of numbers that the fit has left, the sum of the sizes and a sum that depends on the order."""
    found = {}
    for name, value in sorted(vars(fitted).items()):
        if not name.endswith("_") or name.startswith("_") or name in ("n_iter_", "classes_"):
            continue
        try:
            numbers = np.asarray(value, dtype=np.float64).ravel()
        except (TypeError, ValueError):  # no numbers
            continue
        numbers = numbers[np.isfinite(numbers)]
        sums = np.abs(numbers).sum(), numbers @ np.cos(np.arange(numbers.size))
        found[name] = [float(f"{total:.6g}") for total in sums]
    return found


def test_every_selector_is_there():
    assert sorted(KNOWN) == sorted(cases())


@pytest.mark.parametrize("case", KNOWN)
def test_results_stay_what_they_are(case):
    known, now = KNOWN[case], found(case)
    for part in ("order", "own_size", "converged"):
        assert now[part] == known[part], part
    if case not in OTHER_SCORES:
        np.testing.assert_allclose(
            now["scores"], known["scores"], rtol=0, atol=1e-4 * np.abs(known["scores"]).max()
        )
        assert now["figures"].keys() == known["figures"].keys()
        for name, figures in known["figures"].items():
            assert now["figures"][name] == pytest.approx(figures, rel=1e-4, abs=1e-4 * figures[0]), name
    # Rounding may take a step more or less, and more of them where a machine begins at the solution of the last.
    share = 0.5 if case.startswith(("rfe/", "sensitivity/")) else 0.2
    assert abs(now["n_iter"] - known["n_iter"]) <= int(share * known["n_iter"])


if __name__ == "__main__":
    lines = [f"{json.dumps(case)}: {json.dumps(found(case))}" for case in cases()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
