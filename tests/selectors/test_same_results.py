"""The results of every selector on one set of data stay what they are from one release to the next.

A difference here is one that users will meet. Where it is meant, it belongs in the changelog, and
``python tests/selectors/test_same_results.py`` writes the file anew.
"""

from __future__ import annotations

import inspect
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.validation import has_fit_parameter

from zeronorm.registry import all_methods, get_method

FILE = Path(__file__).with_name("same_results.json")
KNOWN = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
# scikit-learn before 1.8 begins the penalties for several targets elsewhere.
OTHER_SCORES = {"lasso/0/multiclass"}
# Results that the rounding of another processor changes by more than is tested here.
LEFT_OUT = {
    *("adaptive-scaling/0/binary/wide", "sparse-kernel-fisher/0/binary/wide"),
    "sparse-kernel-fisher/1/other",  # its path begins exactly where the second feature enters
}
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


DATA = {"wide": wide_data, "odd": odd_data, "tall": tall_data}
CONSTRAINTS = {"feature_groups": [0, 1, 2, 3, 4, 5, 0, 1, 6, 7, 8, 9], "always_keep": [9, 1]}


# Values of parameters that the quick instances leave at their defaults, each with a task.
OTHERS = {
    "fcbf": [("multiclass", {"threshold": 0.1}), ("multiclass", {"bins": 3})],
    "gflip": [
        ("binary", {"utility": "zero_one"}),
        ("multiclass", {"utility": "sigmoid", "slope": 3.0}),
        ("binary", {"standardize": False, "max_iter": 2}),
    ],
    "gram-schmidt-relief": [
        ("binary", {"contrast": "difference", "level": 0.5}),
        ("multiclass", {"correction": "max", "level": 0.3, "n_probes": 200}),
        ("binary", {"min_separation": 5, "standardize": False}),
    ],
    "interval": [("binary", {"n_parts": 3}), ("regression", {"n_parts": 4, "scoring": "r2"})],
    "mutual-information": [
        ("binary", {"n_neighbors": 6, "discrete_features": [2, 5]}),
        ("regression", {"n_neighbors": 1, "discrete_features": [2, 5]}),
    ],
    "relief": [
        ("multiclass", {"contrast": "ratio", "n_neighbors": 5}),
        ("binary", {"discrete_features": [2, 5], "min_separation": 4}),
        ("regression", {"metric": "euclidean", "column_scaling": "none", "n_neighbors": 7}),
    ],
    "shrunken-centroids": [("multiclass", {"threshold": 0.5})],
    "fisher": [("multiclass", {"variant": "overall"})],
    "bound-elimination": [
        ("binary", {"rule": "retrain", "step": 4, "kernel": "linear", "C": 0.3}),
        ("binary", {"sign": "absolute", "step": 0.4, "gamma": 0.2}),
        ("binary", {"kernel": "poly", "degree": 3, "coef0": 0.5, "step": 4}),
        ("binary", {"bound": "variance", "rule": "removal", "step": 4, "gamma": "scale"}),
        ("binary", {"bound": "span", "step": 4, "standardize": False, "C": 5.0}),
    ],
    "forward-least-squares": [("binary", {"gain": "joint"}), ("regression", {"standardize": False})],
    "grafting": [
        ("binary", {"loss": "squared_error", "penalty_l1": 0.2}),
        ("binary", {"penalty_l0": 0.01, "penalty_l1": 0.01}),
        ("regression", {"standardize": False, "penalty_l2": 0.1}),
        ("binary", {"max_iter": 3}),
    ],
    "gram-schmidt": [
        ("binary", {"stop": "size"}),
        ("multiclass", {"stop": "fisher", "level": 0.3}),
        ("regression", {"stop": "probe", "correction": "max", "level": 0.3}),
        ("regression", {"stop": "fisher", "degree": 2, "standardize": False}),
        ("binary", {"stop": "loo", "degree": 2}),
    ],
    "optimal-brain-damage": [
        ("regression", {"rule": "first_layer", "weight_decay": 0.3}),
        ("multiclass", {"step": 5, "weight_decay": 0.3}),
    ],
    "perceptron-rfe": [
        ("binary", {"accuracy": 0.2, "power": 4.0}),
        ("binary", {"standardize": False, "rule": "halve", "max_iter": 5}),
    ],
    "rfe": [
        ("multiclass", {"multi_class": "one_vs_one", "C": 0.5, "step": 3}),
        ("multiclass", {"multi_class": "one_vs_one", "kernel": "rbf", "gamma": "remaining", "step": 4}),
        ("multiclass", {"learner": "logistic", "step": 4}),
        ("regression", {"loss": "squared", "step": 3, "standardize": False}),
        ("regression", {"kernel": "rbf", "gamma": "scale", "epsilon": 0.5, "step": 4}),
        ("binary", {"kernel": "poly", "degree": 3, "coef0": 0.5, "step": 4, "C": 2.0}),
        ("binary", {"kernel": "rbf", "loss": "squared", "gamma": 0.1, "step": 0.4}),
        ("regression", {"epsilon": 0.5, "C": 0.1, "step": 3}),
    ],
    "rfecv": [
        ("binary", {"min_features_to_select": 3, "step": 0.3, "scoring": "accuracy"}),
        ("multiclass", {"step": 3, "cv": 3}),
    ],
    "sensitivity": [
        ("binary", {"search": "forward", "step": 4}),
        ("binary", {"search": "nested", "order": 2, "step": 4, "difference_step": 0.1}),
        ("multiclass", {"norm": "l1", "kernel": "linear", "step": 4}),
        ("regression", {"epsilon": 0.5, "C": 2.0, "step": 4, "gamma": "scale"}),
        ("binary", {"sensitivity_of": "objective", "loss": "squared", "step": 4, "gamma": 0.2}),
        ("multiclass", {"learner": "network", "n_hidden": 2, "weight_decay": 0.3, "step": 5, "max_iter": 30}),
        (
            "binary",
            {"order": 0, "standardize": False, "step": 0.5, "kernel": "poly", "degree": 3, "coef0": 0.5},
        ),
    ],
    "tree": [
        ("multiclass", {"criterion": "entropy", "max_depth": 3}),
        ("multiclass", {"criterion": "error", "min_samples_leaf": 4}),
        ("binary", {"min_samples_leaf": 0.2, "ccp_alpha": "auto"}),
        ("regression", {"n_trees": 3, "max_depth": 3}),
        ("regression", {"ccp_alpha": "auto", "min_samples_leaf": 3}),
        ("binary", {"criterion": "gini", "ccp_alpha": 0.02}),
    ],
    "adaptive-scaling": [
        ("binary", {"kernel": "poly", "degree": 3, "coef0": 0.5, "max_iter": 50}),
        ("binary", {"sigma_norm": 0.5, "gamma": 0.3, "C": 5.0, "max_iter": 50}),
        ("binary", {"q": 0.5, "zero_tol": 0.1, "standardize": False, "gamma": "scale", "max_iter": 50}),
    ],
    "ard": [
        ("regression", {"noise_variance": 0.5, "method": "fixed_point"}),
        ("multiclass", {"prior_shape": 0.5, "prior_rate": 0.1, "method": "fixed_point"}),
        ("regression", {"min_noise": 5.0, "standardize": False}),
    ],
    "jcfo": [
        ("binary", {"kernel": "poly", "degree": 3, "coef0": 0.5, "max_iter": 5}),
        ("binary", {"kernel": "rbf", "gamma": "auto", "feature_penalty": 3.0, "max_iter": 5}),
        ("binary", {"sample_penalty": 0.5, "gradient_steps": 2, "standardize": False, "max_iter": 5}),
        ("binary", {"kernel": "rbf", "gamma": "scale", "max_iter": 5}),
    ],
    "kernel-multiplicative-update": [
        ("multiclass", {"multi_class": "one_vs_one", "C": 1.0}),
        ("multiclass", {"kernel": "linear", "stop_at": 3, "scaling": "paper"}),
        ("binary", {"kernel": "poly", "degree": 3, "coef0": 0.5, "zero_tol": 0.1}),
        ("binary", {"gamma": "scale", "standardize": False, "max_iter": 5}),
    ],
    "margin-lp": [("binary", {"C": 1.0, "standardize": False})],
    "max-entropy-discrimination": [
        ("binary", {"inclusion_prior": 0.3, "C": 3.0}),
        ("regression", {"epsilon": 0.5, "standardize": False}),
    ],
    "radius-margin-scaling": [
        ("binary", {"bound": "span", "discard": "removal", "step": 4, "max_iter": 20}),
        ("binary", {"bound": "validation", "cv": 3, "steepness": 2.0, "step": None, "max_iter": 10}),
        ("multiclass", {"discard": "curvature", "kernel": "linear", "step": 5, "max_iter": 20}),
        (
            "binary",
            {"bound": "radius", "kernel": "poly", "degree": 3, "coef0": 0.5, "step": 0.4, "max_iter": 20},
        ),
        ("binary", {"constraint": "box", "standardize": False, "gamma": "scale", "C": 5.0, "max_iter": 20}),
        ("binary", {"zero_tol": 0.3, "gamma": 0.2, "max_iter": 20}),
    ],
    "arom": [
        ("binary", {"norm": "switch"}),
        ("binary", {"slack_norm": 0, "C": 1.0}),
        *(("multiclass", {"multi_class": name}) for name in ("uncoupled", "one_vs_one", "weston_watkins")),
        ("regression", {"norm": "l1", "epsilon": 0.3}),
        ("binary", {"scaling": "paper", "start": "correlation", "zero_tol": 0.1}),
        ("binary", {"start": "equal", "standardize": False, "max_iter": 3}),
        ("multiclass", {"norm": "l1", "start": "correlation"}),
    ],
    "fsv": [
        ("binary", {"sparsity": 0.5, "alpha": 1.0}),
        ("multiclass", {"growth": 3.0, "sparsity": 0.3}),
        ("regression", {"epsilon": 0.5, "standardize": False}),
    ],
    "l1-svm": [
        ("binary", {"C": 0.2}),
        ("multiclass", {"multi_class": "one_vs_one", "C": 0.5}),
        ("regression", {"epsilon": 0.5, "C": 0.1, "standardize": False}),
    ],
    "lasso": [
        ("regression", {"method": "lars", "standardize": False}),
        ("regression", {"norm_bound": 0.5, "n_alphas": 7}),
        ("binary", {"standardize": False, "n_alphas": 7}),
        ("multiclass", {"n_alphas": 4, "norm_bound": 0.3}),
    ],
    "logistic-lasso": [
        ("multiclass", {"norm_bound": 1.0, "n_alphas": 4}),
        ("binary", {"standardize": False, "n_alphas": 4}),
    ],
    "potential-svm": [
        ("binary", {"C": 1.0, "epsilon": 2.0}),
        ("regression", {"epsilon": 4.0, "n_steps": 3}),
    ],
    "sparse-kernel-fisher": [
        ("binary", {"penalty_l1": 0.5}),
        ("binary", {"standardize": False, "n_steps": 3}),
    ],
    "svm-weights": [
        ("multiclass", {"norm": "l1", "multi_class": "one_vs_one"}),
        ("regression", {"norm": "l1", "epsilon": 0.5}),
        ("multiclass", {"multi_class": "one_vs_one", "C": 0.3, "standardize": False}),
        ("regression", {"epsilon": 0.5, "C": 0.1}),
    ],
    "zeronorm-logistic": [
        *(("binary", {"penalty": name, "n_alphas": 5}) for name in ("log", "scad", "l0.5")),
        ("multiclass", {"penalty": "scad", "n_alphas": 4, "epsilon": 0.5}),
        ("binary", {"max_features": 3, "ridge": 0.1, "standardize": False, "n_alphas": 5}),
        ("multiclass", {"max_features": 4, "n_alphas": 4, "max_reweightings": 2}),
    ],
    "zeronorm-svm": [
        ("binary", {"q": 0.5, "start": "equal"}),
        ("binary", {"q": 2.0, "start": "correlation", "C": 1.0}),
        ("binary", {"q": float("inf")}),
        ("multiclass", {"loss": "probit"}),
        ("multiclass", {"multi_class": "one_vs_one", "scaling": "paper"}),
        ("binary", {"zero_tol": 0.2, "standardize": False, "max_iter": 3}),
    ],
    "ofw": [
        ("binary", {"method": "euclidean", "step_size": 0.01, "step_offset": 20.0}),
        ("binary", {"method": "exact", "subset_size": 2, "learner": "centroid", "max_iter": 3}),
        ("binary", {"method": "exact_euclidean", "subset_size": 2, "learner": "centroid", "max_iter": 3}),
        ("multiclass", {"learner": "knn", "cost": "balanced", "bootstrap_size": 30}),
        ("multiclass", {"learner": "cart", "subset_size": 3, "batch_size": None}),
        ("multiclass", {"learner": "lda", "multi_class": "output_code"}),
        ("multiclass", {"learner": "linear_svm", "multi_class": "one_vs_rest", "class_weight": "balanced"}),
        ("binary", {"fisher_threshold": 0.05, "noise": 0.0, "n_evaluations": 4, "learner": "centroid"}),
        ("binary", {"tol": 0.5, "window": 4, "standardize": False, "learner": "centroid", "max_iter": 200}),
    ],
    "auto": [
        ("binary", {"rule": "best", "sizes": [2, 5], "scoring": "accuracy"}),
        ("multiclass", {"cv": 3, "rule": "best"}),
    ],
    "consensus": [
        ("binary", {"aggregation": "mean_rank", "refine": 0}),
        ("binary", {"aggregation": "frequency", "n_subsamples": 4, "subset_size": 3, "refine": 0}),
        ("multiclass", {"weights": "stability", "n_subsamples": 4, "refine": 5}),
        ("binary", {"weights": [3.0, 1.0], "refine": 4}),
    ],
    "knockoff-selector": [
        ("binary", {"knockoffs": "normal_scores", "n_draws": 3}),
        ("binary", {"knockoffs": "fixed_x", "level": 0.3}),
        ("binary", {"construction": "sdp", "offset": 1, "level": 0.8}),
    ],
    "probe-selector": [
        ("binary", {"probes": "gaussian", "control": "fdr", "level": 0.3}),
        ("multiclass", {"control": "fwer", "n_repeats": 3, "level": 0.5}),
    ],
    "selector-cv": [
        ("binary", {"rule": "one_se", "sizes": [1, 3, 6, 9]}),
        ("multiclass", {"rule": "best", "scoring": "accuracy", "cv": 3}),
    ],
    "stability-selection": [
        ("binary", {"sampling": "halves", "threshold": 0.6, "subset_size": 3}),
        (
            "multiclass",
            {"assumption": "unimodal", "false_selections": 3.0, "subset_size": None, "n_subsamples": 10},
        ),
    ],
}


def cases():
    """The first parameters of each method with every task, then with constraints or weights; the others with one.

    After them other values of its parameters, and the first on other kinds of data.
    """
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
            on_others = [f"{method.name}/{place}/other" for place in range(len(OTHERS.get(method.name, ())))]
            kinds = [kind for kind in DATA if kind != "wide" or first.__sklearn_tags__().input_tags.sparse]
            on_others += [f"{method.name}/0/{tasks[0]}/{kind}" for kind in kinds]
            yield from (case for case in on_others if case not in LEFT_OUT)


def found(case):
    name, place, task, *more = case.split("/")
    selector = get_method(name).instances()[0 if task == "other" else int(place)]
    values = {}
    if task == "other":
        task, values = OTHERS[name][int(place)]
    known = selector.get_params(deep=False)
    chosen = {"random_state": 0, "task": "regression" if task == "regression" else "classification"}
    chosen |= {key: value for key, value in CONSTRAINTS.items() if key in more}
    selector.set_params(**{key: value for key, value in chosen.items() if key in known}, **values)
    X, targets = next((DATA[kind] for kind in more if kind in DATA), data)()
    for column in values.get("discrete_features", ()):
        X[:, column] = np.round(X[:, column])
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
        "sizes": path.sizes.tolist(),
        "objective": None if path.objective is None else sums_of(path.objective),
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
        found[name] = sums_of(numbers)
    return found


def sums_of(numbers):
    numbers = numbers[np.isfinite(numbers)]
    sums = np.abs(numbers).sum(), numbers @ np.cos(np.arange(numbers.size))
    return [float(f"{total:.6g}") for total in sums]


def test_every_selector_is_there():
    assert sorted(KNOWN) == sorted(cases())


@pytest.mark.parametrize("case", KNOWN)
def test_results_stay_what_they_are(case):
    known, now = KNOWN[case], found(case)
    for part in ("order", "own_size", "converged", "sizes"):
        assert now[part] == known[part], part
    if case not in OTHER_SCORES:
        np.testing.assert_allclose(
            now["scores"], known["scores"], rtol=0, atol=1e-4 * np.abs(known["scores"]).max()
        )
        assert now["figures"].keys() == known["figures"].keys()
        for name, figures in (known["figures"] | {"objective": known["objective"]}).items():
            again = now["objective"] if name == "objective" else now["figures"][name]
            assert again == (figures and pytest.approx(figures, rel=1e-4, abs=1e-4 * figures[0])), name
    # Rounding may take a step more or less, and more of them where a machine begins at the solution of the last.
    share = 0.5 if case.startswith(("rfe/", "sensitivity/")) else 0.2
    assert abs(now["n_iter"] - known["n_iter"]) <= int(share * known["n_iter"])


# The median of the spreads, or a regression of the columns as they are, weighs columns of different units.
IN_ONE_UNIT = {"shrunken-centroids", "consensus"}
# A penalty or the width of a tube in the unit of the target.
UNIT_OF_THE_TARGET = {"grafting", "rfecv", "sensitivity"}


@pytest.mark.parametrize(
    "case", [case for case in KNOWN if re.fullmatch(r"(?!tree/0/reg)[\w-]+/0/(binary|regression)", case)]
)
def test_units_do_not_matter(case):
    """Powers of two change no digit: each column in another unit, and the target.

    A tree of real targets has splits that are equally good up to rounding.
    """
    name, _, task = case.split("/")
    X, targets = data()
    X *= 2.0**-9 if name in IN_ONE_UNIT else 2.0 ** np.array([-12, 3, -7, 0, 5, -9, 2, -3, 8, -11, 1, -6])
    y = targets[task]
    if task == "regression" and name not in UNIT_OF_THE_TARGET:
        y = 2.0**-12 * y
    selector = get_method(name).instances()[0]
    chosen = {"random_state": 0, "task": "regression" if task == "regression" else "classification"}
    known = selector.get_params(deep=False)
    selector.set_params(**{key: value for key, value in chosen.items() if key in known})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = selector.fit(X, y).path_
    assert path.order.tolist() == KNOWN[case]["order"]
    assert path.own_size == KNOWN[case]["own_size"]


# -- Defaults are part of what users rely on: a change of one belongs in the changelog --

DEFAULTS_FILE = Path(__file__).with_name("same_defaults.json")
DEFAULTS = json.loads(DEFAULTS_FILE.read_text("utf-8")) if DEFAULTS_FILE.exists() else {}


def defaults_of(name):
    cls = get_method(name).cls
    given = {"selector": "the one inside"} if "selector" in inspect.signature(cls).parameters else {}
    return {key: repr(value) for key, value in cls(**given).get_params(deep=False).items()}


@pytest.mark.parametrize(
    "name", [method.name for kind in ("selector", "meta") for method in all_methods(kind)]
)
def test_defaults_stay_what_they_are(name):
    assert defaults_of(name) == DEFAULTS[name]


if __name__ == "__main__":
    lines = [f"{json.dumps(case)}: {json.dumps(found(case))}" for case in cases()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    names = [method.name for kind in ("selector", "meta") for method in all_methods(kind)]
    lines = [f"{json.dumps(name)}: {json.dumps(defaults_of(name))}" for name in names]
    DEFAULTS_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
