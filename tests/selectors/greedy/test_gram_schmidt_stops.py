"""The stopping rules of GramSchmidt, and the error at every size on the way."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import zeronorm
from small_problems import noise
from zeronorm import ForwardLeastSquares, GramSchmidt
from zeronorm.engines._error_control import probe_tail
from zeronorm.selectors.greedy import _gram_schmidt as gram_schmidt


@pytest.mark.parametrize(
    ("rule", "values", "accepted"),
    [
        (gram_schmidt.ProbeStop(0.25, None), [0.1, 0.25, 0.26, 0.1], [True, True, False, False]),
        (gram_schmidt.FisherStop(0.25), [0.25, 0.3, 0.0], [True, False, False]),
        (gram_schmidt.SizeStop(), [0.9, 0.1, 0.0], [True, True, True]),
    ],
)
def test_rules_accept_up_to_their_level_and_never_after_a_refusal(rule, values, accepted, monkeypatch):
    coming = iter(values)
    monkeypatch.setattr(rule, "_value", lambda search, column: next(coming))
    assert [rule.accept(None, 0) for _ in values] == accepted
    assert (rule.values, rule.n_accepted) == (values, sum(accepted))


def test_the_leave_one_out_rule_accepts_while_the_error_decreases():
    errors = {None: 5.0, 0: 4.0, 1: 4.0, 2: 1.0}
    search = SimpleNamespace(leave_one_out_error=lambda column=None: errors[column])
    rule = gram_schmidt.LeaveOneOutStop()
    assert [rule.accept(search, column) for column in (0, 1, 2)] == [True, False, False]
    assert (rule.values, rule.n_accepted) == ([4.0, 4.0, 1.0], 1)


def test_values_of_the_rules():
    search = SimpleNamespace(scores=np.array([0.2, 0.5]), dimension=9, target_rank=1, n_candidates=4)

    def values(rule, n_columns=1):
        for _ in range(n_columns):
            rule.accept(search, 1)
        return rule.values

    tail = float(probe_tail(0.5, 9, 1))
    assert values(gram_schmidt.SizeStop()) == [0.5]
    assert values(gram_schmidt.FisherStop(0.1)) == pytest.approx([tail])
    assert values(gram_schmidt.ProbeStop(0.1, None), 2) == pytest.approx([tail, tail + tail * (1 - tail)])
    assert values(gram_schmidt.ProbeStop(0.1, "max")) == pytest.approx([1 - (1 - tail) ** 4])


def test_the_error_of_every_size_on_the_way_of_gram_schmidt():
    X = noise(30, 5)
    y = X[:, 1] - 0.5 * X[:, 3] + 0.3 * noise(30, 1, 1)[:, 0]
    for kept in (None, [0, 4]):
        path = zeronorm.GramSchmidt(4, stop="size", task="regression", always_keep=kept).fit(X, y).path_
        sizes = [1, 2, 3, 4] if kept is None else [2, 3, 4]
        assert path.sizes.tolist()[: len(sizes)] == sizes
        centred, left = y - y.mean(), []
        for size in path.visited_sizes:
            columns = X[:, path.order[:size]] - X[:, path.order[:size]].mean(axis=0)
            rest = centred - columns @ np.linalg.lstsq(columns, centred, rcond=None)[0]
            left.append(rest @ rest)
        np.testing.assert_allclose(path.objective / path.objective[0], np.asarray(left) / left[0])


@pytest.mark.parametrize("selector", [GramSchmidt(), ForwardLeastSquares()])
@pytest.mark.parametrize("groups", [{"a": [0, 1, 2], "b": [3, 4, 5]}, list("aabbcc")])
def test_groups_larger_than_what_was_accepted_are_selected_whole(selector, groups):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    s = selector.set_params(feature_groups=groups).fit(X, (X[:, 1] + X[:, 4] > 0).astype(int))
    codes = np.array([0, 0, 0, 1, 1, 1]) if isinstance(groups, dict) else np.array([0, 0, 1, 1, 2, 2])
    assert s.support_.any()
    assert all(np.unique(s.support_[codes == code]).size == 1 for code in np.unique(codes))


def sparse_regression(seed: int, n: int = 50, p: int = 20, noise: float = 0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
    y = 2.0 * X[:, 3] - X[:, 8] + 0.7 * X[:, 11] + noise * rng.normal(size=n)
    return X, y


def sum_of_squares(X, Y, columns):
    A = np.column_stack([np.ones(len(Y)), X[:, list(columns)]])
    residual = Y - A @ np.linalg.lstsq(A, Y, rcond=None)[0]
    return residual.T @ residual


def test_fisher_stop_is_the_partial_f_test():
    X, y = sparse_regression(2)
    s = GramSchmidt(stop="fisher", level=0.01, task="regression").fit(X, y)
    chosen: list[int] = []
    for step, value in enumerate(s.stop_values_):
        before = sum_of_squares(X, y, chosen)
        chosen.append(int(s.path_.order[step]))
        after = sum_of_squares(X, y, chosen)
        freedom = len(y) - 2 - step
        assert value == pytest.approx(stats.f.sf((before - after) / (after / freedom), 1, freedom), rel=1e-6)
    assert np.all(s.stop_values_[:-1] <= 0.01)
    assert s.stop_values_[-1] > 0.01
    assert s.n_accepted_ == s.support_.sum() == len(s.stop_values_) - 1


def predicted_without(A, targets, i):
    """Prediction for sample i by least squares on all other samples."""
    with_bias = np.column_stack([A, np.ones(len(A))])
    others = np.arange(len(A)) != i
    return with_bias[i] @ np.linalg.lstsq(with_bias[others], targets[others], rcond=None)[0]


@pytest.mark.parametrize("multiclass", [False, True])
def test_leave_one_out_stop_agrees_with_refitting(multiclass):
    X, y = sparse_regression(3)
    params = {"stop": "loo", "task": "classification" if multiclass else "regression"}
    targets = y[:, None]
    if multiclass:
        y = np.digitize(y, [-1.0, 1.0])
        targets = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    s = GramSchmidt(**params).fit(X, y)
    for step, value in enumerate(s.stop_values_):
        A = X[:, s.path_.order[: step + 1]]
        predicted = np.vstack([predicted_without(A, targets, i) for i in range(len(y))])
        assert value == pytest.approx(((targets - predicted) ** 2).sum() / len(y), rel=1e-9)
    assert np.all(np.diff(s.stop_values_[:-1]) < 0)
    assert s.stop_values_[-1] >= s.stop_values_[-2]
    assert s.n_accepted_ == s.support_.sum()


@pytest.mark.filterwarnings("ignore:GramSchmidt selects no feature")
def test_leave_one_out_stops_before_a_sample_is_fitted_alone():
    rng = np.random.default_rng(5)
    X = np.eye(12)[:, :11] + 1e-3 * rng.normal(size=(12, 11))
    y = rng.normal(size=12)
    s = GramSchmidt(stop="loo", task="regression").fit(X, y)
    assert np.all(np.isfinite(s.scores_))
    assert s.n_accepted_ <= 10


def test_a_given_size_goes_on_past_the_rule():
    X, y = sparse_regression(4)
    own = GramSchmidt(task="regression").fit(X, y)
    more = GramSchmidt(10, task="regression").fit(X, y)
    assert more.support_.sum() == 10
    assert more.n_accepted_ == own.n_accepted_ == own.support_.sum() < 10
    assert more.path_.order[: own.n_accepted_].tolist() == own.path_.order[: own.n_accepted_].tolist()


def test_size_stop_takes_half_and_looks_no_further_than_asked():
    X, y = sparse_regression(4)
    assert GramSchmidt(3, stop="size", task="regression").fit(X, y).squared_cosines_.size == 3
    assert GramSchmidt(stop="size", task="regression").fit(X, y).support_.sum() == 10


def test_an_empty_selection_warns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), np.repeat([0, 1], 20)
    with pytest.warns(UserWarning, match=r"GramSchmidt selects no feature by its own rule.*raise level"):
        GramSchmidt(stop="probe", level=1e-9).fit(X, y)
