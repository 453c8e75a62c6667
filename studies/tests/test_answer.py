"""The study of the default answer: its peers, its data on other computers, and runs that are stopped."""

import numpy as np
import pytest
from sklearn.feature_selection import f_classif

from zeronorm_studies import real_data, runner
from zeronorm_studies.declared.answer import (
    OURS,
    STUDY,
    Configuration,
    Plan,
    by_data,
    common_errors,
    kind_of,
    mean_ranks,
    trial_errors,
)
from zeronorm_studies.peers import OwnChoice, Ranking, by_relevance_and_redundancy
from zeronorm_studies.results import Results
from zeronorm_studies.study import Data, Study, Trial


def row(data, config, trial, size, error, **more):
    return {"data": data, "configuration": config, "trial": trial, "asked_size": size,
            "balanced_error_rate": error, **more}  # fmt: skip


def draw(trial):
    rng = np.random.default_rng(trial)
    X, y = rng.normal(size=(30, 6)), np.arange(30) % 2
    return Trial(X, y, np.arange(20), np.arange(20, 30))


def small_plan():
    data = tuple(Data(name, draw, 3) for name in ("first", "second"))
    return Plan(data, (Configuration("one", "fisher"), Configuration("two", "random")), (2,))


def results_of(rows, n_features=6):
    def wide(trial):
        return Trial(np.zeros((4, n_features)), np.zeros(4), np.arange(2), np.arange(2, 4))

    labels = dict.fromkeys(entry["configuration"] for entry in rows)
    data = tuple(Data(name, wide, 3) for name in dict.fromkeys(entry["data"] for entry in rows))
    plan = Plan(data, tuple(map(Configuration, labels)), (None,), metrics=("balanced_error_rate",))
    return Results(plan, rows)


def test_errors_are_compared_on_the_folds_that_both_have():
    rows = [row("d", "a", 0, None, 0.1), row("d", "a", 1, None, 0.5), row("d", "a", 2, None, None),
            row("d", "b", 0, None, 0.2), row("d", "b", 1, None, None), row("e", "a", 0, None, 0.3)]  # fmt: skip
    found = results_of(rows)
    assert by_data(trial_errors(found, "a")) == {"d": pytest.approx(0.3), "e": 0.3}
    assert common_errors(found, ("a", "b")) == {"a": {"d": 0.1}, "b": {"d": 0.2}}


def test_a_fold_counts_only_if_all_sizes_ended():
    rows = [
        row("d", "a", trial, size, 0.1 if (trial, size) != (1, 5) else None)
        for trial in (0, 1)
        for size in (5, 10)
    ]
    assert list(trial_errors(results_of(rows), "a")) == [("d", 0)]


def test_mean_ranks_are_given_by_kind_of_data():
    names = ("trace", "arcene")  # with several classes, with two
    rows = [row(name, f"{config} at fixed sizes", 0, 5, error)
            for name in names for config, error in (("a", 0.1), ("b", 0.2))]  # fmt: skip
    found = mean_ranks(results_of(rows))
    assert found == {kind: {"a at fixed sizes": 1.0, "b at fixed sizes": 2.0}
                     for kind in ("wide, several classes (1)", "wide, two classes (1)")}  # fmt: skip
    assert kind_of(results_of(rows, n_features=3), "trace") == "tall"


def test_tasks_are_computed_trial_by_trial():
    plan = small_plan()
    trials = [trial for _, _, trial in runner._jobs(plan, {})]
    assert trials == sorted(trials)
    assert len(trials) == 12


def test_a_run_that_reached_its_limit_can_be_continued(tmp_path):
    study = Study("s", "t", "source", "about", "cost", small_plan, small_plan)
    none = runner.run_study(study, journal=tmp_path, limit_s=0.0)
    assert {entry["error"] for entry in none.rows} == {runner.NOT_REACHED}
    assert not list(tmp_path.glob("*.json"))
    done = runner.run_study(study, journal=tmp_path, in_process=True)
    assert {entry["error"] for entry in done.rows} == {None}
    again = runner.run_study(study, journal=tmp_path, limit_s=0.0)
    assert again.rows == done.rows


def test_the_keys_of_the_journal_hold_no_compiled_code():
    """The bytecode of a function differs between versions of Python."""
    plan = STUDY.full()
    for config in plan.configs:
        for part in (runner.build_selector(config), runner.build_estimator(config, plan)):
            values = part.get_params().values() if part is not None else ()
            assert not any(hasattr(value, "__code__") for value in values)
    assert plan.configs[0].label == OURS


def test_collected_data_are_read_instead_of_those_of_the_package(tmp_path, monkeypatch):
    X, y = np.array([[1.0, np.nan], [0.1, 2.0]]), np.array(["a", "b"])
    monkeypatch.setitem(real_data.PACKAGED, "two words", lambda: (X, y))
    real_data.collect(tmp_path, ["two words"])
    monkeypatch.setitem(real_data.PACKAGED, "two words", None)
    monkeypatch.setenv("ZERONORM_DATA", str(tmp_path))
    found, target = real_data.loaded.__wrapped__("two words")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, X)
    assert target.tolist() == ["a", "b"]


def test_relevance_and_redundancy_as_the_formula_is_written():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 7)), np.arange(40) % 3
    X[:, 1] = X[:, 0] + 0.3 * rng.normal(size=40)
    X[:, :2] += y[:, None]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    F, correlation = f_classif(X, y)[0], np.abs(np.corrcoef(X.T))
    expected = [int(F.argmax())]
    while len(expected) < 7:
        left = [k for k in range(7) if k not in expected]
        expected.append(max(left, key=lambda k: F[k] / correlation[k, expected].mean()))
    assert np.argsort(-by_relevance_and_redundancy(X, y)).tolist() == expected


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_peer_that_is_installed_finds_a_clear_feature(task):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    X[:, 3] *= 3.0
    y = X[:, 3] if task == "regression" else (X[:, 3] > 0).astype(int)
    from zeronorm_studies import peers
    from zeronorm_studies.declared.answer import _is_there

    classes = task == "classification"
    for name in filter(_is_there, peers.RANKINGS if classes else peers.RANKINGS_OF_NUMBERS):
        path = Ranking(name, task).fit(X, y).path_
        assert 3 in path.support(5)
        assert path.support(5).size == 5
    for name in filter(_is_there, peers.CLASSIFIERS if classes else peers.REGRESSORS):
        if "LightGBM" not in name:
            assert OwnChoice(name, task).fit(X, y).get_support()[3]
