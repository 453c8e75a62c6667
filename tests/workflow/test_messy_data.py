"""Messy data through the whole procedure: gaps, two tables, patients."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import polars as pl
import pytest

import zeronorm
from zeronorm.datasets import TableOptions, build_table
from zeronorm.datasets.raw import RawTable
from zeronorm.workflow import procedures, training
from zeronorm.workflow.inputs import DataOptions, load_data
from zeronorm.workflow.models import LinearModel, apply_model
from zeronorm.workflow.procedures import Settings

QUICK = {"method": "fisher", "features": 2, "cv": 3, "permutations": 0}


@pytest.fixture
def gappy():
    """40 samples, 10 features, of which two carry the label; a tenth of the values is missing."""
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 10))
    X[:, :2] += 2.5 * y[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def records_of(X, y, **settings):
    table = build_table(
        RawTable.from_matrix(X, targets={"y": y}, default_target="y"), TableOptions(task="classification")
    )
    found = Settings(features=2, cv=4, **settings)
    selector = procedures.build_procedure("fisher", table, found, [2])
    return table, training.evaluate_procedures({"fisher": selector}, table, found, [])


def test_gaps_are_filled_and_the_features_found(gappy):
    X, y = gappy
    result = zeronorm.select(X, y, **QUICK)
    assert set(result.features) == {"x1", "x2"}
    assert result.procedure["failed"] == []
    assert any("training part" in note for note in result.notes)


def test_filling_never_sees_the_test_part(gappy):
    X, y = gappy
    _, before = records_of(X, y)
    test_rows = np.asarray(before["test_rows"][0])
    poisoned = X.copy()
    known = ~np.isnan(poisoned[test_rows])
    poisoned[test_rows] = np.where(known, 1e6, np.nan)
    _, after = records_of(poisoned, y)
    assert before["selected"][0].to_list() == after["selected"][0].to_list()
    # A test sample without any value is predicted from the medians of the training part alone.
    empty = X.copy()
    empty[test_rows[0]] = np.nan
    with_poison = poisoned.copy()
    with_poison[test_rows[0]] = np.nan
    first, second = (records_of(data, y)[1]["predictions"][0].to_list()[0] for data in (empty, with_poison))
    assert first == second


def test_filling_agrees_with_filling_by_hand(gappy):
    X, y = gappy
    table, records = records_of(X, y)
    for row in records.iter_rows(named=True):
        test = np.asarray(row["test_rows"])
        train = np.setdiff1d(np.arange(len(y)), test)
        filled = np.where(np.isnan(X), np.nanmedian(X[train], axis=0), X)
        selector = zeronorm.FisherScore(n_features_to_select=2).fit(filled[train], y[train])
        assert row["selected"] == selector.get_support(indices=True).tolist()
    assert table.n_missing == int(np.isnan(X).sum())


def test_gaps_with_an_inner_choice_groups_and_a_comparison(gappy):
    X, y = gappy
    groups = np.repeat(np.arange(20), 2)
    chosen = zeronorm.select(
        X,
        y,
        method="fisher",
        max_features=4,
        cv=3,
        permutations=0,
        sample_groups=groups,
        task="classification",
    )
    assert chosen.procedure["value"] < 0.3
    compared = zeronorm.compare(X, y, methods="fisher,golub", features=2, cv=3)
    assert compared.table[0]["value"] < 0.2
    with pytest.raises(ValueError, match=r"missing='median'"):
        zeronorm.select(X, y, missing="error", **QUICK)


def two_tables(folder, n=24):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) % 2, "sick", "well")
    X = rng.normal(size=(n, 30)) + 2.0 * (y == "sick")[:, None] * (np.arange(30) < 2)
    ids = [f"S-{i}" for i in range(n)]
    genes = pl.DataFrame({"gene": [f"g{k}" for k in range(30)], **{name: X[i] for i, name in enumerate(ids)}})
    genes.write_csv(folder / "genes.csv")
    order = rng.permutation(n)
    people = pl.DataFrame(
        {
            "sample": [ids[i] for i in order],
            "state": y[order],
            "patient": [f"p{i // 2}" for i in order],
            "age": rng.integers(20, 80, size=n),
        }
    )
    people.write_csv(folder / "people.csv")
    return X, y, genes, people


def test_a_file_and_a_table_of_samples(tmp_path):
    X, y, _, people = two_tables(tmp_path)
    files = {"samples": tmp_path / "people.csv", "id": "sample", "transpose": True}
    table = load_data(
        tmp_path / "genes.csv", DataOptions(target="state", sample_groups="patient", keep=("age",), **files)
    )
    np.testing.assert_allclose(table.X[:, :30], X)
    assert table.y.tolist() == y.tolist()
    assert table.feature_names[-1] == "age"
    assert table.sample_groups.tolist() == [f"p{i // 2}" for i in range(24)]
    result = zeronorm.select(tmp_path / "genes.csv", target="state", **files, **QUICK)
    assert set(result.features) == {"g0", "g1"}
    framed = zeronorm.select(
        tmp_path / "genes.csv", target="state", samples=people, id="sample", transpose=True, **QUICK
    )
    assert framed.features == result.features


def test_a_table_of_samples_for_a_pandas_frame_with_an_index(tmp_path):
    pytest.importorskip("pandas")
    X, y, genes, people = two_tables(tmp_path)
    frame = genes.to_pandas().set_index("gene").T
    table = load_data(frame, DataOptions(target="state", samples=people.to_pandas().set_index("sample")))
    np.testing.assert_allclose(table.X, X)
    assert table.y.tolist() == y.tolist()
    with pytest.raises(ValueError, match="'samples' parameter"):
        load_data(frame, DataOptions(target="state", samples=[1, 2]))


def test_patients_are_pointed_out_until_they_are_used(tmp_path):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "patient": [f"p{i // 3}" for i in range(36)],
            "batch": [i // 6 for i in range(36)],
            **{f"g{k}": rng.normal(size=36) for k in range(6)},
            "y": ["a", "b"] * 18,
        }
    )
    result = zeronorm.select(frame, "y", **QUICK)
    assert not any(name.startswith("patient") for name in result.features)
    warned = [text for text in result.warnings if "belong together" in text]
    assert len(warned) == 1
    assert "'patient', 'batch' look like" in warned[0]
    assert "sample_groups='patient'" in warned[0]
    used = zeronorm.select(frame, "y", sample_groups="patient", **QUICK)
    assert not any("belong together" in text for text in used.warnings)


def test_small_classes_name_the_remedy():
    X = np.random.default_rng(0).normal(size=(30, 5))
    y = np.asarray(["a", "b"] * 14 + ["c", "c"])
    with pytest.raises(ValueError, match="min_class_size=3"):
        zeronorm.select(X, y, **QUICK)
    result = zeronorm.select(X, y, min_class_size=3, **QUICK)
    assert result.data["class_counts"] == {"a": 14, "b": 14}
    assert any("'c' (2)" in note for note in result.notes)


def test_kept_columns_may_be_patterns(gappy):
    X, y = gappy
    result = zeronorm.select(X, y, keep=["x9", "re:^x1$"], **(QUICK | {"features": 3}))
    assert {"x1", "x9"} <= set(result.features)


@pytest.mark.parametrize("column", ["sex", "is=sex", "sex="])
def test_a_model_finds_levels_of_text_in_a_second_sheet(column, tmp_path):
    """A name of a column may itself hold the sign that stands between a column and its level."""
    model = LinearModel(
        "regression", "y", ["a", f"{column}=f"], [0.0, 0.0], [1.0, 1.0], [[2.0, 10.0]], [0.5], "single", []
    )
    (tmp_path / "data.csv").write_text("id,a,other\ns1,1,5\ns2,2,5\ns3,3,5\n")
    (tmp_path / "sheet.csv").write_text(f"id,{column},noise\ns3,f,x\ns1,m,y\ns2,f,z\n")
    found = apply_model(model, tmp_path / "data.csv", samples=tmp_path / "sheet.csv", id="id")
    assert found == {"sample": ["s1", "s2", "s3"], "prediction": [2.5, 14.5, 16.5]}


def test_a_model_fills_gaps_of_new_samples_and_knows_renamed_columns(gappy, tmp_path):
    X, y = gappy
    names = ["a", "a", *(f"g{k}" for k in range(2, 10))]
    lines = [
        ",".join([*names, "y"]),
        *(",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)),
    ]
    (tmp_path / "d.csv").write_text("\n".join(lines).replace("nan", "") + "\n")
    result = zeronorm.select(tmp_path / "d.csv", "y", **QUICK)
    assert result.features == ["a (2)", "a"] or result.features == ["a", "a (2)"]
    result.model.save(tmp_path / "model.json")
    model = LinearModel.load(tmp_path / "model.json")
    columns = [0 if name == "a" else 1 for name in model.features]
    np.testing.assert_allclose(model.fill, np.nanmedian(X[:, columns], axis=0))
    predicted = apply_model(model, tmp_path / "d.csv")["prediction"]
    by_hand = np.where(np.isnan(X[:, columns]), model.fill, X[:, columns])
    assert predicted == model.predict(by_hand).tolist()
    complete = LinearModel(**{**asdict(model), "fill": []})
    with pytest.raises(ValueError, match="no finite value"):
        apply_model(complete, tmp_path / "d.csv")


@pytest.mark.parametrize(("n_per_class", "cv", "inner"), [(5, 5, 4), (3, 3, 2), (20, 5, 5)])
def test_few_samples_of_a_class_leave_fewer_folds_inside(n_per_class, cv, inner):
    y = np.arange(2 * n_per_class) % 2
    X = np.random.default_rng(0).normal(size=(len(y), 30)) + 3.0 * y[:, None]
    result = zeronorm.select(X, y, method="fisher", cv=cv, permutations=0, max_features=4)
    assert any(f"rest on {inner} folds" in note for note in result.notes) == (inner != cv)
    assert result.procedure["failed"] == []


def test_too_few_samples_for_choices_inside_are_told_with_a_remedy_that_works():
    y = np.arange(4) % 2
    X = np.random.default_rng(0).normal(size=(4, 30)) + 3.0 * y[:, None]
    with pytest.raises(ValueError, match="Name a method and set the 'features' parameter to a number"):
        zeronorm.select(X, y, method="fisher", cv=2, permutations=0)
    assert len(zeronorm.select(X, y, method="fisher", features=2, cv=2, permutations=0).selected) == 2
