"""What OptimalFeatureWeighting fills in, preselects, hands to a run and keeps of it."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from small_problems import noise, problem_of
from zeronorm import FisherScore, OptimalFeatureWeighting
from zeronorm.engines.weighting.steps import AdaptiveSteps, GivenSteps
from zeronorm.selectors.stochastic import ofw


def test_what_a_run_of_weights_is_made_of(monkeypatch):
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
        run_state, _, _, steps, stopping, watch, max_iter, checkpoint, every = made[-1]
        assert (stopping.window, stopping.tol, stopping.first_lag) == (7, ofw.DEFAULT_TOL, lag)
        assert stopping.first_settled == steps.first_settled
        assert (run_state, max_iter, checkpoint, every) == (state, 30, None, 50)
        assert watch == ofw.CollapseWatch(2, can_go_back=True)
    selector.tol = 0.3
    selector._run_stochastic(experiment, state, problem)
    assert made[-1][4].tol == 0.3


def test_weights_and_their_history_among_all_features():
    history = SimpleNamespace(steps=np.arange(2), weights=np.array([[0.5, 0.5], [0.2, 0.8]]))
    state = SimpleNamespace(weights=np.array([0.3, 0.7]), history=history, n_redrawn=4, n_steps_back=1)
    selector = OptimalFeatureWeighting()
    selector._keep(state, SimpleNamespace(reason="because"), np.array([1, 3]), 4)
    assert selector.weights_.tolist() == [0.0, 0.3, 0.0, 0.7]
    assert selector.history_.weights.tolist() == [[0.0, 0.5, 0.0, 0.5], [0.0, 0.2, 0.0, 0.8]]
    assert (selector.n_redrawn_, selector.n_steps_back_, selector.stop_reason_) == (4, 1, "because")


def test_settings_that_a_checkpoint_must_agree_on(monkeypatch):
    monkeypatch.setattr(ofw, "Checkpoint", lambda path, settings: (path, settings))
    monkeypatch.setattr(ofw, "data_digest", lambda design, codes: f"{design} {codes}")
    experiment = SimpleNamespace(describe=lambda: {"learner": "a"}, codes="codes")
    steps, state = SimpleNamespace(describe=lambda: {"step_size": 2.0}), SimpleNamespace(seed=5)
    selector = OptimalFeatureWeighting(checkpoint="file", noise=0.3, tol=0.1, window=4)
    selector.batch_size_, selector.max_iter_ = 6, 70
    path, settings = selector._open_checkpoint(experiment, steps, state, "design")
    assert path == "file"
    assert settings == {
        "learner": "a",
        "step_size": 2.0,
        "method": selector.method,
        "noise": 0.3,
        "batch_size": 6,
        "tol": 0.1,
        "window": 4,
        "max_iter": 70,
        "data": "design codes",
    }
    selector.random_state = 0
    assert selector._open_checkpoint(experiment, steps, state, "design")[1]["seed"] == 5
    selector.checkpoint = None
    assert selector._open_checkpoint(experiment, steps, state, "design") is None


def test_features_that_optimal_feature_weighting_looks_at():
    X, y = noise(20, 4), np.arange(20) % 2
    scores = FisherScore().fit(X, y).scores_
    ordered = np.sort(scores)

    def looked_at(threshold):
        selector = OptimalFeatureWeighting(
            fisher_threshold=threshold, learner="centroid", subset_size=1, max_iter=2, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two steps settle nothing
            return np.flatnonzero(selector.fit(X, y).weights_).tolist()

    assert looked_at(None) == looked_at(0.0) == [0, 1, 2, 3]
    assert looked_at(float(ordered[1])) == sorted(np.argsort(scores)[2:].tolist())  # above it, not at it
    with pytest.raises(ValueError, match="less than the largest Fisher score"):
        looked_at(float(ordered[-1]))


def test_weights_below_the_uniform_one_are_ranked_by_the_way():
    selector = OptimalFeatureWeighting()
    selector.weights_ = np.array([0.5, 0.25, 0.2, 0.05, 0.0])
    way = np.array([[0.3, 0.2, 0.1, 0.2, 0.0], [0.3, 0.2, 0.1, 0.4, 0.0]])
    selector.history_ = SimpleNamespace(weights=way, steps=np.arange(2))
    found = selector._ranked_scores(np.array([0, 1, 2, 3]))
    np.testing.assert_allclose(found, [0.5, 0.25, 0.999 * 0.25 / 3, 0.999 * 0.25, 0.0])
    selector.history_ = SimpleNamespace(weights=way[:0], steps=np.arange(0))
    np.testing.assert_array_equal(selector._ranked_scores(np.array([0, 1, 2, 3])), selector.weights_)


def test_numbers_that_the_user_left_open():
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
