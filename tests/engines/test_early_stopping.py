"""Early stopping: which samples are kept out, when an error is too high, and that every method stops there."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from small_problems import problem_of
from zeronorm import AROM, FSV, ZeroNormSVM
from zeronorm.engines._early_stopping import EarlyStopping, held_out_samples
from zeronorm.solvers.linear import HingeLoss, svm_loss

METHODS = {
    "arom": AROM(C=1.0),
    "arom from equal factors": AROM(C=5.0, start="equal"),
    "arom l1": AROM(norm="l1", C=0.3),
    "arom switch": AROM(norm="switch", C=1.0),
    "arom with slacks": AROM(C=1.0, slack_norm=0),
    "zero-norm svm": ZeroNormSVM(C=2.0),
    "zero-norm svm, probit": ZeroNormSVM(loss="probit"),
    "fsv": FSV(sparsity=0.02),
    "fsv, growth": FSV(sparsity=0.01, growth=2.0),
    "arom, classes": AROM(C=1.0),
    "arom, pairs of classes": AROM(C=1.0, multi_class="one_vs_one"),
    "arom, joint classes": AROM(C=1.0, multi_class="weston_watkins"),
    "zero-norm svm, classes": ZeroNormSVM(C=2.0),
    "fsv, classes": FSV(sparsity=0.02),
    "fsv, joint classes": FSV(sparsity=0.02, multi_class="weston_watkins"),
    "arom, real": AROM(C=1.0, epsilon=0.2, task="regression"),
    "arom l1, real": AROM(C=1.0, norm="l1", epsilon=0.2, task="regression"),
    "arom huber, real": AROM(C=1.0, epsilon=0.2, loss="huber", task="regression"),
    "fsv, real": FSV(sparsity=0.02, epsilon=0.2, task="regression"),
}
FRACTION = 0.3


def dense_signal(n_classes=2, n=50, p=30, seed=0):
    """Many weak features and noisy labels: few of the features lose much."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    score = X[:, :20] @ rng.normal(size=20) + 2.0 * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes)), score


# -- which samples are kept out ---------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.75]))
def test_the_samples_kept_out_do_not_depend_on_the_order_of_the_rows(seed, fraction):
    rng = np.random.default_rng(seed)
    X, y, order = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), rng.permutation(40)
    held = held_out_samples(problem_of(y, X, "multiclass"), fraction)
    again = held_out_samples(problem_of(y[order], X[order], "multiclass"), fraction)
    np.testing.assert_array_equal(again, held[order])
    assert held.sum() == round(fraction * 40)
    for c in range(3):
        assert abs(held[y == c].sum() - fraction * (y == c).sum()) <= 1.0


@given(st.integers(0, 2**31))
def test_groups_and_copies_stay_together(seed):
    rng = np.random.default_rng(seed)
    y, groups = np.arange(40) % 2, rng.integers(0, 9, 40)
    held = held_out_samples(problem_of(y, rng.normal(size=(40, 3)), sample_groups=groups), 0.3)
    assert all(np.ptp(held[groups == group].astype(int)) == 0 for group in np.unique(groups))
    X = np.repeat(rng.normal(size=(10, 3)), 2, axis=0)
    copies = held_out_samples(problem_of(np.arange(20) // 2 % 2, X), 0.3).reshape(10, 2)
    np.testing.assert_array_equal(copies[:, 0], copies[:, 1])
    assert copies[:, 0].sum() == 3


# -- when an error is too high ----------------------------------------------------------------------------


def stopping_of(y, weight=None):
    return EarlyStopping(problem_of(y, np.eye(len(y)), sample_weight=weight), HingeLoss(), "one_vs_rest")


def answers(stopping, wrong_samples, y):
    signs = np.where(np.asarray(y) == 1, 1.0, -1.0)
    found = []
    for wrong in wrong_samples:
        weights = signs * np.where(np.isin(np.arange(len(y)), wrong), -1.0, 1.0)
        found.append(stopping.stops(slice(None), weights[:, None], np.zeros(1)))
    return found


def test_one_more_error_is_chance_two_are_too_many():
    y = np.arange(12) % 2
    stopping = stopping_of(y)
    # After the first: one more, one less, two other ones, two more than the lowest.
    runs = [[0, 1], [0, 1, 2], [0], [3], [0, 4, 5]]
    assert answers(stopping, runs, y) == [False, False, False, False, True]
    np.testing.assert_allclose(stopping.errors, [2 / 12, 3 / 12, 1 / 12, 1 / 12, 3 / 12])


@given(st.lists(st.booleans(), min_size=10, max_size=10), st.lists(st.booleans(), min_size=10, max_size=10))
def test_the_rule_is_that_of_mcnemar(first, second):
    y = np.arange(10) % 2
    first, second = np.array(first), np.array(second)
    worse, better = int((second & ~first).sum()), int((first & ~second).sum())
    expected = worse > better and (worse - better) ** 2 > worse + better
    assert answers(stopping_of(y), [np.flatnonzero(first), np.flatnonzero(second)], y) == [False, expected]


def test_a_weight_of_two_is_two_samples_and_the_unit_of_weights_does_not_matter_below_one():
    y = np.array([0, 1, 0, 1, 0, 1])
    # One more error of weight two: two more errors of one kind.
    assert answers(stopping_of(y, np.array([2.0, 1, 1, 1, 1, 1])), [[], [0]], y) == [False, True]
    for weight in (np.ones(6), np.full(6, 1 / 6)):
        assert answers(stopping_of(y, weight), [[], [0], [0, 1]], y) == [False, False, True]


# -- every method stops where an iteration on the other samples has too high an error ---------------------


def losses_on(selector, fit, X, y):
    """Losses of the samples from ``coef_``: wrong classes, wrong pairs of classes, or the loss of a real target."""
    params = selector.get_params()
    decision = X @ np.atleast_2d(fit.coef_).T + np.atleast_1d(fit.intercept_)
    if params.get("task") == "regression":
        name = "hinge" if params.get("norm") == "l1" else params.get("loss", "hinge")
        return svm_loss(name, fit.epsilon_).value(decision[:, 0], y)
    if decision.shape[1] == 1:
        return np.asarray((decision[:, 0] > 0.0) != y, dtype=float)
    if params["multi_class"] == "one_vs_one":
        is_wrong = [
            ((y == second) & (decision[:, k] <= 0.0)) | ((y == first) & (decision[:, k] >= 0.0))
            for k, (first, second) in enumerate(combinations(range(3), 2))
        ]
        return np.sum(is_wrong, axis=0) / 2.0
    return np.asarray(decision.argmax(axis=1) != y, dtype=float)


def last_accepted(selector, X, y, held):
    """The iterate before the first whose error is too high, and the errors, by fits ended by ``max_iter``."""
    best, before, errors = None, None, []
    for limit in range(1, 300):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = clone(selector).set_params(max_iter=limit).fit(X[~held], y[~held])
        losses = losses_on(selector, fit, X[held], y[held])
        errors.append(losses.mean())
        worse = losses - (losses if best is None else best)
        if worse.sum() > (1.0 + 1e-9) * np.sqrt((worse**2).sum()):
            return before, errors
        best = losses if best is None or worse.sum() < 0.0 else best
        if fit.converged_:
            return fit, errors
        before = fit
    raise AssertionError("the iteration did not end")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", METHODS)
def test_the_iteration_ends_before_the_error_is_too_high(name, seed):
    selector = clone(METHODS[name]).set_params(standardize=False)
    if not isinstance(selector, FSV):  # fewer iterations, which the fits one by one repeat
        selector.set_params(zero_tol=0.05, tol=0.05)
    X, y, score = dense_signal(3 if "classes" in name else 2, seed=seed)
    y, task = (
        (score, "regression") if "real" in name else (y, "multiclass" if "classes" in name else "binary")
    )
    held = held_out_samples(problem_of(y, X, task), FRACTION)
    expected, errors = last_accepted(selector, X, y, held)
    found = clone(selector).set_params(validation_fraction=FRACTION).fit(X, y)
    np.testing.assert_allclose(found.validation_errors_, errors, rtol=1e-6, atol=1e-9)
    assert found.converged_
    np.testing.assert_array_equal(found.support_, expected.support_)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-6)


def test_some_of_these_iterations_end_early_and_keep_more_features():
    ended = kept = 0
    for seed in range(6):
        X, y, _ = dense_signal(n=60, p=40, seed=seed)
        early, whole = (AROM(C=1.0, start="equal", validation_fraction=f).fit(X, y) for f in (FRACTION, None))
        ended += early.n_iter_ < whole.n_iter_
        kept += early.n_features_ > whole.n_features_
    assert ended >= 3
    assert kept >= 3


def test_models_with_factors_of_their_own_are_stopped_one_by_one():
    y = np.arange(12) % 3
    stopping = EarlyStopping(
        problem_of(y, np.eye(12), "multiclass", classes=np.arange(3)), HingeLoss(), "coupled"
    )
    right = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    for index in range(3):
        alone = right[:, [index]].copy()
        assert not stopping.stops(slice(None), alone, np.zeros(1), index)
        alone[:2] *= -1.0
        assert stopping.stops(slice(None), alone, np.zeros(1), index)
    X, y, _ = dense_signal(3)
    found = AROM(C=1.0, multi_class="uncoupled", validation_fraction=FRACTION).fit(X, y)
    assert found.validation_errors_.size > 3
    assert found.coef_.shape == (3, X.shape[1])


# -- what the user sees -----------------------------------------------------------------------------------

SELECTORS = [AROM(C=1.0), ZeroNormSVM(C=1.0), FSV(sparsity=0.02)]


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_groups_reach_the_division(selector, monkeypatch):
    X, y, _ = dense_signal(n=60)
    groups = np.arange(60) // 6
    seen = []
    plain = EarlyStopping.__init__

    def noted(self, held_out, *others):
        seen.append(held_out.sample_groups)
        plain(self, held_out, *others)

    monkeypatch.setattr(EarlyStopping, "__init__", noted)
    clone(selector).set_params(validation_fraction=FRACTION).fit(X, y, groups=groups)
    assert all(np.count_nonzero(seen[0] == group) == 6 for group in np.unique(seen[0]))


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda s: type(s).__name__)
def test_too_few_samples_are_refused(selector):
    X, y = np.random.default_rng(0).normal(size=(6, 3)), np.array([0, 0, 0, 0, 0, 1])
    for fraction, found in (
        (0.5, "leaves 3 samples, not of every class, and 3 instead"),
        (0.1, "and 0 instead"),
    ):
        with pytest.raises(ValueError, match=found):
            clone(selector).set_params(validation_fraction=fraction).fit(X, y)
    with pytest.raises(ValueError, match="'validation_fraction' parameter of"):
        clone(selector).set_params(validation_fraction=1.0).fit(X, y)


def test_the_largest_weight_has_no_iteration_to_stop():
    X, y, _ = dense_signal()
    with pytest.raises(
        ValueError, match="'validation_fraction' parameter of ZeroNormSVM must be None with q=inf"
    ):
        ZeroNormSVM(q=np.inf, validation_fraction=0.2).fit(X, y)
