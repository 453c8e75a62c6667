"""Features that can stand in for selected ones: the statistics, the decisions and their error rates."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from zeronorm import FisherScore, substitutes
from zeronorm.evaluation.stand_ins._answers import Substitutes
from zeronorm.evaluation.stand_ins._conditional import GivenColumns, take_over
from zeronorm.evaluation.stand_ins._tests import in_sequence


def copies(n=200, p=40, noise=0.05, seed=0, task="classification"):
    """Two causes, in columns 0 and 1; columns 7 and 8 are near copies of the first, 9 shares half of its variance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, [7, 8]] = X[:, [0]] + noise * X[:, [7, 8]]
    X[:, 9] = np.sqrt(0.5) * (X[:, 0] + X[:, 9])
    score = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n)
    return X, score if task == "regression" else (score > 0).astype(int)


def t_of_last(y, *columns):
    """The t statistic of the last column in least squares with an intercept."""
    X = np.column_stack([np.ones(len(y)), *columns])
    inverse = np.linalg.inv(X.T @ X)
    weights = inverse @ X.T @ y
    residual = y - X @ weights
    return weights[-1] / np.sqrt(residual @ residual / (len(y) - X.shape[1]) * inverse[-1, -1])


def test_statistics_are_those_of_least_squares():
    rng = np.random.default_rng(1)
    given, x, F = rng.normal(size=(50, 4)), rng.normal(size=50), rng.normal(size=(50, 3))
    F += x[:, None]
    y = x + given[:, 0] + rng.normal(size=50)
    found = take_over(GivenColumns.of(given, y[:, None]), x, F)
    assert found.t == pytest.approx(t_of_last(y, given, x), rel=1e-10)
    assert found.t_candidates == pytest.approx([t_of_last(y, given, f) for f in F.T], rel=1e-10)
    assert found.t_left == pytest.approx([t_of_last(y, given, f, x) for f in F.T], rel=1e-10)


def test_several_classes_are_tested_like_nested_linear_models():
    from scipy import stats

    rng = np.random.default_rng(2)
    given, x, f = rng.normal(size=(60, 2)), rng.normal(size=60), rng.normal(size=60)
    labels = rng.integers(3, size=60)
    indicators = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    found = take_over(GivenColumns.of(given, indicators), x, f[:, None])

    def residual(*columns):
        Z = np.column_stack([np.ones(60), *columns])
        return float(np.sum((x - Z @ np.linalg.lstsq(Z, x, rcond=None)[0]) ** 2))

    small, large = residual(given, f), residual(given, f, indicators[:, :2])
    F = ((small - large) / 2) / (large / (60 - 1 - 2 - 1 - 2))
    assert found.p_at_most(0.0)[0] == pytest.approx(stats.f.sf(F, 2, 54), rel=1e-9)


def test_p_values_of_the_share_that_is_left_are_uniform_at_the_boundary():
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(400):
        j = rng.normal(size=150)
        f = 0.5**0.5 * (j + rng.normal(size=150))
        y = j + rng.normal(size=150)
        # j has signal to noise 1 alone; given f, half of its variance is left, and half of its signal to noise.
        found = take_over(GivenColumns.of(np.empty((150, 0)), y[:, None]), j, f[:, None])
        p_values.append(float(found.p_at_least(0.5)[0]))
    rate = np.mean(np.array(p_values) <= 0.05)
    assert 0.02 <= rate <= 0.09
    assert 0.4 <= np.mean(p_values) <= 0.6


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_near_copies_stand_in_and_weaker_features_do_not(task):
    X, y = copies(n=300, task=task)
    found = substitutes(X, y, [0, 1], task=task)
    assert {each.name for each in found["x0"].substitutes} == {"x7", "x8"}
    assert found["x1"].status == "none"
    assert found.n_signatures == 3
    assert found.best_error is not None
    assert "x0 can be replaced by x" in found["x0"].sentence()


def test_an_exact_copy_stands_in():
    X, y = copies(noise=0.0)
    assert {each.index for each in substitutes(X, y, [0, 1])["x0"].substitutes} == {7, 8}


def test_a_copy_that_is_selected_too_is_named():
    X, y = copies()
    found = substitutes(X, y, [0, 1, 7])["x0"]
    assert found.status == "cannot be told"
    assert found.covered_by == ("x7",)
    assert "beside x7" in found.sentence()


def test_features_without_relation_have_no_substitutes():
    X, _ = copies(n=60, p=2000)
    y = np.arange(60) % 2
    found = substitutes(X, y, FisherScore(5).fit(X, y))
    assert found.n_signatures == 1
    assert all(not each.substitutes for each in found.features)


def test_few_samples_say_that_it_cannot_be_told_instead_of_naming_hundreds():
    rng = np.random.default_rng(0)
    cause = rng.normal(size=60)
    X = rng.normal(size=(60, 2000)) + cause[:, None]  # every feature is correlated by 0.5 with every other
    y = (cause + 0.5 * rng.normal(size=60) > 0).astype(int)
    found = substitutes(X, y, FisherScore(3).fit(X, y))
    assert all(each.status == "cannot be told" and each.reason for each in found.features)
    assert "for 3 it cannot be told" in found.sentence()


def test_as_many_features_as_samples_cannot_be_told():
    X, y = copies(n=40, p=60)
    found = substitutes(X, y, np.arange(45))
    assert {each.status for each in found.features} == {"cannot be told"}
    assert "as many selected features as independent samples" in found.features[0].reason


def test_covariates_are_given_in_every_test():
    """Against least squares; a feature that is like a selected one only through a covariate is no candidate."""
    X, y = copies(task="regression")
    X[:, 20] = X[:, 0] + X[:, 30]  # adjusted for column 30: a copy of the first
    X[:, 9] = X[:, 1] + 3.0 * X[:, 31]
    X[:, 10] = 3.0 * X[:, 31] + 0.1 * X[:, 10]
    y = y + 2.0 * X[:, 31]
    found = substitutes(X, y, [0, 9], task="regression", adjust=[30, 31])
    assert found["x0"].p_value == pytest.approx(0.0, abs=1e-6)
    assert {7, 8, 20} == {each.index for each in found["x0"].substitutes}
    assert {each.index for each in found["x9"].substitutes} == {1}
    assert {each.index for each in substitutes(X, y, [0, 9], task="regression")["x9"].substitutes} != {1}
    error = found.error
    full = np.column_stack([np.ones(200), X[:, [0, 9, 30, 31]]])
    residual = y - full @ np.linalg.lstsq(full, y, rcond=None)[0]
    assert error == pytest.approx(np.mean(residual**2) * 200 / 195, rel=0.1)  # of held-out samples


@pytest.mark.parametrize("adjust", [[], [30]])
def test_copies_stand_in_for_times_to_an_event(adjust):
    X, score = copies(n=300, task="regression")
    rng = np.random.default_rng(1)
    time, end = rng.exponential(np.exp(-score - X[:, 30])), rng.exponential(2.0, size=300)
    y = {"event": time <= end, "time": np.minimum(time, end)}
    found = substitutes(X, y, [0, 1], task="survival", adjust=adjust)
    assert {each.index for each in found["x0"].substitutes} == {7, 8}
    assert found["x1"].status == "none"
    assert found.metric == "concordance"
    assert found.error > 0.7


def test_sequence_ends_with_the_first_hypothesis_that_is_kept():
    np.testing.assert_array_equal(in_sequence(np.array([0.01, 0.04, 0.3, 0.001])), [0.01, 0.04, 0.3, 0.3])


def test_the_kind_of_container_and_its_scale_do_not_matter():
    X, y = copies()
    found = substitutes(X, y, [0, 1])
    mask = np.isin(np.arange(40), [0, 1])
    for other in (sparse.csr_array(X), np.asfortranarray(X)):
        assert substitutes(other, y, mask)["x0"].substitutes[0].index == found["x0"].substitutes[0].index
    scaled = substitutes(1e3 * X + 5.0, np.where(y, "b", "a"), mask)
    assert scaled["x0"].p_value == pytest.approx(found["x0"].p_value, rel=1e-6)


def test_repeated_samples_of_a_group_add_no_evidence():
    X, y = copies(n=60)
    found = substitutes(X, y, [0, 1])
    rows = np.repeat(np.arange(60), 4)
    grouped = substitutes(X[rows], y[rows], [0, 1], groups=rows)
    assert grouped["x0"].p_value == pytest.approx(found["x0"].p_value, rel=1e-6)
    assert grouped["x0"].n_open + len(grouped["x0"].substitutes) > 0


def test_the_answer_survives_json():
    X, y = copies()
    found = substitutes(X, y, [0, 1, 7])
    assert Substitutes.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert [row["feature"] for row in found.rows()][:1] == ["x0"]
    assert len(found.to_frame()) == len(found.rows())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"support": []}, "different positions from 0 to 39"),
        ({"support": [0, 0]}, "different positions"),
        ({"support": [0, 40]}, "different positions"),
        ({"support": [0.5]}, "different positions"),
        ({"level": 1.5}, "'level' parameter must be a number between 0 and 1"),
        ({"largest_loss": True}, "'largest_loss'"),
        ({"y": [0, 1]}, "y has 2 values, but X has 200 samples"),
        ({"task": "ranking"}, "'task' parameter"),
        (
            {"adjust": [1]},
            "'adjust' parameter must hold different positions from 0 to 39 that are not selected",
        ),
        ({"groups": [1, 2]}, "'groups' has 2 entries"),
        ({"feature_names": ["a"]}, "'feature_names' has 1 names"),
        ({"X": np.full((200, 40), np.nan)}, "NaN"),
    ],
)
def test_input_that_cannot_be_used(changed, message):
    X, y = copies()
    with pytest.raises(ValueError, match=message):
        substitutes(**{"X": X, "y": y, "support": [0, 1], **changed})


def simulation():
    """The script of the page on trust."""
    file = Path(__file__).parents[2] / "docs" / "trust" / "substitutes.py"
    spec = importlib.util.spec_from_file_location("trust_substitutes", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


def test_planted_substitutes_are_found_and_false_ones_are_rare():
    module = simulation()
    for setting in (
        module.Setting("real", "known", 200, 500),
        module.Setting("two classes", "known", 800, 500),
    ):
        row = module.row(setting, 5)
        assert row["substitutes found"] >= 0.95
        assert row["features with a false substitute"] <= 0.05
    row = module.row(module.Setting("real", "forward selection", 60, 2000, noise=1000.0), 5)
    assert row["features with a false substitute"] <= 0.05
