"""What is shown of a table before its use is known."""

from __future__ import annotations

import pytest

from datasets.workbooks import workbook
from zeronorm.workflow._options import DataOptions
from zeronorm.workflow._preview import preview


@pytest.fixture
def odd_table(tmp_path):
    """A column of each kind."""
    file = tmp_path / "odd.csv"
    heads = ["sample", "when", "site", "state", "dose", "flat", "gap"]
    rows = [
        [
            f"s{i}",
            f"2024-01-{i + 1:02}",
            f"site{i % 8}",
            "ab"[i % 2],
            f"{i / 4}",
            "7",
            "" if i < 3 else str(i),
        ]
        for i in range(24)
    ]
    rows[5][4] = "k.A."
    rows[6][4] = "<0.5"
    file.write_text("\n".join(",".join(row) for row in [heads, *rows]) + "\n", encoding="utf-8")
    return preview(file, DataOptions())


def summaries(found):
    return {column.name: column for column in found.columns(found.first_to_see)}


def test_each_kind_of_column_is_recognised(odd_table):
    kinds = {name: column.kind for name, column in summaries(odd_table).items()}
    assert kinds == {
        "sample": "names of samples",
        "when": "dates",
        "site": "patients or batches",
        "state": "text",
        "dose": "numbers",
        "flat": "numbers",
        "gap": "numbers",
    }


def test_suspicious_cells_are_shown_with_their_rows(odd_table):
    dose = summaries(odd_table)["dose"]
    assert dose.n_odd == 2
    assert dose.odd == (("data row 6", "k.A."), ("data row 7", "<0.5"))
    assert dose.n_missing == 0


def test_missing_values_and_constant_columns_are_counted(odd_table):
    found = summaries(odd_table)
    assert (found["gap"].n_missing, odd_table.n_missing) == (3, 3)
    assert [name for name, column in found.items() if column.is_constant] == ["flat"]
    assert found["state"].n_levels == 2


def test_columns_that_need_a_look_come_first(odd_table):
    order = [column.needs_a_look for column in odd_table.columns(odd_table.first_to_see)]
    assert order == sorted(order, reverse=True)
    assert order.count(False) == 1


def test_the_first_rows_are_shown_as_they_are(odd_table):
    names = odd_table.raw.names
    shown = odd_table.head([names.index("dose"), names.index("gap")], 7)
    assert shown[0] == ["0.0", ""]
    assert shown[5] == ["k.A.", "5"]


def test_sheets_are_named(tmp_path):
    file = tmp_path / "book.xlsx"
    values = [["a", "b"], *([i, i * i] for i in range(9))]
    file.write_bytes(workbook({"about": [["text"]], "values": values}))
    assert preview(file, DataOptions(sheet="values")).sheets == ("about", "values")


def test_a_known_data_set_has_its_target_apart():
    found = preview("iris", DataOptions())
    (species,) = found.apart()
    assert (species.name, species.kind, species.n_levels) == ("species", "outcome", 3)
    assert (found.n_samples, found.n_columns) == (150, 5)


def test_a_wide_table_is_summarised_without_a_pass_over_each_column(tmp_path):
    """The number of columns that are looked at does not depend on the width."""
    file = tmp_path / "wide.csv"
    names = [f"g{i}" for i in range(3000)]
    file.write_text(
        ",".join(names) + "\n" + "\n".join(",".join(["1", *["2.5"] * 2999]) for _ in range(4)) + "\n"
    )
    found = preview(file, DataOptions())
    assert len(found.first_to_see) == 3000
    assert len(found.columns(found.first_to_see[:10])) == 10
