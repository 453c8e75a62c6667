"""Substitutes, learning curve and explanations of a run: in memory, stored, and from the file of the data."""

import json

import numpy as np
import polars as pl
import pytest

import zeronorm
from zeronorm.cli._main import run
from zeronorm.workflow._result import Result

N, P = 150, 40


def with_copies(n=N, p=P, seed=0):
    """Two causes; CD4 and CD4b are near copies of the first, CD8A is related to it, the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, [2, 3]] = X[:, [0]] + 0.05 * X[:, [2, 3]]
    X[:, 4] = 0.7 * X[:, 0] + 0.7 * X[:, 4]
    names = ["cause", "other", "CD4", "CD4b", "CD8A", *(f"g{i}" for i in range(5, p))]
    y = np.where(X[:, 0] + X[:, 1] + 0.4 * rng.normal(size=n) > 0, "sick", "well")
    return pl.DataFrame({**{name: X[:, i] for i, name in enumerate(names)}, "state": y})


OPTIONS = {"method": "gram-schmidt", "features": 2, "permutations": 0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the data, and the result of a selection from them with both answers."""
    folder = tmp_path_factory.mktemp("questions")
    with_copies().write_csv(folder / "data.csv")
    zeronorm.select(
        folder / "data.csv", "state", out=folder / "run", substitutes=True, learning_curve=True, **OPTIONS
    )
    return folder


@pytest.fixture(scope="module")
def result(folder):
    return Result.load(folder / "run")


def test_the_answers_are_stored_and_read_again(folder, result):
    found = result.substitutes()
    near = {"cause", "CD4", "CD4b"}
    chosen = next(feature for feature in found.features if feature.name in near)
    assert {each.name for each in chosen.substitutes} == near - {chosen.name}
    rows = pl.read_csv(folder / "run" / "substitutes.csv")
    assert set(rows.filter(pl.col("feature") == chosen.name)["substitute"]) == near - {chosen.name}
    assert len(result.learning_curve().points) == 6


def test_the_report_shows_them(folder):
    page = (folder / "run" / "report.html").read_text(encoding="utf-8")
    assert "Which others would do as well" in page
    assert 'data-figure="learning-curve"' in page
    assert "it cannot be told" in page


def test_answers_of_a_loaded_result_are_those_in_memory(folder):
    run_ = zeronorm.select(folder / "data.csv", "state", **OPTIONS)
    assert run_.stored_substitutes == {}
    in_memory = run_.substitutes()
    run_.save(folder / "bare")
    again = Result.load(folder / "bare")
    assert again.run is None
    assert again.substitutes() == in_memory
    assert not (folder / "bare" / "substitutes.csv").exists()


def test_arrays_are_kept_in_memory_and_missed_after_loading(tmp_path):
    table = with_copies()
    X, y = table.drop("state").to_numpy(), table["state"].to_numpy()
    selection = zeronorm.select(X, y, **OPTIONS)
    assert selection.substitutes().n_signatures >= 2
    selection.save(tmp_path / "run")
    with pytest.raises(ValueError, match="'target' was given as an array or an object"):
        Result.load(tmp_path / "run").substitutes()


def test_why_a_copy_is_not_selected(result):
    taken = next(name for name in result.features if name != "other")
    left_out = next(name for name in ("cause", "CD4", "CD4b") if name not in result.features)
    found = result.explain(left_out)
    assert not found.is_selected
    assert found.replaced_by == taken
    assert found.p_without < 1e-6 < found.p_given_selected
    assert abs(found.correlation) > 0.99
    assert abs(found.error_swapped - found.error) <= found.standard_error
    assert f"{taken} takes its place" in str(found)
    assert found.ranks["gram-schmidt"] > 2


def test_why_a_feature_is_selected(result):
    found = result.explain("other")
    assert found.is_selected
    assert found.p_given_selected < 1e-6
    assert found.error_with > found.error + found.standard_error
    assert "without it" in str(found)
    assert "similar enough to other to stand in for it" in str(found)


def test_why_noise_is_not_selected(result):
    found = result.explain("g20")
    assert found.replaced_by is None
    assert "No single selected feature takes its place" in str(found)
    assert found.p_holm >= found.q_value >= found.p_value


def test_the_p_values_are_those_of_the_report(folder):
    run_ = zeronorm.select(folder / "data.csv", "state", **OPTIONS)
    feature = run_.selected[0]
    found = run_.explain(feature.name)
    assert (found.p_value, found.q_value, found.effect) == (feature.p_value, feature.q_value, feature.effect)


def test_similar_names_are_offered(result):
    with pytest.raises(ValueError, match=r"no feature named 'cd8a'. Did you mean 'CD8A'"):
        result.explain("cd8a")


def test_without_data_the_answer_says_what_is_not_known(folder, tmp_path):
    moved = tmp_path / "run"
    moved.mkdir()
    for name in ("result.json", "records.parquet"):
        text = (folder / "run" / name).read_bytes()
        (moved / name).write_bytes(text.replace(str(folder / "data.csv").encode(), b"gone.csv"))
    alone = Result.load(moved)
    assert "which need the data" in str(alone.explain("other"))
    assert alone.explain("other").ranks
    with pytest.raises(ValueError, match="Without the data only"):
        alone.explain("nothing")
    found = alone.explain("CD8A", folder / "data.csv")
    assert found.p_given_selected is not None


def test_other_data_are_refused(result, tmp_path):
    with_copies(seed=1).write_csv(tmp_path / "other.csv")
    with pytest.raises(ValueError, match="SHA-256 checksum differs"):
        result.explain("CD4", tmp_path / "other.csv")


def test_the_consensus_has_a_rank_by_each_method(folder):
    run_ = zeronorm.select(folder / "data.csv", "state", method="consensus", features=2, permutations=0)
    ranks = run_.explain("CD8A").ranks
    assert {"consensus", "rfe"} <= set(ranks)
    assert all(1 <= rank <= P for rank in ranks.values())


def test_a_procedure_at_chance_has_no_substitutes():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    found = zeronorm.select(
        rng.normal(size=(60, 30)), y, method="fisher", features=3, permutations=0, substitutes=True
    )
    assert found.procedure["beats_chance"] is False
    assert found.stored_substitutes == {}
    assert any(note.startswith("No substitutes were sought") for note in found.notes)


def test_too_few_samples_for_a_learning_curve_are_an_error_before_any_work(monkeypatch):
    monkeypatch.setattr("zeronorm.workflow._training.fit_procedure", lambda *_: pytest.fail("work was done"))
    X, y = np.random.default_rng(0).normal(size=(12, 4)), np.arange(12) % 2
    with pytest.raises(ValueError, match="too few samples for a learning curve: the smallest class has 6"):
        zeronorm.select(X, y, learning_curve=True, cv=3, **OPTIONS)


def test_a_learning_curve_of_times_to_an_event_is_refused_before_any_work():
    from types import SimpleNamespace

    from zeronorm.workflow._questions import check_answerable

    asked = SimpleNamespace(substitutes=True, learning_curve=True)
    with pytest.raises(ValueError, match="supports classes and real numbers"):
        check_answerable(SimpleNamespace(task="survival"), asked)


def test_sample_groups_and_missing_values(tmp_path):
    table = with_copies(n=120).with_columns(pl.Series("patient", np.arange(120) // 2))
    table = table.with_columns(
        pl.when(pl.int_range(pl.len()) % 17 == 0).then(None).otherwise("g7").alias("note")
    )
    table = table.drop("note").with_columns(
        pl.when(pl.int_range(pl.len()) % 17 == 0).then(None).otherwise(pl.col("g7")).alias("g7")
    )
    table.write_csv(tmp_path / "data.csv")
    found = zeronorm.select(
        tmp_path / "data.csv", "state", sample_groups="patient", substitutes=True, **OPTIONS
    )
    assert len(found.substitutes().features) == 2
    assert found.explain("g7").p_value is not None


def test_a_comparison_knows_the_frequencies_only(folder):
    compared = zeronorm.compare(folder / "data.csv", "state", methods=["fisher", "golub"], features=2)
    found = compared.explain("other")
    assert found.is_selected is None
    assert found.frequency["fisher"] == 1.0
    assert "a comparison has no list" in str(found)
    with pytest.raises(ValueError, match="A comparison has no selected features"):
        compared.substitutes()


def test_the_command_explains(folder, capsys):
    assert run(["explain", str(folder / "run"), "CD8A"]) == 0
    assert "CD8A is not selected." in capsys.readouterr().out
    assert run(["explain", str(folder / "run"), "CD8A", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "CD8A"
    assert run(["explain", str(folder / "run"), "CD88"]) == 2
    assert "Did you mean 'CD8A'" in capsys.readouterr().err
    assert run(["explain", str(folder / "nothing"), "CD88"]) == 2
