"""Settings of OptimalFeatureWeighting: default sizes, preselection, the parts of a run, and stored results."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from small_problems import noise, problem_of
from zeronorm import FisherScore, OptimalFeatureWeighting
from zeronorm.engines.weighting._steps import AdaptiveSteps, GivenSteps
from zeronorm.selectors.stochastic import _ofw as ofw


def test_the_parts_of_a_run(monkeypatch):
    made = []

    class Run(SimpleNamespace):
        def __init__(self, *parts):
            made.append(parts)

        def go(self, progress, n_jobs):
            return "outcome"

    monkeypatch.setattr(ofw, "WeightingRun", Run)
    X, y = noise(30, 41), np.arange(30) % 2
    for params, lag in (({"batch_size": 1}, 21), ({"batch_size": 2}, 11), ({"batch_size": 5}, 10)):
        selector = OptimalFeatureWeighting(
            subset_size=2,
            learner="centroid",
            max_iter=30,
            window=7,
            checkpoint_every=50,
            random_state=0,
            **params,
        )
        problem = problem_of(y, X, classes=np.arange(2))
        selector.classes_ = problem.classes
        experiment = ofw.Experiment.of(selector, problem.design, y, problem.classes, problem.rng)
        selector._resolve_sizes(experiment)
        state = ofw.RunState(3, np.full(41, 1 / 41))
        assert selector._run_stochastic(experiment, state, problem) == (state, "outcome")
        run_state, _, _, steps, stopping, watch, max_iter, checkpoint, every, held_out = made[-1]
        assert held_out is None
        assert (stopping.window, stopping.tol, stopping.first_lag) == (7, ofw.DEFAULT_TOL, lag)
        assert stopping.first_settled == steps.first_settled
        assert (run_state, max_iter, checkpoint, every) == (state, 30, None, 50)
        assert watch == ofw.CollapseWatch(2, can_go_back=True)
    selector.tol = 0.3
    selector._run_stochastic(experiment, state, problem)
    assert made[-1][4].tol == 0.3


def test_weights_and_their_history_are_among_all_features():
    X, y = noise(40, 6), np.arange(40) % 2
    scores = FisherScore().fit(X, y).scores_
    left_out = scores <= np.sort(scores)[1]
    fitted = run_of(None, fisher_threshold=float(np.sort(scores)[1]))
    assert fitted.history_.weights.shape == (len(fitted.history_.steps), 6)
    for weights in (fitted.weights_, *fitted.history_.weights):
        assert np.all((weights == 0.0) == left_out)
        assert weights.sum() == pytest.approx(1.0)
    assert (fitted.n_redrawn_, fitted.n_steps_back_) == (0, 0)
    assert fitted.stop_reason_


def run_of(checkpoint, **params):
    settings = {"subset_size": 2, "batch_size": 4, "max_iter": 30, "learner": "centroid", "random_state": 0}
    X, y = noise(40, 6), np.arange(40) % 2
    selector = OptimalFeatureWeighting(checkpoint=checkpoint, checkpoint_every=10, **settings | params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few steps do not converge
        return selector.fit(X, y)


@pytest.mark.parametrize(
    "other",
    [
        {"subset_size": 3},
        {"batch_size": 5},
        {"max_iter": 40},
        {"learner": "knn"},
        {"random_state": 1},
        {"random_state": None},
        {"method": "euclidean"},
        {"noise": 0.01},
        {"tol": 0.1},
        {"window": 4},
        {"step_size": 0.02},
        {"cost": "balanced"},
    ],
    ids=str,
)
def test_settings_that_a_checkpoint_must_agree_on(other, tmp_path, monkeypatch):
    file = tmp_path / "run.npz"
    monkeypatch.setattr("zeronorm.engines.weighting._state.Checkpoint.remove", lambda self: None)
    whole = run_of(file)
    np.testing.assert_array_equal(run_of(file).weights_, whole.weights_)  # it is resumed
    first = next(iter(other))
    name = {"random_state": "seed", "cost": "balanced"}.get(first, first)
    with pytest.raises(ValueError, match=rf"another run \(.*{name}"):
        run_of(file, **other)


def test_a_run_without_a_seed_is_resumed_with_the_one_that_it_drew(tmp_path, monkeypatch):
    monkeypatch.setattr("zeronorm.engines.weighting._state.Checkpoint.remove", lambda self: None)
    whole = run_of(tmp_path / "run.npz", random_state=None).weights_
    np.testing.assert_array_equal(run_of(tmp_path / "run.npz", random_state=None).weights_, whole)
    assert not np.array_equal(run_of(None, random_state=None).weights_, whole)


def test_only_features_above_the_fisher_threshold_are_used():
    X, y = noise(20, 4), np.arange(20) % 2
    scores = FisherScore().fit(X, y).scores_
    ordered = np.sort(scores)

    def used(threshold):
        selector = OptimalFeatureWeighting(
            fisher_threshold=threshold, learner="centroid", subset_size=1, max_iter=2, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two steps do not converge
            return np.flatnonzero(selector.fit(X, y).weights_).tolist()

    assert used(None) == used(0.0) == [0, 1, 2, 3]
    assert used(float(ordered[1])) == sorted(np.argsort(scores)[2:].tolist())  # above it, not at it
    with pytest.raises(ValueError, match="less than the largest Fisher score"):
        used(float(ordered[-1]))


def test_weights_below_the_uniform_one_are_ranked_by_their_means_during_the_run():
    selector = OptimalFeatureWeighting()
    selector.weights_ = np.array([0.5, 0.25, 0.2, 0.05, 0.0])
    way = np.array([[0.3, 0.2, 0.1, 0.2, 0.0], [0.3, 0.2, 0.1, 0.4, 0.0]])
    selector.history_ = SimpleNamespace(weights=way, steps=np.arange(2))
    found = selector._ranked_scores(np.array([0, 1, 2, 3]))
    np.testing.assert_allclose(found, [0.5, 0.25, 0.999 * 0.25 / 3, 0.999 * 0.25, 0.0])
    selector.history_ = SimpleNamespace(weights=way[:0], steps=np.arange(0))
    np.testing.assert_array_equal(selector._ranked_scores(np.array([0, 1, 2, 3])), selector.weights_)


def test_default_sizes():
    experiment = SimpleNamespace(n_features=50, subset_size=5, bootstrap_size=40)
    selector = OptimalFeatureWeighting(method="exact", max_iter=None)
    selector._resolve_sizes(experiment)
    assert (selector.subset_size_, selector.batch_size_, selector.max_iter_) == (5, 1024, 1000)
    selector = OptimalFeatureWeighting(batch_size=3, max_iter=20, step_size=0.5)
    selector._resolve_sizes(experiment)
    assert (selector.subset_size_, selector.batch_size_, selector.max_iter_) == (5, 3, 20)
    assert selector._steps(experiment) == GivenSteps(0.5, 20.0)
    selector.step_offset = 4.0
    assert selector._steps(experiment) == GivenSteps(0.5, 4.0)
    selector.step_size = None
    steps, wanted = selector._steps(experiment), AdaptiveSteps(50, 5, 3, 20, 1 / 40)
    assert type(steps) is AdaptiveSteps
    assert steps.describe() == wanted.describe()
