"""A list of features that somebody else chose: its error, random lists, another list, the list extended."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import zeronorm

FAST = {"method": "fisher", "features": 3, "cv": 3, "random_lists": 19}


def frame_of(n=60, p=20, seed=0, shift=1.2):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, :4] += shift * y[:, None]
    return pd.DataFrame(X, columns=[f"g{i}" for i in range(p)]).assign(kind=np.where(y == 1, "ill", "well"))


def run_list(panel, frame=None, **options):
    return zeronorm.test_panel(panel, frame_of() if frame is None else frame, "kind", **(FAST | options))


def test_the_error_is_that_of_the_predictor_on_the_columns_of_the_list():
    frame = frame_of()
    result = run_list(["g0", "g7"], frame, random_lists=0)
    X, y = frame[["g0", "g7"]].to_numpy(), frame["kind"].to_numpy()
    errors = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(X, y):
        model = make_pipeline(StandardScaler(), SVC(kernel="linear", class_weight="balanced", tol=1e-10))
        found = model.fit(X[train], y[train]).predict(X[test])
        errors.append(np.mean([np.mean(found[y[test] == label] != label) for label in ("ill", "well")]))
    assert result.table[0]["value"] == pytest.approx(np.mean(errors))
    assert result.panel["p_value"] is None


def test_a_good_list_is_better_than_random_ones_and_a_bad_one_is_not():
    frame = frame_of(p=80)
    good, bad = run_list(["g0", "g1", "g2"], frame), run_list(["g10", "g11", "g12"], frame)
    assert good.panel["p_value"] == 1 / 20
    assert "better than random lists of its size (p = 0.05)" in good.headline
    assert bad.panel["p_value"] > 0.2
    assert "No evidence" in bad.headline
    assert [row["method"] for row in good.table] == ["list", "fisher", "baseline"]


def test_the_p_value_of_a_random_list_is_uniform():
    """The list is drawn like the random ones, so that the p-value has its level whatever the features are worth."""
    frame, rng = frame_of(40, 12), np.random.default_rng(3)
    values = []
    for seed in range(30):
        panel = [f"g{i}" for i in rng.choice(12, 2, replace=False)]
        found = run_list(panel, frame, features=1, cv=2, max_features=1, random_lists=9, random_state=seed)
        values.append(found.panel["p_value"])
    ranks = np.round(10 * np.asarray(values)) - rng.uniform(size=30)  # ties of few values broken at random
    assert stats.kstest(ranks / 10, "uniform").pvalue > 0.01


def test_the_extended_list_always_has_the_list():
    result = run_list(["g10", "g11"], extend=2)
    records = result.records.to_dict(as_series=False)
    extended = [
        set(s) for s, m in zip(records["selected"], records["method"], strict=True) if m == "list + 2"
    ]
    assert len(extended) == 3
    assert all({10, 11} < found and len(found) == 4 for found in extended)
    assert {"g10", "g11"} < set(result.panel["selected"]["list + 2"])
    assert any(note.startswith("The extended list adds") for note in result.notes)
    by_name = {row["method"]: row["value"] for row in result.table}
    assert by_name["list + 2"] < by_name["list"]


def test_names_that_the_table_lacks_are_noted_and_the_rest_is_used():
    result = run_list(["g0", "G1", "g0", "nothing at all"])
    assert result.panel["features"] == ["g0"]
    assert result.panel["missing"] == ["G1", "nothing at all"]
    assert any("lacks 2 features of the list" in note and "'g1' for 'G1'" in note for note in result.notes)
    assert any("1 repeated name" in note for note in result.notes)
    with pytest.raises(ValueError, match="names no feature of the table"):
        run_list(["nothing"])


def test_a_text_column_stands_for_all_its_levels():
    frame = frame_of().assign(site=np.asarray(["a", "b", "c"])[np.arange(60) % 3])
    assert run_list(["site"], frame).panel["features"] == ["site=a", "site=b", "site=c"]


@pytest.mark.parametrize(
    "text",
    [
        "g0\ng1\n\n# a comment\n",
        "g0,g1",
        "rank,name\n1,g0\n2,g1\n",
        "﻿gene\ng0\ng1",
        "g0\tup\ng1\tdown\n",
        "Name\ng0\ng1",
    ],
)
def test_files_of_names(text, tmp_path):
    (tmp_path / "list.txt").write_text(text, encoding="utf-8")
    assert run_list(tmp_path / "list.txt").panel["features"] == ["g0", "g1"]


def test_lists_that_cannot_be_read_are_errors(tmp_path):
    with pytest.raises(ValueError, match="which does not exist"):
        run_list("g0")
    (tmp_path / "empty.txt").write_text("\n# nothing\n")
    with pytest.raises(ValueError, match="holds no name"):
        run_list(tmp_path / "empty.txt")
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00g")
    with pytest.raises(ValueError, match="not a text file"):
        run_list(tmp_path / "binary.txt")
    with pytest.raises(ValueError, match="Ask for at most 18"):
        run_list(["g0", "g1"], extend=30)
    with pytest.raises(ValueError, match="whole number of at least 0"):
        run_list(["g0"], random_lists=-1)


def test_the_result_is_saved_with_its_report(tmp_path):
    result = run_list(["g0", "g1"], out=tmp_path / "out")
    loaded = zeronorm.Result.load(tmp_path / "out")
    assert loaded.panel == result.panel
    page = (tmp_path / "out" / "report.html").read_text()
    assert 'data-figure="random-lists"' in page
    assert "Random lists of 2 features have a mean" in page


def test_real_targets_and_a_list_of_all_features():
    frame = frame_of(p=6).assign(kind=lambda f: f["g0"] + f["g1"])
    result = run_list([f"g{i}" for i in range(6)], frame, task="regression")
    assert result.panel["random_values"] == []
    assert result.table[0]["metric"] == "mse"
    assert result.table[0]["value"] < result.chance


def test_a_list_beside_covariates():
    """Age alone, the list alone and both; a list that only follows the age adds nothing."""
    rng = np.random.default_rng(0)
    age, X = rng.normal(size=80), rng.normal(size=(80, 10))
    X[:, :3] += 2.0 * age[:, None]
    ill = age + 1.5 * X[:, 8] + 0.3 * rng.normal(size=80) > 0
    frame = pd.DataFrame(X, columns=[f"g{i}" for i in range(10)]).assign(
        age=age, kind=np.where(ill, "ill", "well")
    )
    options = FAST | {"adjust": "age", "random_lists": 9, "metric": "auc"}
    good = run_list(["g8"], frame, **options, permutations=19)
    assert [row["method"] for row in good.table] == ["list", "fisher", "covariates alone", "baseline"]
    added = good.table[0]["added"]
    assert added["covariates_alone"] == pytest.approx(good.table[2]["value"])
    assert added["both"] == pytest.approx(good.table[0]["value"])
    assert added["both"] > added["features_alone"]
    assert good.headline.startswith("The list of 1 feature adds to age: area under the ROC curve 0.")
    assert good.headline.endswith(", p = 0.05")
    assert good.table[1]["p_value"] is None
    assert "g8" in good.panel["selected"]["fisher"]
    followers = run_list(["g0", "g1"], frame, **options, permutations=0)
    assert followers.headline == "No evidence that the list of 2 features adds anything to age"


def test_a_list_for_times_to_an_event(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 30))
    time, end = rng.exponential(np.exp(-X[:, 0] - X[:, 7])), rng.exponential(2.0, size=90)
    frame = pd.DataFrame(X, columns=[f"g{i}" for i in range(30)])
    frame = frame.assign(months=np.minimum(time, end), died=(time <= end).astype(int))
    given = FAST | {"method": "cox-score", "extend": 1, "random_lists": 19}
    result = zeronorm.test_panel(["g0", "g7"], frame, time="months", event="died", adjust="g2", **given)
    assert result.table[0]["metric"] == "concordance"
    assert result.panel["p_value"] == 1 / 20
    page = result.report(tmp_path).read_text()
    assert "test of a list" in page
    assert "What the features add to g2" in page
    assert "Comparison of the methods" not in page
    assert "The list was compared with others" in page
