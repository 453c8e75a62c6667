"""What goes wrong first with a table of one's own, and that each message says what it is and what to do."""

from __future__ import annotations

import numpy as np
import pytest
from zeronorm.workflow.files import load

from zeronorm.datasets import DataError, TableOptions, build_table, read_table
from zeronorm.datasets.raw import RawTable, no_such_column
from zeronorm.workflow.checks import data_warnings
from zeronorm.workflow.inputs import check_folds
from zeronorm.workflow.result import Result

VALUES = np.random.default_rng(0).normal(size=60)
LABELS = np.where(VALUES > 0.0, "ill", "well").tolist()


def written(tmp_path, **columns):
    lines = [";".join(columns)] + [";".join(cells) for cells in zip(*columns.values(), strict=True)]
    file = tmp_path / "table.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


A = [f"{value:.3f}" for value in VALUES[::-1]]
THOUSANDS = [f"{3000 * value:,.1f}" for value in VALUES]  # most of them have a separator
MONEY = [f"${1000 + 300 * value:,.2f}" for value in VALUES]
COMMAS = [f"{value:.3f}".replace(".", ",") for value in VALUES]
DATES = [f"2021-{1 + place % 12:02d}-{1 + place % 28:02d}" for place in range(60)]


def test_numbers_with_separators_of_thousands_are_no_identifiers(tmp_path):
    with pytest.raises(
        DataError, match=r"'b' holds numbers with signs in or around them, such as '-?\d,\d{3}\.\d'"
    ):
        read_table(written(tmp_path, a=A, b=THOUSANDS, y=LABELS), target="y")


@pytest.mark.parametrize("task", [None, "regression"])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        (
            MONEY,
            r"'y' holds numbers with signs in or around them, such as '\$1,037\.72'\. Write plain numbers\.",
        ),
        (THOUSANDS, r"'y' holds numbers with signs in or around them, such as '-?\d,\d{3}\.\d'"),
        (COMMAS, r"'y' holds numbers with a decimal comma, such as '0,126'\. Set decimal_comma=True\."),
        (
            DATES,
            r"'y' holds dates, such as '2021-01-01'\. Turn them into numbers, for instance days since a date\.",
        ),
        ([date[8:] + "." + date[5:7] + ".2021" for date in DATES], "'y' holds dates, such as '01.01.2021'"),
        ([date[5:7] + "/" + date[8:] + "/2021" for date in DATES], "'y' holds dates, such as '01/01/2021'"),
    ],
)
def test_a_target_of_numbers_in_disguise_is_told_as_such(tmp_path, target, said, task):
    """A remedy that leads to the next error is none."""
    with pytest.raises(DataError, match=said):
        read_table(written(tmp_path, a=A, y=target), target="y", task=task)


def test_a_target_of_names_is_no_measurement(tmp_path):
    names = [f"P{place}" for place in range(60)]
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
        read_table(written(tmp_path, a=A, y=LABELS), target="y", task="regression")


def test_classes_may_look_like_numbers_with_signs(tmp_path):
    doses = [("<5", "5-10", ">10")[place % 3] for place in range(60)]
    assert read_table(written(tmp_path, a=A, y=doses), target="y").task == "classification"
    shares = [("10%", "20%", "30%")[place % 3] for place in range(60)]
    assert read_table(written(tmp_path, a=A, y=shares), target="y").task == "classification"


def test_dates_that_are_left_out_are_called_dates(tmp_path):
    days = [f"2021-{1 + place // 28:02d}-{1 + place % 28:02d}" for place in range(60)]
    table = read_table(written(tmp_path, a=A, visit=days, y=LABELS), target="y")
    assert any("'visit' holds dates" in note and "Turn them into numbers" in note for note in table.notes)
    assert not any("identifiers" in note and "'visit'" in note for note in table.notes)


def test_an_infinite_value_is_told_with_its_row(tmp_path):
    cells = [*A[:5], "inf", *A[6:]]
    with pytest.raises(DataError, match="The column 'b' holds infinite values, first in data row 6"):
        read_table(written(tmp_path, a=A, b=cells, y=LABELS), target="y")


def test_a_name_is_proposed_once():
    assert "Did you mean 'gene b', 'gene a'?" in str(
        no_such_column(["gene b", "gene b", "gene a"], "gene", "target")
    )


def saved(tmp_path, text):
    file = tmp_path / "table.csv"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_without_a_header_may_have_text(tmp_path):
    rows = "".join(f"{a},{b},{label}\n" for a, b, label in zip(A, A[::-1], LABELS, strict=True))
    with pytest.raises(DataError, match=r"Many names are numbers. Add a header line if"):
        read_table(saved(tmp_path, rows), target="y")
    named = "a,b,y\n" + rows
    with pytest.raises(DataError, match=r"The first are 'a', 'b', 'y'.$"):
        read_table(saved(tmp_path, named), target="outcome")


def test_a_title_above_the_header_is_seen(tmp_path):
    rows = "".join(f"{a},{label}\n" for a, label in zip(A, LABELS, strict=True))
    with pytest.raises(DataError, match="Line 3 has 2 cells: if a title stands above the header, delete it"):
        read_table(saved(tmp_path, "Results of our study\n\na,y\n" + rows), target="y")


@pytest.mark.parametrize(
    "page", ["<!DOCTYPE html><html><p>Not found, sorry</p></html>", "\n<html>\n<p>No</p></html>"]
)
def test_a_web_page_is_no_table(tmp_path, page):
    with pytest.raises(DataError, match=r"is a web page, not a table. Download the data itself"):
        read_table(saved(tmp_path, page), target="y")


def table_of(X, y):
    raw = RawTable.from_matrix(X, targets={"y": np.asarray(y)}, default_target="y")
    return build_table(raw, TableOptions(task="classification"))


def test_classes_are_left_out_only_where_two_remain():
    y = np.repeat(["a", "b", "c"], [20, 30, 2])
    table = table_of(np.random.default_rng(0).normal(size=(52, 3)), y)
    with pytest.raises(
        ValueError, match=r"Set cv=2 or fewer, or leave out small classes: set min_class_size=5\.$"
    ):
        check_folds(table, 5)
    with pytest.raises(
        ValueError, match=r"The class 'c' has 2 samples, too few for cv=25\. Set cv=2 or fewer\.$"
    ):
        check_folds(table, 25)


def test_a_rare_class_may_be_another_one_in_capitals():
    y = np.repeat(["ill", "well", "ILL"], [20, 30, 2])
    table = table_of(np.random.default_rng(0).normal(size=(52, 3)), y)
    with pytest.raises(
        ValueError, match="'ILL' and 'ill' differ in upper and lower case only; if they are one class"
    ):
        check_folds(table, 5)


def test_features_that_never_vary_are_told():
    y = np.arange(60) % 2
    told = data_warnings(table_of(np.ones((60, 2)), y))
    assert any("Each of the 2 features has the same value in all samples" in text for text in told)
    X = np.ones((60, 2))
    X[:, 1] = VALUES
    assert not any("same value" in text for text in data_warnings(table_of(X, y)))


def test_a_report_of_a_table_is_refused_with_what_to_give(tmp_path):
    file = saved(tmp_path, "a,y\n1,2\n")
    with pytest.raises(ValueError, match=r"is no Parquet file. Give the folder of a run"):
        load(Result, file)


def test_a_target_that_is_a_row_asks_to_transpose(tmp_path):
    """Tables of genes have a sample in each column."""
    header = "gene," + ",".join(f"S{place}" for place in range(60))
    file = saved(tmp_path, "\n".join([header, "status," + ",".join(LABELS), "G1," + ",".join(A)]) + "\n")
    with pytest.raises(
        DataError, match=r"no such column\. A row is called so; if samples are in columns, set transpose"
    ):
        read_table(file, target="status")
    assert read_table(file, target="status", transpose=True).n_samples == 60
