"""No selector may use held-out data: checks for every registered selector, and a cheat that they must find.

A selector is given by a function of the full data, so that the cheat can look at all of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from zeronorm import FisherScore, SelectionPath, SelectorCV, evaluate
from zeronorm.registry import all_methods, register
from zeronorm.selection.target import TimeToEvent
from zeronorm.selectors._base import BaseSelector

SelectorMaker = Callable[[Any, Any], Any]
pytestmark = pytest.mark.filterwarnings("ignore:.*selects no feature by its own rule")  # labels are noise
METHODS = [method for kind in ("selector", "meta") for method in all_methods(kind)]
EVERY_INSTANCE = [instance for method in METHODS for instance in method.instances()]


def task_of(instance: Any) -> str:
    """The task of an instance: "classification", "regression" or "survival"."""
    return str(instance._task_name())


def name_of(instance: Any) -> str:
    return f"{instance._method.name}-{task_of(instance)}"


def _first_per_task() -> list[Any]:
    """One instance per method and task, in large steps where it takes steps: enough for the quick version."""
    chosen = {}
    for method in METHODS:
        for instance in method.instances():
            in_steps = "step" in instance.get_params(deep=False)
            quick = clone(instance).set_params(step=0.5) if in_steps else instance
            chosen.setdefault((method.name, task_of(instance)), quick)
    return list(chosen.values())


QUICK_INSTANCES = _first_per_task()
# SelectorCV treats all selectors alike: one of each family shows that it keeps rows apart. Not the one that
# cross-validates several others itself, which takes as long as the rest together.
ONE_PER_FAMILY = {
    method.family: instance
    for method in reversed(METHODS)
    for instance in QUICK_INSTANCES
    if name_of(instance) == f"{method.name}-classification" != "auto-classification"
}


@register("test-leaky", family="filters", tasks=("binary", "regression"), reference="")
class Leaky(BaseSelector):
    """Ranks by correlation with the target on all rows, whatever rows it is fitted on."""

    def __init__(self, X=None, y=None, *, n_features_to_select=None, task="classification"):
        self.X = X
        self.y = y
        self.n_features_to_select = n_features_to_select
        self.task = task

    def _select(self, problem):
        centered = self.X - self.X.mean(axis=0)
        return SelectionPath.from_scores(np.abs(centered.T @ (self.y - self.y.mean())))


def leaky(task: str) -> SelectorMaker:
    return lambda X, y: Leaky(X, y, task=task)


def permuted_data(task: str, seed: int, p: int, n: int = 60) -> tuple[Any, Any]:
    """Data with a strong relation between features and target, which a permutation then destroys."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = X[:, :5].sum(axis=1)
    y = {
        "regression": signal,
        "classification": (signal > np.median(signal)).astype(int),
        "survival": times_from(signal),
    }[task]
    return X, rng.permutation(y)


def times_from(risk: Any) -> Any:
    """Times that are shorter where the risk is high; one in five is censored."""
    return TimeToEvent.prepared({"event": np.arange(len(risk)) % 5 > 0, "time": np.exp(-risk)})


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Hard problems on noise may stop before they converge; that is not the subject here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return function(*args, **kwargs)


# -- the checks -----------------------------------------------------------------------------------------


def check_held_out_rows_do_not_matter(make: SelectorMaker, task: str) -> None:
    """Poison the held-out rows and flip their labels: the selection stays."""
    rng = np.random.default_rng(0)
    signal = rng.permutation(np.arange(40) % 2) if task == "classification" else rng.normal(size=40)
    X = rng.normal(size=(40, 8))
    X[:, 2] += 1.5 * signal
    train, test = np.arange(28), np.arange(28, 40)
    poisoned, other = X.copy(), signal.copy()
    poisoned[test] = 1e6 * rng.normal(size=(12, 8))
    other[test] = 1 - signal[test]
    y, flipped = (times_from(signal), times_from(other)) if task == "survival" else (signal, other)
    results = []
    for features, target in ((X, y), (poisoned, flipped)):
        selector = make(features, target)
        records = quietly(
            evaluate, {"m": selector}, features, target, cv=[(train, test)], sizes=[1, 3, None], task=task
        )
        assert records["error"].to_list() == [None] * 3
        results.append(records["selected"].to_list())
    assert results[0] == results[1], "the selection changed with the held-out rows"


def check_chance_through_evaluate(
    make: SelectorMaker, task: str, n_datasets: int, size: int = 10, p: int = 60
) -> None:
    """Permuted labels are predicted no better than by chance."""
    truth, predictions = [], []
    for seed in range(n_datasets):
        X, y = permuted_data(task, seed, p)
        records = quietly(evaluate, {"m": make(X, y)}, X, y, cv=2, sizes=[size], task=task, random_state=seed)
        assert records["error"].to_list() == [None, None]
        truth += records["truth"].explode().to_list()
        predictions += records["predictions"].explode().to_list()
    assert_chance(np.asarray(truth), np.asarray(predictions), task)


def assert_chance(truth: Any, predictions: Any, task: str) -> None:
    """Within four standard errors of the expectation without any information."""
    if task == "classification":
        found, expected, scale = np.mean(truth != predictions), 0.5, 0.5
    else:
        values = -np.log([pair["time"] for pair in truth]) if task == "survival" else truth
        found, expected, scale = np.corrcoef(values, predictions)[0, 1], 0.0, 1.0
    assert abs(found - expected) < 4 * scale / np.sqrt(truth.size), f"got {found:.3f}, not {expected}"


def check_chance_through_selector_cv(
    make: SelectorMaker, n_datasets: int, size: int = 10, p: int = 60
) -> None:
    """The inner scores of SelectorCV at a fixed size are those of chance too."""
    scores = []
    for seed in range(n_datasets):
        X, y = permuted_data("classification", seed, p)
        selector = SelectorCV(make(X, y), cv=2, sizes=[size], random_state=seed)
        scores.append(quietly(selector.fit, X, y).cv_results_["mean"][0])
    found = float(np.mean(scores))
    assert abs(found - 0.5) < 4 * 0.5 / np.sqrt(60 * n_datasets), f"got {found:.3f}, not 0.5"


# -- every registered selector --------------------------------------------------------------------------


def _maker(instance: Any) -> SelectorMaker:
    return lambda X, y: clone(instance)


@pytest.mark.parametrize("instance", EVERY_INSTANCE, ids=lambda i: repr(i).replace("\n", ""))
def test_held_out_rows_do_not_matter(instance):
    check_held_out_rows_do_not_matter(_maker(instance), task_of(instance))


@pytest.mark.parametrize("instance", QUICK_INSTANCES, ids=name_of)
def test_permuted_labels_give_chance_through_evaluate(instance):
    check_chance_through_evaluate(_maker(instance), task_of(instance), n_datasets=3)


@pytest.mark.parametrize("instance", ONE_PER_FAMILY.values(), ids=name_of)
def test_permuted_labels_give_chance_through_selector_cv(instance):
    check_chance_through_selector_cv(_maker(instance), n_datasets=3)


@pytest.mark.slow
@pytest.mark.parametrize("instance", EVERY_INSTANCE, ids=lambda i: repr(i).replace("\n", ""))
def test_permuted_labels_give_chance_in_full(instance):
    task = task_of(instance)
    check_chance_through_evaluate(_maker(instance), task, n_datasets=35, p=150)
    if task == "classification":
        check_chance_through_selector_cv(_maker(instance), n_datasets=35, p=150)


# -- the cheat is caught by the same checks -------------------------------------------------------------


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_leaky_selector_is_caught(task):
    with pytest.raises(AssertionError, match="changed with the held-out rows"):
        check_held_out_rows_do_not_matter(leaky(task), task)
    with pytest.raises(AssertionError, match="got 0"):
        check_chance_through_evaluate(leaky(task), task, n_datasets=3)


def test_a_leaky_selector_is_caught_by_selector_cv():
    with pytest.raises(AssertionError, match="got 0"):
        check_chance_through_selector_cv(leaky("classification"), n_datasets=3)


def test_selecting_before_splitting_is_caught():
    """The classic mistake: select on all data, then cross-validate the reduced data."""
    truth, predictions = [], []
    for seed in range(2):
        X, y = permuted_data("classification", seed, p=150)
        reduced = FisherScore(5).fit_transform(X, y)
        records = evaluate(FisherScore(), reduced, y, cv=2, sizes=[5])
        truth += records["truth"].explode().to_list()
        predictions += records["predictions"].explode().to_list()
    with pytest.raises(AssertionError, match="not 0"):
        assert_chance(np.asarray(truth), np.asarray(predictions), "classification")
