"""Selection beside covariates: laws that every method with ``adjust`` keeps, and independent solutions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, lars_path

from zeronorm import (
    AROM,
    RFE,
    Consensus,
    FisherScore,
    ForwardLeastSquares,
    GramSchmidt,
    LassoSelector,
    LogisticLasso,
    ProbeSelector,
    Relief,
    SelectorCV,
    StabilitySelection,
    SVMWeights,
    ZeroNormLogistic,
    ZeroNormSVM,
)
from zeronorm.design import as_design
from zeronorm.engines._adjusted_scores import adjusted_scores
from zeronorm.registry import methods_with
from zeronorm.selection._covariates import Covariates
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import KINDS, TASKS, TimeToEvent, target_for
from zeronorm.solvers.linear import LOGISTIC, LinearProblem, Way, solve, svm_loss

N, P = 90, 12


@pytest.fixture(scope="module")
def confounded():
    """Features 0 to 5 follow the first covariate; 3 and 8 matter beside it. Covariates come first and last."""
    rng = np.random.default_rng(3)
    Z = np.column_stack([rng.normal(10.0, 2.0, N), rng.integers(0, 3, N), np.full(N, 4.0)])
    X = rng.normal(size=(N, P))
    X[:, :6] += (Z[:, [0]] - 10.0) * 1.5
    signal = 1.5 * (Z[:, 0] - 10.0) + 1.5 * X[:, 3] - 2.25 * (Z[:, 0] - 10.0) - 2.0 * X[:, 8]
    noisy = signal + rng.normal(size=N)
    return X, Z, noisy, (noisy > np.median(noisy)).astype(int)


def selectors():
    for info in methods_with("adjust"):
        known = info.cls().get_params()
        if info.name in ("auto", "random"):  # auto is slow, and the consensus inside it is here
            continue
        for task in TASKS:
            if any(KINDS[kind].task == task for kind in info.tasks):
                given = {"task": task} if "task" in known else {}
                yield pytest.param(info.cls(n_features_to_select=2, **given), id=f"{info.name}-{task}")
    for meta in (SelectorCV, StabilitySelection, ProbeSelector):
        yield pytest.param(meta(FisherScore(), n_features_to_select=2, random_state=0), id=meta.__name__)


def with_adjust(selector, columns):
    return selector.set_params(**{"selector__adjust" if hasattr(selector, "selector") else "adjust": columns})


def target_of(selector, data):
    survival = TimeToEvent.prepared({"event": np.arange(N) % 5 > 0, "time": np.exp(-data[2])})
    return {"regression": data[2], "classification": data[3], "survival": survival}[selector._task_name()]


@pytest.mark.parametrize("selector", selectors())
def test_covariates_are_free_and_not_selected(selector, confounded):
    from sklearn.base import clone

    X, Z, *_ = confounded
    y = target_of(selector, confounded)
    table = np.column_stack([Z[:, :1], X, Z[:, 1:]])
    covariates = [0, P + 1, P + 2]
    fitted = with_adjust(clone(selector), covariates).fit(table, y)
    assert fitted.support_.sum() == 2
    assert not fitted.support_[covariates].any()
    assert fitted.support_.shape == fitted.ranking_.shape == fitted.scores_.shape == (P + 3,)
    assert set(fitted.path_.order[-3:].tolist()) == set(covariates)
    np.testing.assert_array_equal(fitted.path_.support(P), np.arange(1, P + 1))
    with pytest.raises(ValueError, match=f"between 1 and {P}"):
        fitted.path_.support(P + 1)
    # The covariates may be in other units and mixed, and any multiple of them may be in the features.
    mixed = Z @ np.array([[0.3, 2.0, 0.0], [0.0, -1.0, 0.0], [1.0, 5.0, 100.0]])
    mixed_features = X + 0.7 * Z[:, [0]] - 0.4 * Z[:, [1]]
    other = with_adjust(clone(selector), [P, P + 1, P + 2]).fit(np.column_stack([mixed_features, mixed]), y)
    np.testing.assert_array_equal(other.get_support()[:P], fitted.get_support()[1:-2])
    if not isinstance(selector, StabilitySelection | ProbeSelector | SelectorCV):
        assert fitted.get_support(indices=True).tolist() == [4, 9]


@pytest.mark.parametrize(
    "selector",
    [
        FisherScore(), RFE(), AROM(), LassoSelector(), LogisticLasso(), ZeroNormLogistic(), GramSchmidt(),
    ],
    ids=lambda selector: type(selector).__name__,
)  # fmt: skip
def test_storage_changes_nothing_and_a_weight_of_two_is_two_samples(selector, confounded, tmp_path):
    X, Z, _, y = confounded
    table = np.column_stack([Z[:, :2], np.where(np.abs(X) > 0.8, X, 0.0)])
    np.save(tmp_path / "x.npy", table)
    selector.set_params(adjust=[0, 1], n_features_to_select=3)
    expected = selector.fit(table, y).get_support(indices=True).tolist()
    for stored in (sp.csr_matrix(table), as_design(tmp_path / "x.npy"), table.astype(np.float32)):
        assert selector.fit(stored, y).get_support(indices=True).tolist() == expected
    weight = np.random.default_rng(0).integers(1, 3, N)
    weighted = selector.fit(table, y, sample_weight=weight.astype(float)).get_support(indices=True).tolist()
    repeated = selector.fit(np.repeat(table, weight, axis=0), np.repeat(y, weight))
    assert repeated.get_support(indices=True).tolist() == weighted


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_default_of_auto_adjusts(task, confounded):
    from zeronorm import AutoSelector

    X, Z, noisy, y = confounded
    target = noisy if task == "regression" else y
    fitted = AutoSelector(task=task, adjust=[0, 1, 2], random_state=0).fit(np.column_stack([Z, X]), target)
    assert fitted.support_[[6, 11]].all()
    assert not fitted.support_[:3].any()
    assert fitted.frequencies_.shape == (P + 3,)


# -- Filters against one fit for each feature --


def problem_of(X, Z, y, task, weight=None):
    kinds = ("binary", "multiclass") if task == "classification" else ("regression",)
    target = target_for(y, task, kinds, "test")
    return Problem(as_design(X), target, sample_weight=weight, adjust=Covariates(Z, weight))


def test_partial_correlation_by_two_regressions(confounded):
    X, Z, noisy, _ = confounded
    found = adjusted_scores(problem_of(X, Z, noisy, "regression"))
    full = np.column_stack([np.ones(N), Z[:, :2]])

    def residual(v):
        return v - full @ np.linalg.lstsq(full, v, rcond=None)[0]

    expected = [np.corrcoef(residual(X[:, k]), residual(noisy))[0, 1] ** 2 for k in range(P)]
    np.testing.assert_allclose(found.score, expected, rtol=1e-9)
    api = pytest.importorskip("statsmodels.api")
    p_values = [api.OLS(noisy, np.column_stack([full, X[:, k]])).fit().pvalues[-1] for k in range(P)]
    np.testing.assert_allclose(found.p_value, p_values, rtol=1e-7)


def score_test_by_definition(x, Z, y, weight):
    """Rao's statistic from the gradient and a numerical information matrix of the whole multinomial likelihood."""
    classes = int(y.max()) + 1
    full = np.column_stack([np.ones(len(x)), Z, x])

    def gradient(flat):
        f = np.column_stack([np.zeros(len(x)), full @ flat.reshape(-1, classes - 1)])
        pi = np.exp(f - f.max(axis=1, keepdims=True))
        pi /= pi.sum(axis=1, keepdims=True)
        truth = (y[:, None] == np.arange(classes)).astype(float)
        return (full.T @ (weight[:, None] * (truth - pi))[:, 1:]).ravel()

    q = full.shape[1]
    free = np.ones((q, classes - 1), dtype=bool)
    free[-1] = False

    def restricted(some):
        flat = np.zeros(q * (classes - 1))
        flat[free.ravel()] = some
        return gradient(flat)[free.ravel()]

    found = scipy.optimize.root(restricted, np.zeros(int(free.sum())), tol=1e-12)
    flat = np.zeros(q * (classes - 1))
    flat[free.ravel()] = found.x
    step = 1e-5
    information = -np.array(
        [(gradient(flat + step * e) - gradient(flat - step * e)) / (2 * step) for e in np.eye(flat.size)]
    )
    U = gradient(flat)
    return float(U @ np.linalg.solve(information, U))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_score_test_by_definition(confounded, classes, weighted):
    X, Z, noisy, _ = confounded
    rng = np.random.default_rng(0)
    Z = (Z[:, :2] - [10.0, 1.0]) / 2.0
    disturbed = noisy + rng.normal(0, 6.0, N)  # no separation
    y = np.searchsorted(np.quantile(disturbed, np.arange(1, classes) / classes), disturbed)
    weight = rng.integers(1, 4, N).astype(float) if weighted else np.ones(N)
    found = adjusted_scores(problem_of(X, Z, y, "classification", weight if weighted else None))
    expected = [score_test_by_definition(X[:, k], Z, y, weight) for k in range(P)]
    np.testing.assert_allclose(found.score, expected, rtol=2e-5, atol=1e-6)
    if classes == 2 and not weighted:
        api = pytest.importorskip("statsmodels.api")
        fit = api.GLM(y, api.add_constant(Z), family=api.families.Binomial()).fit(tol=1e-12)
        outside = [fit.score_test(exog_extra=X[:, [k]]) for k in range(P)]
        np.testing.assert_allclose(
            found.score, [float(np.squeeze(s[0])) for s in outside], rtol=2e-5, atol=1e-6
        )
        np.testing.assert_allclose(found.p_value, [float(np.squeeze(s[1])) for s in outside], rtol=1e-3)


# -- Linear models against solvers with columns without a penalty --


@pytest.mark.parametrize("way", [Way.GRAM, Way.PRIMAL])
@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic"])
@pytest.mark.parametrize("scaled", [False, True])
def test_weights_of_covariates_cost_nothing(confounded, way, loss, scaled):
    cp = pytest.importorskip("cvxpy")
    X, Z, noisy, _ = confounded
    y = np.where(noisy + np.random.default_rng(1).normal(0, 5.0, N) > 0, 1.0, -1.0)
    scale = np.linspace(0.5, 2.0, P) if scaled else None
    C = 0.05
    basis = Covariates(Z).basis
    kind = LOGISTIC if loss == "logistic" else svm_loss(loss, None)
    linear = LinearProblem(kind, y[:, None], np.full((N, 1), C), scale=scale, covariates=basis)
    found = solve(linear, as_design(X), way=way, tol=1e-9)
    w, v, b = cp.Variable(P), cp.Variable(2), cp.Variable()
    margins = cp.multiply(y, X @ w + Z[:, :2] @ v + b)
    error = {
        "hinge": lambda: C * cp.sum(cp.pos(1 - margins)),
        "squared": lambda: C / 2 * cp.sum_squares(cp.pos(1 - margins)),
        "logistic": lambda: C * cp.sum(cp.logistic(-margins)),
    }[loss]()
    rescaled = w if scale is None else cp.multiply(1 / scale, w)
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(rescaled) + error)).solve(solver="CLARABEL")
    np.testing.assert_allclose(found.weights[:, 0], w.value, atol=2e-4)
    decision = X @ w.value + Z[:, :2] @ v.value + b.value
    np.testing.assert_allclose(found.decisions(as_design(X))[:, 0], decision, atol=2e-3)


def test_lasso_beside_covariates_is_the_lasso_of_residuals(confounded):
    X, Z, noisy, _ = confounded
    table = np.column_stack([Z, X])
    fitted = LassoSelector(3, task="regression", adjust=[0, 1, 2], norm_bound=1.0).fit(table, noisy)
    full = np.column_stack([np.ones(N), Z[:, :2]])
    project = np.eye(N) - full @ np.linalg.pinv(full)
    R = project @ X
    R /= R.std(axis=0)
    _, _, path = lars_path(R, project @ noisy, method="lasso")
    norms = np.abs(path).sum(axis=0)
    at = int(np.searchsorted(norms, 1.0))
    t = (1.0 - norms[at - 1]) / (norms[at] - norms[at - 1])
    np.testing.assert_allclose(fitted.coef_[3:], (1 - t) * path[:, at - 1] + t * path[:, at], atol=1e-8)
    assert not fitted.coef_[:3].any()


def test_logistic_lasso_meets_the_optimality_conditions(confounded):
    X, Z, *_ = confounded
    y = (confounded[2] + np.random.default_rng(1).normal(0, 5.0, N) > 0).astype(int)
    table = np.column_stack([X, Z])
    fitted = LogisticLasso(3, adjust=[P, P + 1, P + 2], norm_bound=0.8).fit(table, y)
    full = np.column_stack([np.ones(N), Covariates(Z).basis])
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    standard /= np.sqrt(1.0 - ((Covariates(Z).basis.T @ standard / N) ** 2).sum(axis=0))
    offset = standard @ fitted.coef_[0, :P]

    def gradient(v):
        return full.T @ (y - 1.0 / (1.0 + np.exp(-offset - full @ v))) / N

    v = scipy.optimize.root(gradient, np.zeros(full.shape[1]), tol=1e-12).x
    slopes = standard.T @ (y - 1.0 / (1.0 + np.exp(-offset - full @ v))) / N
    active = fitted.coef_[0, :P] != 0.0
    np.testing.assert_allclose(np.abs(slopes[active]), fitted.penalty_, rtol=1e-3)
    assert np.abs(slopes[~active]).max() <= fitted.penalty_ * (1 + 1e-3)


def test_best_subset_beside_covariates_is_the_best_of_all(confounded):
    X, Z, *_ = confounded
    y = (confounded[2] + np.random.default_rng(1).normal(0, 5.0, N) > 0).astype(int)
    fitted = ZeroNormLogistic(1, adjust=[P, P + 1], ridge=1e-6).fit(np.column_stack([X, Z[:, :2]]), y)

    def loss(k):
        columns = np.column_stack([X[:, k], Z[:, :2]])
        columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
        model = LogisticRegression(C=1e8, tol=1e-10, max_iter=10_000).fit(columns, y)
        return -np.log(model.predict_proba(columns)[np.arange(N), y]).sum()

    assert fitted.get_support(indices=True).tolist() == [int(np.argmin([loss(k) for k in range(P)]))]


def test_gram_schmidt_picks_what_reduces_the_residual_most(confounded):
    X, Z, noisy, _ = confounded
    fitted = GramSchmidt(4, task="regression", adjust=[P, P + 1, P + 2]).fit(np.column_stack([X, Z]), noisy)
    chosen: list[int] = []
    for _ in range(4):
        base = np.column_stack([np.ones(N), Z[:, :2], X[:, chosen]])
        left = {
            k: np.linalg.lstsq(np.column_stack([base, X[:, k]]), noisy, rcond=None)[1][0]
            for k in range(P)
            if k not in chosen
        }
        chosen.append(min(left, key=left.__getitem__))
    assert fitted.path_.order[:4].tolist() == chosen


# -- Predictions, names and messy covariates --


def test_estimator_gets_covariates_and_features(confounded):
    pd = pytest.importorskip("pandas")
    X, Z, _, y = confounded
    table = pd.DataFrame(
        np.column_stack([Z, X]), columns=["age", "stage", "centre", *(f"g{k}" for k in range(P))]
    )
    selector = RFE(n_features_to_select=2, adjust=["age", "stage", "centre"]).fit(table, y)
    assert selector.get_feature_names_out().tolist() == ["g3", "g8"]
    own = FisherScore(2, adjust=["age", "stage"], estimator=LogisticRegression()).fit(table, y)
    columns = table.columns[np.union1d(own.get_support(indices=True), [0, 1])]
    alone = LogisticRegression().fit(table[columns].to_numpy(), y)
    np.testing.assert_array_equal(own.predict(table), alone.predict(table[columns].to_numpy()))
    svm = SVMWeights(2, adjust=["age"], estimator=LogisticRegression()).fit(table, y)
    assert svm.estimator_.coef_.shape == (1, 3)
    assert svm.score(table, y) > 0.8


def test_feature_that_equals_a_covariate_ranks_last(confounded):
    X, Z, _, y = confounded
    table = np.column_stack([Z[:, 0] * 2 - 1, X, Z])
    for selector in (
        FisherScore(),
        SVMWeights(),
        AROM(),
        ZeroNormSVM(),
        LassoSelector(),
        ForwardLeastSquares(),
    ):
        fitted = selector.set_params(adjust=[-3, -2, -1], n_features_to_select=2).fit(table, y)
        assert fitted.path_.order[P] == 0
    assert not np.isnan(fitted.scores_).any()


def test_settings_of_columns_follow_their_features(confounded):
    X, Z, _, y = confounded
    table = np.column_stack([Z[:, :2], X])
    fitted = RFE(n_features_to_select=3, adjust=[0, 1], always_keep=[2]).fit(table, y)
    assert fitted.support_[2]
    assert fitted.support_.sum() == 3
    assert not fitted.support_[:2].any()
    labels = [9, 9, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    grouped = FisherScore(2, adjust=[0, 1], feature_groups=labels).fit(table, y)
    assert grouped.get_support(indices=True).tolist() in ([4, 5], [10, 11])


@pytest.mark.parametrize(
    ("selector", "columns", "message"),
    {
        "all": (FisherScore(), range(P), "names all"),
        "unknown": (FisherScore(), ["age"], "no column names"),
        "both": (RFE(always_keep=[1]), [1], "both name column 1"),
        "kernel": (RFE(kernel="rbf"), [0], "'linear' with 'adjust'"),
        "norm": (SVMWeights(norm="l1"), [0], "'l2' with 'adjust'"),
        "q": (ZeroNormSVM(q=np.inf), [0], "finite with 'adjust'"),
        "member": (Consensus([FisherScore(adjust=[2])]), [0], "adjust' of its own"),
        "wrapped": (Consensus([Relief()]), [0], "Relief cannot adjust .* Use one of .*FisherScore"),
    }.values(),
)
def test_errors(selector, columns, message):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        selector.set_params(adjust=list(columns)).fit(rng.normal(size=(30, P)), np.arange(30) % 2)


def test_more_covariates_than_samples():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="explain any target of 20 samples"):
        FisherScore(adjust=list(range(25))).fit(rng.normal(size=(20, 30)), np.arange(20) % 2)


def test_no_certificate_beside_covariates():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="not possible"):
        SVMWeights(adjust=[0]).fit(rng.normal(size=(20, 5)), np.arange(20) % 2).certificate(None, None)
