"""RadiusMarginScaling: the convex special case, the nonlinear toy, discarding, several classes, bad input."""

from __future__ import annotations

import itertools
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import zeronorm
from small_problems import noise, problem_of
from zeronorm import AdaptiveScaling, FisherScore, MarginLP, RadiusMarginScaling
from zeronorm.criteria import RadiusMargin, RBFKernel, Summed
from zeronorm.datasets._generators import make_nonlinear_toy


def data(seed=0, n=30, p=20):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, 3] += 2.0 * y
    X[:, 7] -= 1.5 * y
    return StandardScaler().fit_transform(X), y


def pairs_found(seeds, **parameters):
    found = 0
    for seed in seeds:
        toy = make_nonlinear_toy(150, random_state=seed)
        s = RadiusMarginScaling(2, **parameters).fit(toy.X, toy.y)
        found += set(s.path_.order[:2].tolist()) == {0, 1}
    return found


# -- the optimum ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_linear_variance_with_a_hard_margin_is_the_linear_program(seed):
    X, y = data(seed, n=24, p=40)
    s = RadiusMarginScaling(kernel="linear", C=np.inf, step=None, tol=1e-5, max_iter=5000).fit(X, y)
    program = MarginLP(C=np.inf).fit(X, y)
    # R² = Σσ² and W² = Σ w²/σ², smallest at ‖w‖₁² with σ² proportional to |w|.
    assert s.objective_ == pytest.approx(np.abs(program.coef_).sum() ** 2, rel=1e-4)
    assert s.scale_**2 / 40 == pytest.approx(program.scale_**2, abs=0.01)


@pytest.mark.parametrize("bound", ["variance", "radius", "span", "validation"])
@pytest.mark.parametrize("constraint", ["sum", "box"])
def test_factors_satisfy_the_constraint_and_lower_the_criterion(bound, constraint):
    X, y = data(1)
    few, many = (
        RadiusMarginScaling(bound=bound, constraint=constraint, step=None, tol=tol).fit(X, y)
        for tol in (1e6, 1e-3)
    )
    assert np.allclose(few.scale_, 1.0)  # a tolerance this loose is met at the start
    assert many.objective_ < 0.95 * few.objective_
    if constraint == "sum":
        assert (many.scale_**2).sum() == pytest.approx(20.0)
    else:
        assert many.scale_.min() >= 0.0
        assert many.scale_.max() <= 1.0
    assert set(many.path_.order[:2].tolist()) == {3, 7}


def test_objective_is_the_criterion_at_the_factors():
    X, y = data(2)
    s = RadiusMarginScaling(bound="radius", C=3.0, gamma=0.1).fit(X, y)
    Z = X * s.scale_
    K = RBFKernel(0.1).matrix(Z @ Z.T)
    bound = RadiusMargin(3.0, "radius", 1e-10).evaluate(K, 2.0 * y - 1.0)
    assert s.objective_ == pytest.approx(bound.value, rel=1e-6)


# -- the nonlinear toy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, {"bound": "radius"}, {"constraint": "box"}], ids=repr)
def test_pair_of_the_nonlinear_toy(parameters):
    assert pairs_found(range(3), **parameters) == 3


def test_single_feature_scores_miss_the_pair():
    orders = [
        FisherScore(2).fit(*make_nonlinear_toy(150, random_state=seed)[:2]).path_.order for seed in range(5)
    ]
    assert sum(set(order[:2].tolist()) == {0, 1} for order in orders) <= 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:RadiusMarginScaling did not converge")  # kinks of the span estimate
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"bound": "radius"},
        {"bound": "span"},
        {"kernel": "poly"},
        {"discard": "removal"},
        {"discard": "curvature"},
    ],
    ids=repr,
)
def test_pair_of_the_nonlinear_toy_in_thirty_draws(parameters):
    assert pairs_found(range(100, 130), **parameters) >= 26  # 85 % of 30


# -- discarding -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("discard", ["scale", "removal", "curvature"])
def test_discarding_halves_the_features_down_to_one(discard):
    X, y = data(3)
    s = RadiusMarginScaling(discard=discard).fit(X, y)
    sizes = s.path_.sizes.tolist()
    assert sizes[0] == 1
    assert sizes[-1] == s.path_.selected_size
    assert all(small <= (large + 1) // 2 for small, large in itertools.pairwise(sizes))
    assert set(s.path_.order[:2].tolist()) == {3, 7}
    assert s.path_.objective.size == len(sizes)


def test_the_rule_decides_which_feature_is_discarded_first():
    X, y = data(4, p=8)
    orders = {
        rule: RadiusMarginScaling(discard=rule, constraint="box", C=100.0, step=1)
        .fit(X, y)
        .path_.order.tolist()
        for rule in ("scale", "removal", "curvature")
    }
    assert len({tuple(order) for order in orders.values()}) > 1
    s = RadiusMarginScaling(discard="removal", constraint="box", C=100.0, step=None).fit(X, y)
    active = np.flatnonzero(s.scale_ > 1e-3 * s.scale_.max())
    values = []
    for k in active:
        Z = np.delete(X * s.scale_, k, axis=1)
        K = RBFKernel(1 / 8).matrix(Z @ Z.T)
        values.append(Summed(RadiusMargin(100.0, "variance")).evaluate(K, (2.0 * y - 1.0)[:, None]).value)
    assert s.path_.order[: active.size].tolist() == active[np.argsort(-np.array(values))].tolist()


def test_hard_margin_stops_discarding_where_the_classes_overlap():
    rng = np.random.default_rng(5)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 30)) + 0.3 * y[:, None]
    s = RadiusMarginScaling(kernel="linear", C=np.inf, step=1).fit(X, y)
    smallest = int(s.path_.sizes[0])
    assert smallest > 1
    with pytest.raises(ValueError, match="hard margin"):  # with one feature less the classes overlap
        MarginLP(C=np.inf).fit(X[:, s.path_.support(smallest - 1)], y)
    assert MarginLP(C=np.inf).fit(X[:, s.path_.support(smallest)], y).converged_
    assert sorted(s.path_.order.tolist()) == list(range(30))


# -- several classes, folds -----------------------------------------------------------------------------


def test_several_classes_share_the_factors():
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    X = rng.normal(size=(45, 15))
    X[:, 2] += 2.5 * (y == 0)
    X[:, 9] += 2.5 * (y == 1)
    for kernel in ("linear", "rbf"):
        s = RadiusMarginScaling(2, kernel=kernel).fit(X, y)
        assert np.flatnonzero(s.support_).tolist() == [2, 9]
        assert s.scale_.shape == (15,)


@pytest.mark.parametrize(
    "cv", [2, StratifiedKFold(3), ShuffleSplit(1, test_size=0.4, random_state=0)], ids=repr
)
def test_validation_folds(cv):
    X, y = data(6, n=40)
    s = RadiusMarginScaling(2, bound="validation", cv=cv, tol=0.05).fit(X, y)
    assert {3, 7} & set(np.flatnonzero(s.support_).tolist())
    assert 0.0 <= s.objective_ < 0.5


# -- bad input ------------------------------------------------------------------------------------------


def test_constant_features_get_no_factor():
    X, y = data()
    s = RadiusMarginScaling().fit(np.column_stack([X, np.full(30, 5.0)]), y)
    assert s.scale_[20] == 0.0
    assert s.path_.order[-1] == 20
    flat = RadiusMarginScaling().fit(np.ones((6, 3)), [0, 1, 0, 1, 0, 1])
    assert flat.path_.order.tolist() == [0, 1, 2]
    assert np.all(flat.scale_ == 0.0)


@pytest.mark.parametrize("bound", ["variance", "radius", "span", "validation"])
def test_identical_samples_give_finite_results(bound):
    X = np.tile([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]], (4, 1))
    for standardize in (True, False):
        s = RadiusMarginScaling(1, bound=bound, standardize=standardize, cv=2).fit(
            X, [0, 0, 0, 0, 1, 1, 1, 1]
        )
        assert np.all(np.isfinite(s.scale_))
        assert np.all(np.isfinite(s.scores_))
        assert np.isfinite(s.objective_)


def test_hard_margin_on_identical_samples_is_an_error():
    with pytest.raises(ValueError, match="finite C"):
        RadiusMarginScaling(C=np.inf).fit([[0.0, 1.0], [1.0, 0.0]] * 3, [0, 0, 0, 1, 1, 1])


def test_too_few_steps_are_reported():
    X, y = data()
    with pytest.warns(UserWarning, match="max_iter"):
        s = RadiusMarginScaling(max_iter=1).fit(X, y)
    assert not s.converged_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bound": "leave-one-out"}, "'bound' parameter of RadiusMarginScaling"),
        ({"constraint": "ball"}, "'constraint' parameter"),
        ({"discard": "random"}, "'discard' parameter"),
        ({"discard": "curvature", "bound": "span"}, "'discard' parameter of RadiusMarginScaling must be"),
        ({"step": 0}, "'step' parameter"),
        ({"step": 1.5}, "'step' parameter"),
        ({"C": -1.0}, "'C' parameter"),
        ({"gamma": 0.0}, "'gamma' parameter"),
        ({"kernel": "sigmoid"}, "'kernel' parameter"),
        ({"steepness": 0.0}, "'steepness' parameter"),
        ({"bound": "validation", "cv": KFold(15)}, "'cv' parameter"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        RadiusMarginScaling(**parameters).fit(
            X, np.sort(y) if "cv" not in parameters else np.r_[np.ones(2), np.zeros(28)]
        )


def test_validation_needs_two_samples_of_each_class():
    X, _ = data()
    with pytest.raises(ValueError, match="at least two samples of every class"):
        RadiusMarginScaling(bound="validation").fit(X, np.r_[1, np.zeros(29)])


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("method", [RadiusMarginScaling, AdaptiveScaling])
def test_mirrored_columns_and_complements_get_one_factor(method, kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    X[:, 1] = X[:, 1] > 0.0
    y = (X[:, 0] + 1.5 * X[:, 1] - 0.75 > 0.0).astype(int)
    X[:, 5], X[:, 6] = -X[:, 0], 1.0 - X[:, 1]
    selector = method(2, kernel=kernel).fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [0, 1]
    assert selector.representative_.tolist() == [0, 1, 2, 3, 4, 0, 1, 7]
    assert selector.scale_[[5, 6]].tolist() == [0.0, 0.0]
    assert set(selector.path_.order[-2:].tolist()) == {5, 6}


# -- folds of a validation bound -------------------------------------------------------------------------


def test_folds_of_a_validation_bound_hold_all_classes():
    selector = zeronorm.RadiusMarginScaling(bound="validation", cv=4)
    assert len(selector._splits(problem_of([0, 1] * 4))) == 4
    assert len(selector._splits(problem_of([0, 1, 1, 0, 1, 1]))) == 2  # no more than a class has samples
    with pytest.raises(ValueError, match="Got a class with one sample"):
        selector.fit(noise(4), [0, 1, 1, 1])
    rows = np.arange(4)
    for train, valid, is_right in (
        (rows, rows, True),
        (rows[:2], rows[2:], True),
        (rows[[0, 2]], rows[2:], False),
        (rows, rows[:0], False),
    ):
        own = zeronorm.RadiusMarginScaling(1, bound="validation", cv=[(train, valid)], max_iter=2)
        refused = pytest.raises(ValueError, match="must leave samples of every class")
        with warnings.catch_warnings(), nullcontext() if is_right else refused:
            warnings.simplefilter("ignore")  # two steps do not converge
            own.fit(noise(4), [0, 1, 0, 1])


def test_validation_folds_of_groups_hold_every_class():
    """Eight groups of one class each: of two folds each tests two groups of either class."""
    y, groups = np.repeat(np.arange(8) % 2, 3), np.repeat(np.arange(8), 3)
    X = noise(24)
    for seed in range(6):
        problem = problem_of(
            y, X, classes=np.arange(2), sample_groups=groups, rng=np.random.default_rng(seed)
        )
        splits = zeronorm.RadiusMarginScaling(bound="validation", cv=2)._splits(problem)
        assert len(splits) == 2
        for train, valid in splits:
            assert not set(groups[train]) & set(groups[valid])
            assert np.bincount(y[valid]).tolist() == [6, 6]


def test_for_small_c_the_bound_orders_features_as_the_fisher_score():
    """G = n - 1 + C (n V - (1 - 1/n) y'Ky) + O(C²): its gradient orders features by their correlation with y."""
    rng, n, C = np.random.default_rng(0), 40, 1e-5
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 12)) + 0.4 * y[:, None] * rng.random(12)
    Z, signs = (X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y - 1.0
    found = RadiusMargin(C, "variance").evaluate(Z @ Z.T, signs)
    products = (signs @ Z) ** 2
    assert found.value == pytest.approx(n - 1 + C * (n * 12 - (1 - 1 / n) * products.sum()), abs=1e-5)
    slopes = np.einsum("ik,ij,jk->k", Z, found.gradient, Z)
    np.testing.assert_allclose(slopes / C, n - (1 - 1 / n) * products, rtol=1e-2, atol=0.1)
    np.testing.assert_array_equal(np.argsort(slopes), np.argsort(-FisherScore(3).fit(X, y).scores_))
