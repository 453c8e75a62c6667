"""BestSubset finds and proves the best subsets; optimality_gap measures those of other methods."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from oracles.exhaustive_subsets import best_by_trying_all
from zeronorm import AROM, BestSubset, FisherScore, ForwardLeastSquares, LassoSelector, optimality_gap, select
from zeronorm.engines.certificates._branching import SubsetProof


def table(n=60, p=7, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
    signal = X[:, 0] - X[:, 2] + 0.7 * X[:, 3] + rng.normal(size=n)
    return X, np.argsort(np.argsort(signal)) * classes // n, signal


def standardized(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "squared_error"])
def test_all_sizes_are_those_of_an_exhaustive_search(loss):
    X, y, _ = table(n=40, p=6)
    selector = BestSubset(3, loss=loss, C=0.2).fit(X, y)
    targets = np.where(y == 1, 1.0, -1.0)[:, None]
    for k, certificate in selector.certificates_.items():
        best, columns = best_by_trying_all(standardized(X), targets, np.full(len(y), 0.2), loss, k)
        assert certificate.is_optimal
        assert certificate.objective == pytest.approx(best, rel=1e-5)
        assert selector.path_.support(k).tolist() == columns.tolist()


def test_regression_and_groups_and_kept_features():
    X, _, signal = table(p=6)
    groups = [0, 0, 1, 1, 2, 3]
    selector = BestSubset(3, task="regression", feature_groups=groups, always_keep=[5], C=0.5).fit(X, signal)
    best, columns = best_by_trying_all(
        standardized(X), signal[:, None], np.full(len(X), 0.5), "squared_error", 3, np.array(groups), (5,)
    )
    assert selector.get_support(indices=True).tolist() == columns.tolist()
    assert selector.certificates_[3].objective == pytest.approx(best, rel=1e-6)
    assert selector.status_ == "optimal"


def test_several_classes_share_one_subset():
    X, y, _ = table(classes=3)
    selector = BestSubset(2, C=0.3).fit(X, y)
    targets = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    best, columns = best_by_trying_all(standardized(X), targets, np.full(len(y), 0.3), "logistic", 2)
    assert selector.get_support(indices=True).tolist() == columns.tolist()
    assert selector.certificates_[2].objective == pytest.approx(best, rel=1e-6)


def test_a_search_that_ends_too_early_warns_once_and_proves_nothing_more_than_a_gap():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 200)), np.arange(40) % 2
    with pytest.warns(ConvergenceWarning, match="the gap is .* %; raise time_limit") as caught:
        selector = BestSubset(6, C=10.0, max_nodes=2).fit(X, y)
    assert len(caught) == 1
    assert selector.status_ == "limit"
    assert selector.gap_ > 0.01
    assert "better by more than" in selector.certificates_[6].sentence()
    assert not selector.certificates_[6].is_optimal


def test_a_second_fit_continues_the_first():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 60)), np.arange(40) % 2
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        selector = BestSubset(3, C=0.3, max_nodes=2, warm_start=True).fit(X, y)
    first = selector.certificates_[3]
    selector.set_params(max_nodes=10_000).fit(X, y)
    assert selector.status_ == "optimal"
    assert selector.certificates_[3].bound > first.bound
    assert selector.certificates_[3].history[: len(first.history)] == first.history
    alone = optimality_gap(X, y, first.support, C=0.3, gap_tol=0.0, earlier=first)
    assert alone.bound == pytest.approx(selector.certificates_[3].bound, rel=1e-5)
    with pytest.raises(ValueError, match="cannot continue with size 3, loss 'logistic'"):
        selector.set_params(C=0.5).fit(X, y)


def test_ctrl_c_ends_a_fit_with_what_was_found_and_a_run_of_many_fits(monkeypatch):
    X, y, _ = table(p=12)

    def interrupted(self, node):
        raise KeyboardInterrupt

    monkeypatch.setattr(SubsetProof, "_children", interrupted)
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        selector = BestSubset(3, C=10.0).fit(X, y)
    assert selector.interrupted_
    assert (list(selector.certificates_), selector.status_) == ([3], "limit")
    assert 0.0 < selector.gap_ < 1.0
    with pytest.raises(KeyboardInterrupt):
        select(X, y, method="best-subset", features=3, params={"C": 10.0}, cv=2, permutations=0)


def test_collinear_copies_and_constant_columns_are_no_obstacle():
    X, y, _ = table(p=5)
    X = np.column_stack([X, X[:, 0], np.ones(len(X))])
    selector = BestSubset(3).fit(X, y)
    assert selector.status_ == "optimal"
    assert 6 not in selector.get_support(indices=True)


def test_more_features_than_samples_may_be_asked_for():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(10, 15)), np.arange(10) % 2
    selector = BestSubset(15, max_features=1).fit(X, y)
    assert selector.get_support().all()
    assert selector.status_ == "optimal"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": np.inf}, "'C' parameter of BestSubset must be"),
        ({"n_features_to_select": 0}, "'n_features_to_select' parameter of BestSubset must be"),
        ({"loss": "hinge", "task": "regression"}, "'loss' parameter of BestSubset must be"),
    ],
)
def test_wrong_parameters_are_refused(change, message):
    X, y, signal = table()
    with pytest.raises(ValueError, match=message):
        BestSubset(**change).fit(X, signal if "task" in change else y)


# -- the gap of any subset ---------------------------------------------------------------------------


def test_the_gap_of_a_subset_is_its_distance_from_the_best():
    X, y, _ = table(n=40, p=6)
    targets, cost = np.where(y == 1, 1.0, -1.0)[:, None], np.full(len(y), 0.25)
    best, columns = best_by_trying_all(standardized(X), targets, cost, "hinge", 2)
    for subset in ([0, 1], columns.tolist(), [4, 5]):
        found = optimality_gap(X, y, subset, loss="hinge", C=0.25, gap_tol=0.0)
        exact = 1.0 - best / found.objective
        assert exact - 1e-6 <= found.gap <= exact + 1e-5
        assert found.is_optimal == (subset == columns.tolist())
        assert (found.better is None) == (subset == columns.tolist())


def test_anyone_can_check_a_certificate():
    X, y, _ = table()
    for loss in ("squared_error", "hinge", "squared_hinge", "logistic"):
        found = optimality_gap(X, y, [0, 2], loss=loss, C=0.1)
        targets = np.where(y == 1, 1.0, -1.0)
        assert found.check(standardized(X), targets) == pytest.approx(found.dual_bound, rel=1e-6)
        assert found.dual_bound <= found.bound <= found.objective
        if loss != "squared_error":
            with pytest.raises(ValueError, match="do not belong"):
                found.check(standardized(X), -targets)


def test_a_bound_of_the_weights_is_stated_and_checked():
    X, y, _ = table()
    targets = np.where(y == 1, 1.0, -1.0)
    free = optimality_gap(X, y, [0, 2], loss="squared_error", C=0.1)
    found = optimality_gap(X, y, [0, 2], loss="squared_error", C=0.1, max_weight=0.2)
    assert found.objective > free.objective
    assert found.dual_bound > free.dual_bound
    assert found.check(standardized(X), targets) == pytest.approx(found.dual_bound, rel=1e-6)
    assert "2 features with weights of at most 0.2" in found.sentence()
    best = BestSubset(2, loss="squared_error", C=0.1, max_weight=0.2).fit(X, y)
    assert best.status_ == "optimal"
    assert best.certificates_[2].objective <= found.objective * (1 + 1e-9)


def test_a_selector_brings_its_subset():
    X, y, signal = table()
    by_selector = optimality_gap(X, y, AROM(2).fit(X, y), loss="hinge", C=0.1)
    assert by_selector.size == 2
    fitted = ForwardLeastSquares(2, task="regression").fit(X, signal)
    found = optimality_gap(X, signal, fitted, loss="squared_error", C=1.0)
    assert found.objective == pytest.approx(
        optimality_gap(
            X, signal, fitted.get_support(), loss="squared_error", C=1.0, task="regression"
        ).objective
    )


def test_a_weight_of_two_is_a_duplicated_sample():
    X, y, _ = table(n=30)
    weight = np.where(np.arange(30) < 10, 2.0, 1.0)
    rows = np.repeat(np.arange(30), weight.astype(int))
    for loss in ("squared_error", "hinge"):
        weighted = optimality_gap(X, y, [0, 1], loss=loss, sample_weight=weight)
        repeated = optimality_gap(X[rows], y[rows], [0, 1], loss=loss)
        assert weighted.objective == pytest.approx(repeated.objective, rel=1e-6)
        assert weighted.bound == pytest.approx(repeated.bound, rel=2e-2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": np.inf}, "finite number greater than 0"),
        ({"max_weight": 0.0}, "'max_weight' parameter of optimality_gap must be"),
        ({"support": []}, "at least one of the 7 columns"),
        ({"support": [7]}, "positions from 0 on"),
        ({"loss": "absolute"}, "must be one of 'squared_error', 'hinge'"),
        ({"y": np.zeros(60, dtype=int)}, "at least two classes"),
        ({"always_keep": [5]}, "must hold all of 'always_keep'"),
        ({"feature_groups": [0, 0, 1, 2, 3, 4, 5]}, "whole 'feature_groups'"),
    ],
)
def test_wrong_input_of_the_gap_is_refused(change, message):
    X, y, _ = table()
    arguments = {"y": y, "support": [0], **change}
    with pytest.raises(ValueError, match=message):
        optimality_gap(X, **arguments)


def test_every_linear_method_has_a_certificate_in_its_own_loss():
    X, y, signal = table()
    for selector, loss in (
        (AROM(2), "hinge"),
        (BestSubset(2), "logistic"),
        (ForwardLeastSquares(2), "squared_error"),
        (LassoSelector(2), "squared_error"),
    ):
        target = y if selector._task_name() == "classification" else signal
        found = selector.fit(X, target).certificate(X, target, C=0.1)
        assert (found.loss, found.size) == (loss, 2)
        assert 0.0 <= found.gap < 1.0
    assert not hasattr(FisherScore(2), "certificate")
