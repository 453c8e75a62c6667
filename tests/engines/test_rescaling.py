"""The rescaling engine against literal versions of the papers' iterations, and its path."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from oracles.qp import PRECISE
from zeronorm import AROM, ZeroNormSVM
from zeronorm.design import as_design
from zeronorm.engines.rescaling._between import SlackRescaling
from zeronorm.engines.rescaling._iteration import (
    UnitFactors,
    correlated_start,
    multiplicative,
    power_rule,
    rescale_until_sparse,
)
from zeronorm.engines.rescaling._models import RescaledModels
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Multiclass, Real
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import LinearProblem, Reuse, Way, choose, svm_loss
from zeronorm.solvers.linear import _ways as ways
from zeronorm.solvers.svm._dual import solve_svm_dual


def noisy(n=40, p=30, *, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    score = X[:, 0] + 0.7 * X[:, 1] + noise * rng.normal(size=n)
    return X, np.where(score > np.median(score), 1.0, -1.0)


def run(model, X, rule=multiplicative, **settings):
    settings = {"zero_tol": 1e-3, "tol": 1e-3, "max_iter": 300} | settings
    return rescale_until_sparse(model, as_design(X), np.arange(X.shape[1]), rule, **settings)


def model_for(y, C, loss="hinge", way=Way.GRAM, between=None):
    problem = LinearProblem(svm_loss(loss), y[:, None], np.full((y.size, 1), C))
    return RescaledModels(problem, between, way=way)


# -- equal iterations -------------------------------------------------------------------------------------


def reweighted_qp(X, y, C, q, n_steps):
    """Paper 003, eqs. 7-9, literally: C Σξ + w'Λw with Λ = |w|^-(2-q) of the iterate before."""
    p = X.shape[1]
    penalty = np.ones(p)
    for _ in range(n_steps):
        w, b = cp.Variable(p), cp.Variable()
        slack = cp.pos(1 - cp.multiply(y, X @ w + b))
        objective = C * cp.sum(slack) + cp.sum(cp.multiply(penalty, cp.square(w)))
        cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL, **PRECISE)
        penalty = np.abs(w.value) ** -(2.0 - q)
    return np.abs(w.value)


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0, 2.0])
def test_the_engine_solves_the_reweighted_programs(q):
    X, y = noisy(30, 6)
    n_steps = 1 if q == 2.0 else 3
    result = run(model_for(y, 2.0), X, power_rule(q), zero_tol=0.0, max_iter=n_steps)
    expected = reweighted_qp(X, y, 4.0, q, n_steps)
    np.testing.assert_allclose(result.iterates[-1][1], expected, rtol=1e-3, atol=1e-5)


def test_the_engine_rescales_the_data_as_arom_does():
    """Paper 001: an ordinary SVM on x * z, then z ← z * |w|."""
    X, y = noisy(40, 100)
    z = np.ones(100)
    for _ in range(4):
        w = SVC(kernel="linear", C=3.0, tol=1e-9).fit(X * z, y).coef_[0]
        z = z * np.abs(w)
    result = run(model_for(y, 3.0), X, zero_tol=0.0, max_iter=4)
    np.testing.assert_allclose(result.iterates[-1][1], z, atol=1e-5 * z.max())


def test_the_zero_norm_svm_is_arom_with_hinge_slacks_at_half_the_cost():
    X, y = noisy(40, 100)
    direct = run(model_for(y, 4.0), X)
    selector = ZeroNormSVM(C=8.0, standardize=False, scaling="paper").fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(selector.coef_[0]), direct.trained)
    assert [s.tolist() for s in selector.path_.subsets] == [s.tolist() for s in direct.path().subsets]
    # Without slacks the two losses coincide, and so do the two methods.
    zero_norm = ZeroNormSVM(C=np.inf, standardize=False).fit(X, y)
    arom = AROM(C=np.inf, standardize=False).fit(X, y)
    np.testing.assert_allclose(zero_norm.coef_, arom.coef_, atol=1e-6)


def test_the_rules():
    scale, abs_weight = np.array([0.5, 2.0]), np.array([3.0, 0.1])
    np.testing.assert_allclose(power_rule(0.0)(scale, abs_weight), multiplicative(scale, abs_weight))
    np.testing.assert_allclose(power_rule(2.0)(scale, abs_weight), 1.0)
    np.testing.assert_allclose(power_rule(1.0)(scale, abs_weight), np.sqrt([1.5, 0.2]))


class OneFeatureKernels:
    """Paper 004: s_i² = ΣΣ α_k α_l y_k y_l K(x_ki, x_li), for the linear kernel of each rescaled feature."""

    status = Status.CONVERGED
    settled = True

    def __init__(self, y, C):
        self.y, self.C = y, C

    def train(self, design, scale):
        X = design.block(np.arange(scale.size)) * scale
        v = solve_svm_dual(X @ X.T, self.y, C=self.C, tol=1e-8).dual_coef
        return np.sqrt([v @ np.outer(x, x) @ v for x in X.T])

    def keep(self, kept):
        pass


def test_the_kernel_multiplicative_update_with_a_linear_kernel_is_the_same_iteration():
    X, y = noisy(40, 60)
    kernel = run(OneFeatureKernels(y, 5.0), X)
    linear = run(model_for(y, 5.0), X)
    assert [s.tolist() for s, _ in kernel.iterates] == [s.tolist() for s, _ in linear.iterates]
    np.testing.assert_allclose(kernel.iterates[-1][1], linear.iterates[-1][1], rtol=1e-4)


# -- properties of the iteration --------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.0, 0.5, 1.0])
def test_the_objective_never_rises(q):
    """Each model minimises a bound on C Σξ + 2 Σ ln|w| (q = 0) or C Σξ + (2/q) Σ|w|^q."""
    X, y = noisy(60, 8, noise=1.0)
    values = []
    for n_steps in range(1, 7):
        model = model_for(y, 2.5)
        run(model, X, power_rule(q), zero_tol=0.0, max_iter=n_steps)
        w = model.weights[:, 0]
        slack = np.maximum(0.0, 1.0 - y * (X @ w + model.bias[0]))
        size = 2.0 * np.log(np.abs(w)).sum() if q == 0.0 else 2.0 / q * (np.abs(w) ** q).sum()
        values.append(5.0 * slack.sum() + size)
    assert np.all(np.diff(values) <= 1e-6 * np.abs(values[:-1]))
    assert values[-1] < values[0] - 1e-3


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_primal_and_dual_models_agree(loss):
    X, y = noisy(120, 12, noise=1.0)
    dual = run(model_for(y, 2.0, loss), X)
    primal = run(model_for(y, 2.0, loss, Way.PRIMAL), X)
    assert [s.tolist() for s, _ in dual.iterates] == [s.tolist() for s, _ in primal.iterates]
    np.testing.assert_allclose(dual.iterates[-1][1], primal.iterates[-1][1], rtol=1e-3)


@pytest.mark.parametrize(("loss", "few", "n_iter"), [("hinge", 45, 25), ("squared", 200, 8)])
def test_the_solver_changes_when_fewer_features_than_samples_are_left(loss, few, n_iter, monkeypatch):
    monkeypatch.setattr(ways, "FEW_SAMPLES_NEAR", 256)
    X, y = noisy(280, 320, noise=1.0)
    model = model_for(y, 2.0, loss, way=None)
    assert choose(svm_loss(loss), "l2", (280, 320), Reuse.NEAR) is Way.GRAM
    assert choose(svm_loss(loss), "l2", (280, few), Reuse.NEAR) is Way.PRIMAL
    adaptive, dual = run(model, X, max_iter=n_iter), run(model_for(y, 2.0, loss), X, max_iter=n_iter)
    assert adaptive.iterates[-1][0].size < few
    assert [s.tolist() for s, _ in adaptive.iterates] == [s.tolist() for s, _ in dual.iterates]
    np.testing.assert_allclose(adaptive.iterates[-1][1], dual.iterates[-1][1], rtol=1e-3)


def test_survivors_of_a_hard_margin_have_unit_weight_on_the_rescaled_data():
    X, y = noisy(40, 200)
    model = model_for(y, np.inf)
    result = run(model, X, tol=1e-6)
    assert result.converged
    u = result.iterates[-1][1] / result.scale[result.active]
    np.testing.assert_allclose(u, 1.0, atol=1e-5)
    assert np.min(y * (X[:, result.trained] @ model.weights[:, 0] + model.bias[0])) > 1.0 - 1e-5


def test_supports_shrink_and_weak_features_are_gone():
    X, y = noisy(40, 200)
    result = run(model_for(y, np.inf), X)
    for (larger, weight), (smaller, _) in zip(result.iterates[:-1], result.iterates[1:], strict=True):
        assert set(smaller) <= set(larger)
        assert weight.min() > 1e-3 * weight.max()


def test_the_iteration_limit_is_reported():
    X, y = noisy(40, 200)
    result = run(model_for(y, np.inf), X, max_iter=2)
    assert not result.converged
    assert result.n_iter == 2
    assert "max_iter" in result.remedy


def test_weights_that_all_shrink_are_reported():
    X, y = noisy(20, 200)
    result = run(model_for(y, 1e-3), X)
    assert not result.converged
    assert "raise C" in result.remedy
    assert result.path().order.size == 200


def test_no_feature_with_any_weight():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [-1.0, 0.5], [-1.0, 0.5]])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    result = run(model_for(y, 1.0), X)
    assert result.iterates == []
    assert result.path().order.tolist() == [0, 1]
    assert np.isfinite(result.path().scores).all()


class LosesItsMargin:
    """A model that separates the data twice, then no more."""

    settled = True

    def __init__(self):
        self.calls = 0

    @property
    def status(self):
        return Status.CONVERGED if self.calls < 3 else Status.UNBOUNDED

    def train(self, design, scale):
        self.calls += 1
        return np.arange(1.0, scale.size + 1.0)

    def keep(self, kept):
        pass


def test_a_hard_margin_that_is_lost_ends_the_run_with_what_was_found():
    result = run(LosesItsMargin(), np.ones((3, 5)))
    assert result.n_iter == 3
    assert len(result.iterates) == 2
    assert result.converged
    assert result.path().order.tolist() == [4, 3, 2, 1, 0]


def test_rescaled_slacks_single_out_mislabelled_samples():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(1.0, 3.0, 30), rng.uniform(-3.0, -1.0, 30)])
    y = np.sign(x)
    flipped = [4, 17, 44]
    y[flipped] *= -1.0
    rescaled = SlackRescaling(np.ones((60, 1)), 1e-3, 1e-3)
    run(model_for(y, 1.0, "squared", between=rescaled), x[:, None])
    assert np.flatnonzero(rescaled.slack[:, 0] > 1e-2).tolist() == flipped


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_rescaled_slacks_have_settled_when_another_training_changes_no_cost(loss):
    """With changes measured against the largest cost of all, the squared loss ended far from its minimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    y[:2] *= -1
    design, scale = as_design(X), np.ones(2)
    model = model_for(y, 10.0, loss, between=SlackRescaling(np.full((14, 1), 10.0), 1e-3, 1e-3))
    for _ in range(60):
        model.train(design, scale)
        if model.settled:
            break
    assert model.settled
    before = model.problem.costs
    model.train(design, scale)
    np.testing.assert_allclose(model.problem.costs, before, rtol=2e-3)


def test_rescaled_slacks_of_pairs_of_classes_are_numbers():
    """A sample of a third class has no cost in a pair, and its slack does not count."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 6))
    X[:, :3] += 2.0 * np.eye(3)[y]
    selector = AROM(multi_class="one_vs_one", slack_norm=0, C=1.0).fit(X, y)
    assert selector.converged_
    assert selector.get_support(indices=True).tolist() == [0, 1, 2]


# -- factors of unit size ---------------------------------------------------------------------------------


def test_factors_of_unit_size_keep_the_mean_diagonal_of_the_kernel_at_one():
    """The iteration written out: an ordinary SVM on x * z, z ← z * |u|, z divided by its norm."""
    X, y = noisy(40, 100)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    z = np.ones(100) / 10.0
    for _ in range(4):
        assert np.mean(np.sum((X * z) ** 2, axis=1)) == pytest.approx(1.0)
        u = SVC(kernel="linear", C=3.0, tol=1e-9).fit(X * z, y).coef_[0]
        weight = z * np.abs(u)
        z = weight / np.linalg.norm(weight)
    result = run(model_for(y, 3.0), X, zero_tol=0.0, max_iter=4, units=UnitFactors(np.ones(100)))
    np.testing.assert_allclose(result.iterates[-1][1], weight, atol=1e-5 * weight.max())


@pytest.mark.parametrize("selector", [AROM(C=0.5), AROM(C=0.5, norm="l1"), ZeroNormSVM(C=0.5)], ids=repr)
def test_the_unit_of_the_columns_does_not_matter_though_they_are_not_standardised(selector):
    X, y = noisy(30, 80)
    small = clone(selector).set_params(standardize=False).fit(X, y)
    large = clone(selector).set_params(standardize=False).fit(1e4 * X, y)
    assert small.path_.order.tolist() == large.path_.order.tolist()
    np.testing.assert_allclose(large.coef_, 1e-4 * small.coef_, rtol=1e-4, atol=1e-9)


def test_copies_of_all_columns_as_separate_features_leave_the_cost_as_it_is():
    """With a slightly disturbed copy of each column, the first model has the same decisions as with one of each."""
    X, y = noisy(30, 40)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    once = run(model_for(y, 0.5), X, max_iter=1, zero_tol=0.0, units=UnitFactors(np.ones(40)))
    twice = run(
        model_for(y, 0.5), np.hstack([X, X]), max_iter=1, zero_tol=0.0, units=UnitFactors(np.ones(80))
    )
    np.testing.assert_allclose(twice.first[:40] + twice.first[40:], once.first, rtol=1e-5)


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("shape", [(20, 100), (30, 3000), (60, 20_000), (200, 300)])
def test_no_cost_lets_all_weights_shrink_to_zero(C, shape):
    """Label noise and an outlier of a thousand standard deviations; a warning would be an error."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    y = np.where(X[:, :3].sum(axis=1) > 0.0, 1, 0)
    y[: shape[0] // 8] = rng.integers(0, 2, size=shape[0] // 8)
    X[3, 5] = 1e3
    for selector in (AROM(5, C=C), ZeroNormSVM(5, C=C)):
        assert selector.fit(X, y).converged_
        assert np.abs(selector.coef_).max() > 0.0


# -- factors that follow the correlations at the start ------------------------------------------------------


@pytest.mark.parametrize("standardize", [True, False])
def test_the_first_model_sees_features_multiplied_by_their_correlations(standardize):
    X, y = noisy(40, 60)
    X = X * np.geomspace(0.1, 10.0, 60)
    r = np.asarray([np.corrcoef(x, y)[0, 1] for x in X.T])
    z = np.sqrt(r**2 + 1.0 / 40)
    shown = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    settings = {"C": 2.0, "scaling": "paper", "max_iter": 1, "zero_tol": 0.0}
    for method in (AROM, ZeroNormSVM):
        found = method(start="correlation", standardize=standardize, **settings)
        oracle = method(start="equal", standardize=False, **settings)
        with pytest.warns(ConvergenceWarning):
            found.fit(X, y)
        with pytest.warns(ConvergenceWarning):
            oracle.fit(shown * z, y)
        np.testing.assert_allclose(found.coef_, z * oracle.coef_, atol=1e-6 * np.abs(found.coef_).max())


def test_correlations_with_several_targets_are_averaged_and_weights_count_samples():
    X, _ = noisy(45, 12)
    y = np.arange(45) % 3
    weight = np.arange(45) % 2 + 1
    taken = np.repeat(np.arange(45), weight)
    squares = [np.corrcoef(x, y[taken] == c)[0, 1] ** 2 for x in X[taken].T for c in range(3)]
    expected = np.sqrt(np.reshape(squares, (12, 3)).mean(axis=1) + 1.0 / taken.size)
    problem = Problem(as_design(X), Multiclass(y, np.arange(3)), sample_weight=weight.astype(float))
    np.testing.assert_allclose(correlated_start(problem, None), expected, rtol=1e-10)
    by_itself = correlated_start(problem, None, model=1)
    np.testing.assert_allclose(by_itself, np.sqrt(np.asarray(squares)[1::3] + 1.0 / taken.size), rtol=1e-10)


def test_a_constant_column_and_a_target_without_scale_have_no_correlation():
    X = np.column_stack([np.ones(10), np.arange(10.0)])
    problem = Problem(as_design(X), Real(np.full(10, 3.0)))
    np.testing.assert_allclose(correlated_start(problem, None), np.sqrt(0.1))


@pytest.mark.parametrize(
    ("selector", "start"),
    [
        (AROM(), "correlation"),
        (AROM(C=0.5), "correlation"),
        (AROM(scaling="paper", C=50.0), "equal"),
        (AROM(C=np.inf), "equal"),
        (AROM(norm="l1"), "equal"),
        (ZeroNormSVM(), "correlation"),
        (ZeroNormSVM(scaling="paper", C=50.0), "equal"),
        (ZeroNormSVM(C=np.inf), "equal"),
        (ZeroNormSVM(q=0.99), "correlation"),
        (ZeroNormSVM(q=1.0), "equal"),
        (ZeroNormSVM(loss="probit"), "equal"),
    ],
    ids=repr,
)
def test_which_start_is_chosen(selector, start):
    X, y = noisy(30, 40)
    chosen = clone(selector).fit(X, y).scores_
    for name in ("correlation", "equal"):
        asked = clone(selector).set_params(start=name).fit(X, y).scores_
        assert np.array_equal(chosen, asked) == (name == start)


@pytest.mark.parametrize("method", [AROM, ZeroNormSVM])
def test_a_feature_without_a_correlation_of_its_own_is_found(method):
    """The second column is the noise in the first, and has no correlation with the target."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        signal, noise = rng.normal(size=100), 2.0 * rng.normal(size=100)
        X = np.column_stack([signal + noise, noise, rng.normal(size=(100, 48))])
        selector = method(2).fit(X, signal > 0.0)
        assert np.flatnonzero(selector.support_).tolist() == [0, 1]
