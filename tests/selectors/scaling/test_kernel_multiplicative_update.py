"""KernelMultiplicativeUpdate: forms of single features, the linear case, the nonlinear toy, stopping, bad input."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from small_problems import noise
from zeronorm import AROM, KernelMultiplicativeUpdate
from zeronorm.criteria import LinearKernel, PolynomialKernel, RBFKernel, make_kernel
from zeronorm.datasets._generators import make_nonlinear_toy
from zeronorm.design import as_design
from zeronorm.engines.rescaling._iteration import multiplicative, rescale_until_sparse
from zeronorm.engines.rescaling._models import RescaledModels
from zeronorm.selectors.scaling import _kernel_multiplicative_update as kernel_multiplicative_update
from zeronorm.selectors.scaling._kernel_multiplicative_update import (
    SingleFeatureKernels,
    constant_sum_rule,
    rbf_forms,
    single_feature_forms,
)
from zeronorm.solvers.linear import HingeLoss, LinearProblem


def svms(targets, C):
    targets = np.reshape(targets, (len(targets), -1))
    return LinearProblem(HingeLoss(squared=True), targets, np.full(targets.shape, C))


def data(seed=0, n=40, p=60):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[:, 3] += y
    X[:, 7] -= y
    return StandardScaler().fit_transform(X), y


def balanced(seed, n):
    """Coefficients with the sum zero, like those of an SVM."""
    v = np.random.default_rng(seed).normal(size=n)
    return v - v.mean()


# -- the form of one feature ----------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1e-9, 1e-4, 0.03, 1.0, 10.0, 1e4])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_series_and_double_sum_agree_with_long_arithmetic(width, offset):
    x = np.random.default_rng(1).normal(size=80) + offset
    v = balanced(2, 80)
    difference = (x[:, None] - x).astype(np.longdouble)
    # expm1 takes the constant out, which (Σv)² = 0 makes vanish: accurate for tiny widths too.
    exact = v @ np.expm1(-width * difference**2) @ v + np.longdouble(v.sum()) ** 2
    assert rbf_forms(x[None, :], np.array([width]), v)[0] == pytest.approx(float(exact), rel=1e-7)


def test_width_zero_and_constant_features_give_zero():
    forms = rbf_forms(np.vstack([np.arange(5.0), np.full(5, 3.0)]), np.array([0.0, 2.0]), balanced(0, 5))
    assert forms == pytest.approx([0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (LinearKernel(), linear_kernel),
        (PolynomialKernel(3, 0.4, 0.5), lambda x: polynomial_kernel(x, degree=3, gamma=0.4, coef0=0.5)),
        (RBFKernel(0.3), lambda x: rbf_kernel(x, gamma=0.3)),
    ],
    ids=["linear", "poly", "rbf"],
)
def test_forms_match_the_kernels_of_scikit_learn(kernel, reference):
    X, _ = data(p=8)
    V = np.column_stack([balanced(1, 40), balanced(2, 40)])
    scale = np.random.default_rng(3).uniform(0.2, 3.0, size=8)
    forms = single_feature_forms(as_design(X), kernel, scale, V)
    for k in range(8):
        K = reference(X[:, k : k + 1] * scale[k])
        assert forms[k] == pytest.approx(np.einsum("ic,ij,jc->c", V, K, V), rel=1e-8)


# -- the iteration --------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1.0, 100.0, np.inf])
def test_linear_kernel_is_l2_arom_step_by_step(C):
    X, y = data(1)
    models = (
        SingleFeatureKernels(svms(y, C), LinearKernel()),
        RescaledModels(svms(y, C)),
    )
    settings = {"zero_tol": 1e-3, "tol": 1e-3, "max_iter": 200}
    ours, theirs = (
        rescale_until_sparse(model, as_design(X), np.arange(60), multiplicative, **settings)
        for model in models
    )
    assert ours.n_iter == theirs.n_iter > 5
    for (features, weight), (expected, expected_weight) in zip(ours.iterates, theirs.iterates, strict=True):
        assert np.array_equal(features, expected)
        assert weight == pytest.approx(expected_weight, rel=1e-9)
    selector, arom = (
        KernelMultiplicativeUpdate(kernel="linear", C=C).fit(X, y),
        AROM(start="equal", C=C).fit(X, y),
    )
    assert selector.path_.order.tolist() == arom.path_.order.tolist()
    for k in range(1, 61):
        assert selector.path_.support(k).tolist() == arom.path_.support(k).tolist()


def test_first_step_agrees_with_an_svm_of_scikit_learn():
    X, y = data(2, p=12)
    gamma, C = 1 / 12, 5.0
    K = rbf_kernel(X, gamma=gamma)
    reference = SVC(kernel="precomputed", C=1e9, tol=1e-9).fit(K + np.eye(40) / C, y)
    v = np.zeros(40)
    v[reference.support_] = reference.dual_coef_[0]
    expected = [np.sqrt(v @ rbf_kernel(X[:, k : k + 1], gamma=gamma) @ v) for k in range(12)]
    model = SingleFeatureKernels(svms(y, C), RBFKernel(gamma))
    assert model.train(as_design(X), np.ones(12)) == pytest.approx(expected, rel=1e-4)


def test_several_classes_add_their_squares():
    X, _ = data(3, p=9)
    targets = [np.where(np.arange(40) % 3 == c, 1.0, -1.0) for c in range(3)]
    chosen = (targets, targets[:1], targets[1:2], targets[2:])
    models = [SingleFeatureKernels(svms(np.transpose(some), 2.0), RBFKernel(0.2)) for some in chosen]
    abs_weights = [model.train(as_design(X), np.ones(9)) for model in models]
    assert abs_weights[0] ** 2 == pytest.approx(
        abs_weights[1] ** 2 + abs_weights[2] ** 2 + abs_weights[3] ** 2, rel=1e-9
    )


def test_factors_keep_their_sum_of_squares():
    new = constant_sum_rule(50.0)(np.array([1.0, 2.0, 0.5]), np.array([1e-90, 3e-90, 1e-90]))
    assert (new**2).sum() == pytest.approx(50.0)
    assert new[1] / new[0] == pytest.approx(6.0)
    assert constant_sum_rule(5.0)(np.ones(2), np.zeros(2)).tolist() == [0.0, 0.0]
    X, y = data(4)
    s = KernelMultiplicativeUpdate().fit(X, y)
    assert (s.scale_**2).sum() == pytest.approx(60.0)


# -- the nonlinear toy ----------------------------------------------------------------------------------


def test_toy_finds_the_second_feature_and_misses_the_first():
    toys = [make_nonlinear_toy(150, random_state=seed) for seed in range(30)]
    supports = [KernelMultiplicativeUpdate(2).fit(toy.X, toy.y).path_.support(2) for toy in toys]
    assert sum(1 in support for support in supports) >= 26  # 85 % of 30
    assert sum(0 in support for support in supports) <= 6  # its distribution is the same in both classes


# -- stopping, copies, bad input ------------------------------------------------------------------------


def test_smaller_sizes_are_the_top_of_the_iterate_at_the_stop():
    X, y = data(5)
    full, stopped = KernelMultiplicativeUpdate().fit(X, y), KernelMultiplicativeUpdate(stop_at=20).fit(X, y)
    kept = [s for s in full.path_.sizes if s >= 20]
    assert stopped.path_.sizes.tolist() == kept
    assert stopped.path_.selected_size == kept[0] < 60
    for k in range(20, 61):
        assert stopped.path_.support(k).tolist() == full.path_.support(k).tolist()
    assert set(stopped.path_.support(7)) < set(stopped.path_.support(kept[0]))


def test_first_of_identical_columns_gets_the_weight():
    X, y = data(6, p=20)
    s = KernelMultiplicativeUpdate().fit(np.column_stack([X, X[:, 3]]), y)
    assert s.representative_[20] == 3
    assert s.scale_[20] == 0.0
    assert s.path_.order[0] == 3


def test_constant_and_identical_data_give_finite_results():
    X, y = data()
    s = KernelMultiplicativeUpdate().fit(np.column_stack([X, np.full(40, 5.0)]), y)
    assert s.path_.order[-1] == 60
    flat = KernelMultiplicativeUpdate(C=1.0).fit(np.ones((6, 3)), [0, 1, 0, 1, 0, 1])
    assert np.all(np.isfinite(flat.scores_))
    twins = np.tile([[0.0, 1.0], [1.0, 0.0]], (4, 1))
    with pytest.raises(ValueError, match="KernelMultiplicativeUpdate with a hard margin"):
        KernelMultiplicativeUpdate(C=np.inf).fit(twins, [0, 0, 0, 0, 1, 1, 1, 1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "'C' parameter of KernelMultiplicativeUpdate"),
        ({"stop_at": 0}, "'stop_at' parameter"),
        ({"gamma": -1.0}, "'gamma' parameter"),
        ({"degree": 1.5}, "'degree' parameter"),
        ({"kernel": "laplace"}, "'kernel' parameter"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelMultiplicativeUpdate(**parameters).fit(*data())


def test_iterates_with_fewer_features_are_removed_except_the_first():
    sizes = (3, 5, 4, 2)
    result = SimpleNamespace(iterates=[(np.arange(size), size) for size in sizes])
    kernel_multiplicative_update._forget_smaller(result, 4)
    assert [size for _, size in result.iterates] == [3, 5, 4]


@pytest.mark.parametrize("coef0", [0.0, 0.5])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_forms_of_a_polynomial_kernel_of_one_feature(coef0, degree):
    """Double sums of v with itself; the coefficients of each v sum to zero."""
    kernel = make_kernel("poly", gamma=0.7, degree=degree, coef0=coef0, design=as_design(np.eye(3)))
    block, V = noise(9, 4), noise(9, 2, 1)
    V = V - V.mean(axis=0)
    wanted = [[v @ (0.7 * np.outer(x, x) + coef0) ** degree @ v for v in V.T] for x in block.T]
    np.testing.assert_allclose(kernel_multiplicative_update._polynomial_forms(kernel, block, V), wanted)
