"""Default settings of Consensus that depend on the data."""

from __future__ import annotations

import numpy as np
import pytest

from small_problems import noise, problem_of
from zeronorm import RFE, FisherScore
from zeronorm.selectors.meta import _consensus as consensus
from zeronorm.selectors.meta._consensus import Consensus


def test_elimination_on_large_data_removes_tenths(monkeypatch):
    wide = problem_of([0, 1], np.zeros((2, 5)))  # 20 multiplications
    for most, settings in ((20.0, {}), (19.9, {"step": 0.1})):
        monkeypatch.setattr(consensus, "MUCH_WORK", most)
        assert consensus.quick_elimination(wide) == settings
    tall = problem_of(np.arange(3000) % 2, np.zeros((3000, 3)))
    assert consensus.quick_elimination(tall) == {"step": 0.1, "loss": "squared"}
    few, many = (
        dict(consensus.default_candidates("classification", settings, ("rfe", "fisher")))
        for settings in ({}, {"step": 0.1})
    )
    assert (few["rfe"].step, many["rfe"].step) == (RFE().step, 0.1)
    candidates = consensus.default_candidates("regression", {})
    assert [name for name, _ in candidates] == list(consensus.DEFAULT_METHODS["regression"])
    assert all(selector.task == "regression" for _, selector in candidates)
    X = np.zeros((4, 3))
    assert consensus.work_of_elimination(problem_of([0, 1, 0, 1], X)) == 4 * 3 * 3
    three = problem_of([0, 1, 2, 1], X, "multiclass", classes=np.arange(3))
    assert consensus.work_of_elimination(three) == 4 * 3 * 3 * 3
    assert consensus.work_of_elimination(problem_of([0, 1], np.zeros((2, 5)))) == 2 * 5 * 2


def test_how_many_features_are_put_in_order_again():
    for params, count in (
        ({}, 100),
        ({"aggregation": "frequency"}, 0),
        ({"selectors": [FisherScore()]}, 0),
        ({"refine": 7}, 7),
        ({"refine": 7, "aggregation": "frequency"}, 7),
    ):
        assert Consensus(**params)._length_of_shortlist() == count


@pytest.mark.parametrize(
    ("size", "p", "found"), [(None, 12, 3), (None, 13, 4), (None, 2, 1), (4, 12, 4), (40, 12, 12)]
)
def test_how_many_features_of_each_selector_count(size, p, found):
    X = np.random.default_rng(0).normal(size=(20, p))
    chosen = Consensus([FisherScore()], subset_size=size, refine=0).fit(X, np.arange(20) % 2)
    assert chosen.subset_size_ == found


@pytest.mark.parametrize(
    ("p", "refine", "n_refined"), [(1, "auto", 0), (2, "auto", 2), (3, 2, 2), (3, 1, 0), (3, 9, 3)]
)
def test_two_features_can_be_put_in_order(p, refine, n_refined, monkeypatch):
    asked = [0]

    def refined(path, problem, count):
        asked.append(count)
        return path

    monkeypatch.setattr(consensus, "refined", refined)
    monkeypatch.setattr(consensus, "default_candidates", lambda *given: [("fisher", FisherScore())])
    Consensus(refine=refine).fit(noise(12, p), np.arange(12) % 2)
    assert asked[-1] == n_refined


@pytest.mark.parametrize(("task", "y"), [("binary", [0, 1, 0, 1]), ("regression", [0.5, 1.0, 2.0, 1.5])])
def test_the_use_of_the_gram_matrix_depends_on_the_kind_of_target(task, y, monkeypatch):
    asked = []
    monkeypatch.setattr(consensus, "MUCH_WORK", 0.0)
    for is_preferred, settings in ((True, {"step": 0.1}), (False, {"step": 0.1, "loss": "squared"})):

        def prefers(shape, loss, answer=is_preferred):
            asked.append((shape, not loss.for_classes_only))
            return answer

        monkeypatch.setattr(consensus, "prefers_gram", prefers)
        assert consensus.quick_elimination(problem_of(y, task=task)) == settings
    assert asked == [((4, 3), task == "regression")] * 2
