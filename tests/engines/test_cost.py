"""The automatic C: against regressions fitted one by one, its invariances, and every selector that has it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge

from zeronorm import AROM, L1SVM, RFE, KernelMultiplicativeUpdate, SVMWeights, ZeroNormSVM
from zeronorm.design import as_design
from zeronorm.engines import _by_content
from zeronorm.engines import _cost as cost
from zeronorm.engines._cost import (
    NEARLY,
    UNIT_COSTS,
    automatic_C,
    automatic_l1_C,
    nearly_best_l1_costs,
    without_outliers,
)
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import KINDS, Binary, Real

SELECTORS = [
    AROM(),
    AROM(norm="l1"),
    ZeroNormSVM(),
    L1SVM(),
    SVMWeights(),
    SVMWeights(norm="l1"),
    KernelMultiplicativeUpdate(),
    KernelMultiplicativeUpdate(kernel="linear"),
    RFE(C="auto"),
    RFE(C="auto", kernel="rbf", step=0.2),
    RFE(C="auto", learner="logistic", step=0.2),
]


def classes(n=40, p=60, *, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    score = X[:, 0] - X[:, 1] + noise * rng.normal(size=n)
    return X, (score > 0.0).astype(int)


def problem_of(X, y, task="binary", **fields):
    classes = None if task == "regression" else np.array([0, 1])
    return Problem(as_design(X), KINDS[task](y, classes), **fields)


# -- the criterion ----------------------------------------------------------------------------------------


def ridge_predictions(X, y, alpha, others):
    """As scikit-learn's Ridge, whose checks of the data take ten times as long as these equations."""
    centred = X - X.mean(axis=0)
    dual = np.linalg.solve(centred @ centred.T + alpha * np.eye(len(y)), y - y.mean())
    return (others - X.mean(axis=0)) @ (centred.T @ dual) + y.mean()


def test_the_oracle_is_ridge_regression():
    X, y = classes(21, 50)
    expected = Ridge(alpha=2.0).fit(X[5:], y[5:]).predict(X[:5])
    np.testing.assert_allclose(ridge_predictions(X[5:], y[5:], 2.0, X[:5]), expected)


@pytest.mark.parametrize("groups", [None, 3])
@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("shape", [(21, 50), (24, 6)])
def test_the_choice_is_that_of_ridge_regressions_without_each_sample_or_group(shape, noise, groups):
    X, y = classes(*shape, noise=noise)
    n = len(y)
    patient = np.arange(n) if groups is None else np.arange(n) // groups
    target = (y - y.mean()) / y.std()
    diagonal = float(np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1)))
    losses = []
    for C in UNIT_COSTS:
        left_out = np.empty(n)
        for one in np.unique(patient):
            known = patient != one
            left_out[~known] = ridge_predictions(X[known], target[known], diagonal / C, X[~known])
        slope, offset = np.polyfit(left_out, target, 1)  # the best common factor for the decision values
        if slope < 0.0:
            slope, offset = 0.0, 0.0
        losses.append((target - slope * left_out - offset) ** 2)
    means = np.mean(losses, axis=1)
    best = int(np.argmin(means))
    good = means <= means[best] + NEARLY * np.std(losses[best]) / np.sqrt(n)
    found = automatic_C(problem_of(X, y, sample_groups=None if groups is None else patient))
    assert found.unit == pytest.approx(UNIT_COSTS[np.flatnonzero(good)[0]])
    assert found.diagonal == pytest.approx(diagonal)


def test_wide_and_tall_ways_agree():
    X, y = classes(40, 39)
    tall, wide = (automatic_C(problem_of(Z, y)) for Z in (X, np.hstack([X, np.zeros((40, 5))])))
    assert tall.unit == wide.unit
    assert tall.diagonal == pytest.approx(wide.diagonal)


def test_a_weight_of_two_is_a_doubled_sample():
    X, y = classes(30, 50)
    weight = np.ones(30)
    weight[:10] = 2.0
    doubled = problem_of(np.vstack([X, X[:10]]), np.concatenate([y, y[:10]]))
    weighted = problem_of(X, y, sample_weight=weight)
    assert automatic_C(doubled).raw == pytest.approx(automatic_C(weighted).raw)
    assert automatic_l1_C(doubled, None) == pytest.approx(automatic_l1_C(weighted, None))


def test_the_path_of_a_regression_starts_at_the_median_of_the_weighted_targets():
    X, _ = classes(30)
    y = X[:, 0] + np.arange(30.0)
    weight = np.where(y > 20.0, 3.0, 1.0)
    doubled = problem_of(
        np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int)), task="regression"
    )
    weighted = problem_of(X, y, sample_weight=weight, task="regression")
    np.testing.assert_allclose(cost.l1_path(weighted, 4), cost.l1_path(doubled, 4), rtol=1e-12)
    chosen = L1SVM(task="regression").fit(X, y, sample_weight=weight).C_
    expected = L1SVM(task="regression").fit(doubled.design.block(slice(None)), doubled.y).C_
    assert chosen == pytest.approx(expected)


def test_weights_that_sum_to_one_change_nothing_but_the_unit_of_the_cost():
    X, y = classes(30, 50)
    plain, weighted = (automatic_C(problem_of(X, y, sample_weight=w)) for w in (None, np.full(30, 1 / 30)))
    assert weighted.unit / 30.0 == pytest.approx(plain.unit)


def test_order_of_samples_and_columns_and_units_do_not_matter():
    X, y = classes(40, 60)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(40), rng.permutation(60)
    signs = rng.choice([-1.0, 1.0], size=60)
    plain, shuffled = problem_of(X, y), problem_of((X * signs)[rows][:, columns], y[rows])
    assert automatic_C(plain).unit == pytest.approx(automatic_C(shuffled).unit)
    assert automatic_l1_C(plain, None) == pytest.approx(automatic_l1_C(shuffled, None))
    assert automatic_C(problem_of(1e5 * X, y)).unit == pytest.approx(automatic_C(plain).unit)


@pytest.mark.parametrize("noise", [0.2, 8.0])
def test_costs_beyond_a_bad_one_are_not_tried_and_the_choice_is_the_same(monkeypatch, noise):
    problem = problem_of(*classes(100, 50, noise=noise))
    tried, real = [], cost._LeftOut.loss

    def counted(self, C):
        tried.append(C)
        return real(self, C)

    monkeypatch.setattr(cost._LeftOut, "loss", counted)
    found, n_tried = automatic_l1_C(problem, None), len(tried)
    tried.clear()
    monkeypatch.setattr(cost, "_is_beyond_the_best", lambda loss, error: False)
    assert automatic_l1_C(problem, None) == found
    assert len(tried) == 3 * 10
    assert n_tried < len(tried)


def test_a_search_does_not_end_while_no_feature_lowers_the_loss():
    """One-against-rest models without features: every sample has the same loss, with a standard error of zero."""

    def ended(loss, error):
        return cost._is_beyond_the_best(np.asarray(loss), np.asarray(error))

    assert not ended([2.0, 2.0 + 1e-12], [0.0, 0.0])
    assert not ended([2.0, 2.0, 2.1], [0.0, 0.0, 0.2])
    assert ended([2.0, 2.0, 2.3], [0.0, 0.0, 0.2])
    assert not ended([2.0, 1.5, 1.4], [0.0, 0.1, 0.1])
    assert ended([2.0, 1.5, 1.51], [0.0, 0.1, 0.1])
    assert not ended([2.0, 1.95, 1.96], [0.0, 0.1, 0.1])


def test_clean_labels_get_a_higher_cost_than_noisy_ones():
    def mean_cost(noise):
        found = []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(100, 20)) + 3.0 * rng.normal(size=(100, 1))  # strong common noise
            y = (X[:, 0] - X[:, 1] + noise * rng.normal(size=100) > 0.0).astype(int)
            found.append(np.log(automatic_C(problem_of(X, y)).unit))
        return np.mean(found)

    assert mean_cost(0.0) > mean_cost(4.0) + 1.0


def test_of_very_many_samples_a_subsample_is_used():
    X, y = classes(2500, 1200, noise=1.0)
    cost = automatic_C(problem_of(X, y))
    assert UNIT_COSTS[0] <= cost.unit <= UNIT_COSTS[-1]
    assert cost.diagonal == pytest.approx(1200.0, rel=0.05)


def test_a_subsample_chooses_the_cost_that_all_samples_would_choose_for_the_l1_norm(monkeypatch):
    """It decreases with the root of the number of samples."""
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1200, 40))
        problem = problem_of(X, X[:, :5].sum(axis=1) + 2.0 * rng.normal(size=1200) > 0.0)
        found = []
        for largest in (100, 10_000):
            monkeypatch.setattr("zeronorm.engines._cost.LARGEST_PROGRAM", largest)
            found.append(nearly_best_l1_costs(problem, None)[0])
        ratios.append(np.log(found[0] / found[1]))
    one_step = np.log(1e3) / 9.0
    assert abs(np.mean(ratios)) < one_step


def test_the_scale_of_a_target_is_robust_and_has_its_unit():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    X = np.ones((400, 1))
    scale = problem_of(X, y, task="regression").target.unit()
    assert scale == pytest.approx(1.0, abs=0.15)
    y[0] = 1e6
    assert problem_of(X, y, task="regression").target.unit() == pytest.approx(scale, rel=0.02)
    assert problem_of(X, 1e3 * y, task="regression").target.unit() == pytest.approx(1e3 * scale, rel=0.02)
    assert problem_of(X, np.zeros(400), task="regression").target.unit() == 1.0


# -- in the selectors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_the_chosen_cost_is_reported_and_gives_the_same_model(selector):
    X, y = classes(50, 40, noise=0.2)
    automatic = clone(selector).fit(X, y)
    fixed = clone(selector).set_params(C=automatic.C_)
    fixed.fit(X, y)
    if isinstance(selector, L1SVM):  # which continues its path beyond C, for larger sizes
        np.testing.assert_allclose(fixed.coef_, automatic.coef_, atol=1e-6)
    elif not (isinstance(selector, RFE) and selector.kernel == "linear"):  # whose C grows as features leave
        assert fixed.path_.order.tolist() == automatic.path_.order.tolist()
    assert fixed.C_ == automatic.C_
    assert {0, 1} == set(automatic.path_.order[:2].tolist())


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_wrong_costs_are_explained(selector):
    X, y = classes()
    for wrong in ("best", -1.0):
        with pytest.raises(ValueError, match=r"'C' parameter of .* must be .*'auto'"):
            clone(selector).set_params(C=wrong).fit(X, y)


@pytest.mark.parametrize(
    "selector", [AROM(), AROM(norm="l1"), L1SVM(), SVMWeights(), SVMWeights(norm="l1")], ids=repr
)
@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_the_unit_of_a_regression_target_does_not_matter(selector, unit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    y = 2.0 * X[:, 3] - X[:, 7] + 0.3 * rng.normal(size=60)
    plain, other = (clone(selector).set_params(task="regression").fit(X, u * y) for u in (1.0, unit))
    assert plain.support_.tolist() == other.support_.tolist()
    assert other.epsilon_ == pytest.approx(unit * plain.epsilon_)
    assert set(plain.path_.order[:2].tolist()) == {3, 7}


@pytest.mark.parametrize("selector", [AROM(), ZeroNormSVM(), AROM(norm="switch")], ids=repr)
@pytest.mark.parametrize("shape", [(20, 100), (60, 5000), (200, 400)])
@pytest.mark.parametrize("kind", ["noise", "outlier", "one-hot"])
def test_no_collapse_with_the_defaults(selector, shape, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    y = np.where(X[:, :3].sum(axis=1) > 0.0, 1, 0)
    if kind == "noise":
        y = rng.permutation(y)
    if kind == "outlier":
        X[3, 5] = 1e6
    if kind == "one-hot":
        level = rng.integers(0, 4, size=shape[0])
        X[:, 10:14] = level[:, None] == np.arange(4)
        X[:, 14] = X[:, 13] == 0.0
    fitted = clone(selector).fit(X, y)
    assert fitted.converged_
    assert np.abs(fitted.coef_).max() > 0.0


def test_distances_of_sparse_samples_are_those_of_dense_ones(monkeypatch):
    """The subsample and the folds depend on distances that sparse columns give without dense blocks."""
    monkeypatch.setattr(_by_content, "SPARSE_COLUMNS", 3)
    X = np.random.default_rng(0).poisson(0.4, size=(30, 8)).astype(float)
    y = np.arange(30) % 2
    dense = replace(problem_of(X, y), design=as_design(X).standardized())
    spared = replace(dense, design=as_design(sparse.csr_array(X)).standardized())
    np.testing.assert_allclose(
        _by_content.squared_distances(spared), _by_content.squared_distances(dense), rtol=1e-12
    )
    np.testing.assert_array_equal(_by_content.turns_by_content(spared), _by_content.turns_by_content(dense))


def test_a_cost_is_found_once_for_the_same_view_target_weights_and_groups(monkeypatch):
    rng = np.random.default_rng(3)
    design = as_design(rng.normal(size=(24, 5))).standardized()
    searched = []
    find = cost._automatic_C
    monkeypatch.setattr(cost, "_automatic_C", lambda *args: searched.append(args) or find(*args))
    y = rng.normal(size=24)
    plain = Problem(design=design, target=Real(y))
    assert automatic_C(plain) is automatic_C(replace(plain, target=Real(y.copy())))
    assert len(searched) == 1
    others = [
        replace(plain, target=Real(y[::-1])),
        replace(plain, target=Binary(np.arange(24) % 2)),
        replace(plain, sample_weight=np.arange(1.0, 25.0)),
        replace(plain, sample_groups=np.arange(24) // 2),
        replace(plain, design=design.take_rows(np.arange(24))),
    ]
    for other in others:
        known = automatic_C(other)
        assert known == find(other, None)
    assert len(searched) == 1 + len(others)
    automatic_C(plain, design.gram())  # nothing is cached for a given kernel
    automatic_C(plain, design.gram())
    assert len(searched) == 3 + len(others)


# -- outliers in y and robust losses ----------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["huber", "quantile"])
def test_outliers_in_y_do_not_lower_the_cost_of_robust_losses(loss):
    """Leave-one-out squares of five outliers in 40 samples would take the smallest C, and AROM the wrong features."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 20))
        y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=40)
        costs = []
        for size in (50.0, 1e7):
            fit = AROM(2, loss=loss, task="regression").fit(X, np.where(np.arange(40) < 5, size, y))
            assert fit.get_support(indices=True).tolist() == [0, 1]
            costs.append(fit.C_)
        assert costs[0] == pytest.approx(costs[1])


def test_without_outliers_targets_stay_as_they_are():
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.linspace(-1.0, 1.0, 30)
    problem = problem_of(X, y, "regression")
    np.testing.assert_array_equal(without_outliers(AROM(loss="huber"), problem).y, y)
    far = problem_of(X, np.append(y[:-1], 99.0), "regression")
    found = without_outliers(AROM(loss="quantile"), far).y
    np.testing.assert_array_equal(found[:-1], y[:-1])
    assert 1.0 < found[-1] < 5.0
    assert without_outliers(AROM(), far) is far
