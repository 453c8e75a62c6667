"""Learning curves: nested training sets, the fitted law, and predictions for more samples."""

import importlib.util
import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from zeronorm import FisherScore, learning_curve
from zeronorm.evaluation.learning._answer import LearningCurve
from zeronorm.evaluation.learning._power_law import fit_power_laws
from zeronorm.evaluation.learning._prediction import Noise
from zeronorm.evaluation.learning._subsets import growing_splits
from zeronorm.selection.target import Labels, Real


def shifted(n=80, p=60, shift=1.0, seed=0):
    """Two classes that differ in five features."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, p))
    X[:, :5] += shift * y[:, None]
    return X, y


@pytest.mark.parametrize("with_groups", [False, True])
def test_training_sets_are_nested_stratified_and_divide_no_group(with_groups):
    y = np.repeat(["a", "b", "c"], [40, 30, 30])
    groups = np.repeat(np.arange(50), 2) if with_groups else None
    drawn = growing_splits(y, groups, Labels, cv=4, draws=2, n_sizes=5, seed=0)
    assert len(drawn.splits) == 2 * 4 * 5
    for first in range(0, len(drawn.splits), 5):
        sizes = drawn.splits[first : first + 5]
        for smaller, larger in pairwise(sizes):
            assert set(smaller.train) < set(larger.train)
            assert np.array_equal(smaller.test, larger.test)
        for split in sizes:
            assert not set(split.train) & set(split.test)
            shares = np.array([np.mean(y[split.train] == label) for label in "abc"])
            assert np.abs(shares - (0.4, 0.3, 0.3)).max() < 0.12
            if groups is not None:
                assert np.unique(np.bincount(groups[split.train])).tolist() in ([0, 2], [2])
    assert all(split.train.size + split.test.size == 100 for split in drawn.of_first_draw())


def test_real_targets_have_nested_training_sets():
    drawn = growing_splits(np.arange(60.0), None, Real, cv=5, draws=1, n_sizes=4, seed=1)
    assert [split.train.size for split in drawn.splits[:4]] == sorted(
        split.train.size for split in drawn.splits[:4]
    )


def test_planted_curves_are_found():
    m = np.array([20.0, 30.0, 45.0, 70.0, 100.0])
    planted = [(0.1, 2.0, 0.7), (0.0, 1.0, 0.3), (0.05, 30.0, 1.5)]
    values = np.array([a + b * m**-c for a, b, c in planted])
    found = fit_power_laws(m, values, m, 0.0)
    for at, (a, b, c) in enumerate(planted):
        assert found.c[at] == pytest.approx(c)
        assert found.at(400.0)[at] == pytest.approx(a + b * 400.0**-c, rel=1e-6)


def test_a_rising_error_is_fitted_by_a_constant():
    m = np.array([20.0, 40.0, 80.0, 160.0])
    law = fit_power_laws(m, np.array([[0.2, 0.25, 0.3, 0.3]]), m, 0.0)
    assert law.b[0] == 0.0
    assert law.a[0] == pytest.approx(np.average([0.2, 0.25, 0.3, 0.3], weights=m))


def test_no_law_falls_below_the_least_possible_value():
    m = np.array([20.0, 40.0, 80.0, 160.0])
    law = fit_power_laws(m, np.array([[0.4, 0.2, 0.1, 0.02]]), m, 0.0)
    assert law.a[0] >= 0.0
    assert law.at(1e6)[0] >= 0.0


def test_intervals_of_planted_curves_hold_what_is_measured_with_twice_as_many_samples():
    rng = np.random.default_rng(5)
    m = np.array([30.0, 45.0, 70.0, 105.0, 160.0])
    true = 0.1 + 1.5 * m**-0.6
    covered = []
    for _ in range(60):
        shift, then = 0.03 * rng.normal(), 0.03 / 2**0.5 * rng.normal()
        by_draw = true + shift + 0.02 * np.sqrt(160.0 / m) * rng.normal(size=(5, 5))
        _, _, found = Noise.of(by_draw, m, 0.03**2, 0.0, np.full((5, 5), 0.03**2)).predictions(rng, 0.95)
        _, low, high = found[0]
        covered.append(low <= 0.1 + 1.5 * 320.0**-0.6 + then <= high)
    assert np.mean(covered) >= 0.9


def test_the_error_falls_with_more_samples_and_the_sentence_says_so():
    X, y = shifted(n=160, p=400, shift=0.8)
    curve = learning_curve(FisherScore(5), X, y, draws=3)
    assert curve.points[0].value > curve.points[-1].value
    assert curve.verdict == "helps"
    assert curve.predictions[1].value < curve.predictions[0].value < curve.now
    assert curve.sentence().startswith("Twice as many samples would be expected to lower the error rate from")
    assert curve.at(curve.points[-1].n_train) == pytest.approx(curve.now)


def test_easy_data_need_no_more_samples():
    X, y = shifted(n=120, p=10, shift=1.0)
    X[:, :5] = X[:, :1]  # one feature, five times: an error that no sample can lower
    curve = learning_curve(FisherScore(1), X, y, draws=3)
    assert curve.verdict == "does not help"
    assert "not expected to help" in curve.sentence()


def test_at_chance_nothing_can_be_told():
    X, y = shifted(shift=0.0)
    curve = learning_curve(FisherScore(5), X, y, draws=2)
    assert curve.at_chance
    assert curve.verdict == "cannot be told"
    assert "not shown to be better than chance" in curve.sentence()


def test_scores_to_maximise_and_real_targets():
    X, y = shifted(n=120, p=200)
    curve = learning_curve(FisherScore(5), X, y, draws=2, metric="auc")
    assert curve.now <= curve.predictions[0].value <= curve.predictions[0].high <= 1.0
    target = X[:, :5].sum(axis=1)
    real = learning_curve(
        FisherScore(5, task="regression"), X, target, task="regression", metric="r2", draws=2
    )
    assert real.predictions[0].high <= 1.0
    assert real.predictions[0].low <= real.predictions[0].value


def test_the_same_seed_gives_the_same_curve_for_any_container():
    X, y = shifted()
    first = learning_curve(FisherScore(5), X, y, draws=2, random_state=3)
    assert learning_curve(FisherScore(5), X, y, draws=2, random_state=3) == first
    other = learning_curve(FisherScore(5), sparse.csr_array(X), np.where(y, "b", "a"), draws=1)
    assert other.n_samples == 80


def test_the_curve_survives_json():
    X, y = shifted()
    curve = learning_curve(FisherScore(5), X, y, draws=1)
    assert LearningCurve.from_dict(json.loads(json.dumps(curve.to_dict()))) == curve
    assert [row["kind"] for row in curve.rows()] == ["measured"] * 6 + ["predicted"] * 2
    assert len(curve.to_frame()) == 8


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"draws": 0}, "'draws' parameter must be a count of at least 1"),
        ({"n_sizes": 3}, "'n_sizes' parameter must be a count of at least 4"),
        ({"n_sizes": 2.5}, "'n_sizes'"),
        ({"confidence": 1.0}, "'confidence'"),
        ({"task": "survival"}, "'task'"),
        ({"groups": [1]}, "'groups' has 1 entries"),
        (
            {"y": np.arange(80) == 79},
            "too few samples for a learning curve: the smallest class has 1 samples, and 7",
        ),
        ({"groups": np.arange(80) // 20}, "smallest class has . sample groups"),
        ({"metric": "nothing"}, "nothing"),
    ],
)
def test_input_that_cannot_be_used(changed, message):
    X, y = shifted()
    with pytest.raises(ValueError, match=message):
        learning_curve(FisherScore(5), **{"X": X, "y": y, **changed})


def test_a_procedure_that_fails_on_few_samples_says_so():
    X, y = shifted(n=40, p=5)
    with pytest.warns(match="failed"), pytest.raises(ValueError, match="failed on 30 of 30"):
        learning_curve(FisherScore(9), X, y, draws=1)


def test_the_error_with_all_samples_is_in_the_interval_predicted_from_half():
    file = Path(__file__).parents[2] / "docs" / "trust" / "learning_curves.py"
    spec = importlib.util.spec_from_file_location("trust_learning_curves", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.HALVES = 2
    names = ("3 of 1000, strong", "40 of 500, weak", "2 of 50, real target", "wine", "breast-cancer")
    covered = [row["covered"] for name in names for row in module.rows_of(name, 3)]
    assert sum(covered) >= 8  # of 10; the table of all data sets is in docs/trust
