"""Handling of columns: tasks, categories, identifiers, missing values, groups."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from zeronorm.datasets import DataError, TableOptions, build_table, read_feature_groups, read_table
from zeronorm.datasets._encoding import column_medians, fill
from zeronorm.datasets._raw import RawTable, no_such_column
from zeronorm.datasets._table import infer_task
from zeronorm.workflow._checks import data_warnings


def table_of(columns, target="y", **options):
    """A table from columns given as lists of numbers or texts."""
    names = list(columns)
    numeric = [i for i, name in enumerate(names) if not isinstance(columns[name][0], str)]
    values = np.column_stack([columns[names[i]] for i in numeric]).astype(float) if numeric else None
    texts = {i: columns[name] for i, name in enumerate(names) if i not in numeric}
    n = len(columns[names[0]])
    raw = RawTable(
        names, np.empty((n, 0)) if values is None else values, np.asarray(numeric, dtype=int), texts
    )
    return build_table(raw, TableOptions(target=target, **options))


LABELS = ["a", "b"] * 4
NAN = float("nan")
VALUES = np.random.default_rng(0).normal(size=60)
STATES = np.where(VALUES > 0.0, "ill", "well").tolist()


def written(tmp_path, **columns):
    lines = [";".join(columns)] + [";".join(cells) for cells in zip(*columns.values(), strict=True)]
    file = tmp_path / "table.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


A = [f"{value:.3f}" for value in VALUES[::-1]]
THOUSANDS = [f"{3000 * value:,.1f}" for value in VALUES]  # most of them have a separator
MONEY = [f"${1000 + 300 * value:,.2f}" for value in VALUES]
COMMAS = [f"{value:.3f}".replace(".", ",") for value in VALUES]
DATES = [f"2021-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(60)]


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.asarray(["u", "v"] * 5), "classification"),
        (np.asarray([True, False] * 5), "classification"),
        (np.asarray([0, 1] * 5), "classification"),
        (np.asarray([0.0, 2.0] * 5), "classification"),
        (np.asarray([0.5, 2.0] * 5), "regression"),
        (np.arange(100), "regression"),
        (np.arange(100) % 21, "regression"),
        (np.arange(100) % 20, "classification"),
    ],
)
def test_the_task_is_inferred_and_stated(y, task):
    found, reason = infer_task(y, "outcome")
    assert found == task
    assert "outcome" in reason
    assert task in reason


def test_the_task_can_be_set():
    numbers = table_of({"x": range(8), "y": [0, 1] * 4}, task="regression")
    assert numbers.task == "regression"
    assert numbers.y.dtype == np.float64
    with pytest.raises(DataError, match="task='classification'"):
        table_of({"x": range(8), "y": LABELS}, task="regression")


def test_text_columns_become_groups_of_indicators_in_file_order():
    table = table_of(
        {
            "before": [8.0, 1, 2, 3, 5, 4, 7, 6],
            "colour": ["red", "green", "blue", "red"] * 2,
            "sex": ["f", "m"] * 4,
            "after": [3.0, 4, 1, 2, 0, 9, 8, 7],
            "y": LABELS,
        }
    )
    assert table.feature_names.tolist() == [
        "before",
        "colour=blue",
        "colour=green",
        "colour=red",
        "sex=m",
        "after",
    ]
    assert table.feature_groups.tolist() == [0, 1, 1, 1, 2, 3]
    assert table.source_columns.tolist() == [0, 1, 1, 1, 2, 3]
    np.testing.assert_array_equal(table.X[:, 1:4].sum(axis=1), 1.0)
    assert any("2 text columns" in note for note in table.notes)


def test_codes_can_be_declared_categorical():
    table = table_of({"code": [1, 2, 3, 1, 2, 3, 1, 2], "y": LABELS}, categorical=("code",))
    assert table.feature_names.tolist() == ["code=1", "code=2", "code=3"]


def test_text_identifiers_are_set_aside_and_reported():
    table = table_of({"patient": [f"p{i}" for i in range(8)], "x": [3, 1, 2, 2, 2, 5, 1, 0], "y": LABELS})
    assert table.feature_names.tolist() == ["x"]
    assert table.id_columns == ("patient",)
    assert table.sample_ids.tolist() == [f"p{i}" for i in range(8)]
    assert any("patient" in note and "left out" in note for note in table.notes)


@pytest.mark.parametrize(("name", "values"), [("row", range(8)), ("sample_id", [17, 3, 8, 1, 2, 99, 5, 4])])
def test_numeric_identifiers_are_kept_and_reported(name, values):
    table = table_of({name: values, "x": [3, 1, 2, 2, 2, 5, 1, 0], "y": LABELS})
    assert table.id_columns == (name,)
    assert name in table.feature_names
    assert any(name in text and "'ignore'" in text for text in data_warnings(table))


def test_measurements_are_not_identifiers():
    rng = np.random.default_rng(0)
    table = table_of({"id_like_value": rng.normal(size=8), "count": [5, 3, 9, 1, 2, 4, 8, 7], "y": LABELS})
    assert table.id_columns == ()


def test_missing_values_by_choice():
    columns = {
        "x": [1, NAN, 3, 5, 1, 1, 1, 1],
        "z": range(8, 0, -1),
        "c": ["u", "v", None, "u", "w", "u", "v", "w"],
    }
    columns["y"] = LABELS
    with pytest.raises(DataError, match=r"2 values are missing .* in 2 of 3 columns.*median"):
        table_of(columns, missing="error")
    gaps = table_of(columns)
    assert np.isnan(gaps.X[1, 0])
    assert gaps.n_missing == 1
    assert "c=(missing)" in gaps.feature_names
    assert any("median" in note and "training samples" in note for note in gaps.notes)
    fewer_rows = table_of(columns, missing="drop-rows")
    assert fewer_rows.n_samples == 6
    assert fewer_rows.y.tolist() == [LABELS[i] for i in (0, 3, 4, 5, 6, 7)]
    fewer_columns = table_of(columns, missing="drop-columns")
    assert fewer_columns.feature_names.tolist() == ["z"]


def test_rows_without_a_label_are_dropped_on_request_only():
    columns = {"x": [4.0, 2, 3, 1, 0, 9, 8, 7, 6], "y": [*LABELS, None]}
    with pytest.raises(DataError, match=r"1 of 9 samples.*data row 9"):
        table_of(columns)
    assert table_of(columns, missing="drop-rows").n_samples == 8
    assert table_of(columns, drop_unlabelled=True).n_samples == 8


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_features_as_a_data_frame(library, monkeypatch):
    pytest.importorskip(library)
    if library == "pandas":
        monkeypatch.setitem(sys.modules, "polars", None)
    table = table_of({"g1": [0.5, 1.0] * 4, "g2": [3.0, 4.0] * 4, "y": LABELS})
    frame = table.to_frame()
    assert type(frame).__module__.startswith(library)
    assert list(frame.columns) == ["g1", "g2"]
    np.testing.assert_array_equal(frame.to_numpy(), table.X)


def test_sparse_features_are_no_data_frame():
    X = sp.csr_matrix(np.eye(4))
    raw = RawTable.from_matrix(X, targets={"y": np.asarray([0, 1, 0, 1])}, default_target="y")
    with pytest.raises(DataError, match="feature_names"):
        build_table(raw, TableOptions()).to_frame()


def test_missing_entries_of_sparse_data_get_the_median_with_its_zeros():
    X = sp.csr_matrix(np.asarray([[NAN, 1.0], [0.0, 2.0], [0.0, 3.0], [7.0, 4.0]]))
    np.testing.assert_array_equal(fill(X, column_medians(X)).toarray()[:, 0], [0, 0, 0, 7])


def test_medians_are_those_of_the_known_values_of_each_column():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((30, 200)) < 0.2, NAN, rng.normal(size=(30, 200)))
    X[:, 3] = NAN
    medians = column_medians(X)
    expected = [float(np.median(c[~np.isnan(c)])) if not np.isnan(c).all() else 0.0 for c in X.T]
    np.testing.assert_array_equal(medians, expected)
    np.testing.assert_array_equal(fill(X, medians)[~np.isnan(X)], X[~np.isnan(X)])


def test_numbers_spoilt_by_text_are_an_error():
    cells = [f"{i}.5" for i in range(40)]
    cells[7] = "<0.5"
    with pytest.raises(DataError, match=r"'<0.5' in data row 8"):
        table_of({"x": cells, "z": range(40, 0, -1), "y": ["a", "b"] * 20})


def test_ignored_columns_and_sample_groups_leave_the_features():
    table = table_of(
        {
            "x": [4, 2, 2, 1, 5, 5, 7, 8],
            "batch": [1, 1, 2, 2] * 2,
            "drop": [0, 3, 1, 1, 1, 5, 2, 2],
            "y": LABELS,
        },
        ignore=("drop",),
        sample_groups="batch",
    )
    assert table.feature_names.tolist() == ["x"]
    assert table.sample_groups.tolist() == [1, 1, 2, 2] * 2
    with pytest.raises(DataError, match="'ignore' parameter names 'other'"):
        table_of({"x": range(8), "y": LABELS}, ignore=("other",))


def test_nothing_left():
    with pytest.raises(DataError, match="No feature is left"):
        table_of({"x": range(8), "y": LABELS}, ignore=("x",))


@pytest.fixture
def grouped_table():
    return table_of(
        {
            "a": [3, 1, 2, 2] * 2,
            "b": [1, 0, 2, 2] * 2,
            "c": ["u", "v", "w", "u"] * 2,
            "d": [5, 1, 1, 2] * 2,
            "y": LABELS,
        }
    )


def test_feature_groups_from_csv_and_json(tmp_path, grouped_table):
    as_csv, as_json = tmp_path / "g.csv", tmp_path / "g.json"
    as_csv.write_text("feature,group\na,first\nd,first\n")
    as_json.write_text(json.dumps({"first": ["a", "d"]}))
    for file in (as_csv, as_json):
        codes = read_feature_groups(file, grouped_table)
        assert codes.tolist() == [0, 1, 2, 2, 2, 0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.csv", "feature,group\nnone,1\n", "does not have: 'none'"),
        ("g.csv", "feature,group\na,1\na,2\n", "two groups"),
        ("g.csv", "name,set\na,1\n", "feature,group"),
        ("g.json", "{", "not valid JSON"),
        ("g.json", '{"one": ["a"], "two": []}', "no feature"),
        ("g.json", "[1]", "must map"),
    ],
)
def test_bad_group_files(tmp_path, grouped_table, name, content, message):
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(DataError, match=message):
        read_feature_groups(file, grouped_table)


def test_numbers_with_separators_of_thousands_are_no_identifiers(tmp_path):
    table = read_table(written(tmp_path, a=A, b=THOUSANDS, y=STATES), target="y")
    assert table.feature_names.tolist() == ["a", "b"]
    np.testing.assert_allclose(table.X[:, 1], 3000 * VALUES, atol=0.06)


@pytest.mark.parametrize("task", [None, "regression"])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            MONEY,
            r"'y' holds numbers with signs in or around them, such as '\$1,037\.72'\. Write plain numbers\.",
        ),
        (
            DATES,
            r"'y' holds dates, such as '2021-01-01'\. Turn them into numbers, for instance days since a date\.",
        ),
        ([date[8:] + "." + date[5:7] + ".2021" for date in DATES], "'y' holds dates, such as '01.01.2021'"),
        ([date[5:7] + "/" + date[8:] + "/2021" for date in DATES], "'y' holds dates, such as '01/01/2021'"),
    ],
)
def test_a_target_of_numbers_in_disguise_has_its_message(tmp_path, target, said, task):
    """The remedy of the message must work."""
    with pytest.raises(DataError, match=said):
        read_table(written(tmp_path, a=A, y=target), target="y", task=task)


@pytest.mark.parametrize(("target", "values"), [(THOUSANDS, 3000 * VALUES), (COMMAS, VALUES)])
@pytest.mark.parametrize("task", [None, "regression"])
def test_a_target_of_numbers_in_another_notation_is_real(tmp_path, target, values, task):
    table = read_table(written(tmp_path, a=A, y=target), target="y", task=task)
    assert table.task == "regression"
    np.testing.assert_allclose(table.y, values, atol=0.06)


def test_a_target_of_names_is_no_measurement(tmp_path):
    names = [f"P{i}" for i in range(60)]
    with pytest.raises(
        DataError, match=r"holds another text in each of the 60 samples, like an identifier\. Choose"
    ):
        read_table(written(tmp_path, a=A, y=names), target="y")
    with pytest.raises(
        DataError, match=r"holds text, such as 'P0', which regression cannot use\. Choose another"
    ):
        read_table(written(tmp_path, a=A, y=names), target="y", task="regression")
    with pytest.raises(
        DataError, match=r"holds text, such as 'ill', which regression cannot use. Set task='classif"
    ):
        read_table(written(tmp_path, a=A, y=STATES), target="y", task="regression")


def test_classes_may_look_like_numbers_with_signs(tmp_path):
    doses = [("<5", "5-10", ">10")[i % 3] for i in range(60)]
    assert read_table(written(tmp_path, a=A, y=doses), target="y").task == "classification"
    shares = [("10%", "20%", "30%")[i % 3] for i in range(60)]
    assert read_table(written(tmp_path, a=A, y=shares), target="y").task == "classification"


def test_dates_that_are_left_out_are_called_dates(tmp_path):
    days = [f"2021-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in range(60)]
    table = read_table(written(tmp_path, a=A, visit=days, y=STATES), target="y")
    assert any("'visit' holds dates" in note and "Turn them into numbers" in note for note in table.notes)
    assert not any("identifiers" in note and "'visit'" in note for note in table.notes)


def test_an_infinite_value_is_reported_with_its_row(tmp_path):
    cells = [*A[:5], "inf", *A[6:]]
    with pytest.raises(DataError, match="The column 'b' holds infinite values, first in data row 6"):
        read_table(written(tmp_path, a=A, b=cells, y=STATES), target="y")


def test_a_name_is_proposed_once():
    assert "Did you mean 'gene b', 'gene a'?" in str(
        no_such_column(["gene b", "gene b", "gene a"], "gene", "target")
    )


def test_a_target_that_is_a_row_asks_to_transpose(tmp_path):
    """Tables of genes have a sample in each column."""
    header = "gene," + ",".join(f"S{i}" for i in range(60))
    file = tmp_path / "table.csv"
    file.write_text("\n".join([header, "status," + ",".join(STATES), "G1," + ",".join(A)]) + "\n")
    with pytest.raises(
        DataError, match=r"no such column\. A row is called so; if samples are in columns, set transpose"
    ):
        read_table(file, target="status")
    assert read_table(file, target="status", transpose=True).n_samples == 60
