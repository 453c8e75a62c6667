"""Times and events as the target of a table: columns, codes, words, arrays, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.datasets import DataError, read_table
from zeronorm.workflow._inputs import load_data, pack_table
from zeronorm.workflow._options import DataOptions

ROWS = 8
TIMES = ["5", "3", "8", "2", "9", "4", "7", "6"]


def table_of(tmp_path, event, times=TIMES, name="died"):
    """A file with two features, a time and an event."""
    lines = [f"a,b,months,{name}"]
    lines += [f"{i}.5,{(7 * i) % 5}.1,{times[i]},{event[i]}" for i in range(ROWS)]
    file = tmp_path / "patients.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


CODES = {
    "numbers": ["1", "0"],
    "booleans": ["True", "False"],
    "words": ["dead", "alive"],
    "answers": ["yes", "no"],
    "cbioportal": ["1:DECEASED", "0:LIVING"],
}


@pytest.mark.parametrize("kind", CODES)
def test_events_are_recognised_and_a_note_says_which_value_means_one(tmp_path, kind):
    happened, censored = CODES[kind]
    file = table_of(tmp_path, [happened, censored] * 3 + [happened] * 2)
    table = read_table(file, time="months", event="died")
    assert table.task == "survival"
    assert table.target_name == "months to died"
    assert table.feature_names.tolist() == ["a", "b"]
    assert table.y["time"].tolist() == [float(t) for t in TIMES]
    assert table.y["event"].tolist() == [True, False] * 3 + [True] * 2
    note = next(note for note in table.notes if "event is" in note)
    assert f"{happened}'" in note
    assert "5 samples had it, 3 were censored" in note


def test_a_value_of_the_event_is_named_with_an_equals_sign(tmp_path):
    file = table_of(tmp_path, ["2", "1"] * 4, name="status")
    with pytest.raises(DataError, match=r"'1', '2'.*event='status=2'"):
        read_table(file, time="months", event="status")
    table = read_table(file, time="months", event="status=2")
    assert table.y["event"].tolist() == [True, False] * 4
    with pytest.raises(DataError, match="'3' of 'status', which does not occur"):
        read_table(file, time="months", event="status=3")


def test_a_column_that_says_that_nothing_happened_is_asked_about(tmp_path):
    file = table_of(tmp_path, ["1", "0"] * 4, name="censored")
    with pytest.raises(DataError, match="event='censored=0'"):
        read_table(file, time="months", event="censored")
    assert read_table(file, time="months", event="censored=0").y["event"].sum() == 4


@pytest.mark.parametrize(
    ("times", "event", "found"),
    [
        (["-1", *TIMES[1:]], ["1", "0"] * 4, "at least 0. Got -1 in data row 1"),
        ([*TIMES[:3], "soon", *TIMES[4:]], ["1", "0"] * 4, "must hold numbers. Got 'soon'"),
        (TIMES, ["0"] * 8, "no events: all 8 samples are censored"),
        (["5"] * 8, ["1", "0"] * 4, "one time for all samples, 5"),
        ([*TIMES[:7], ""], ["1", "0"] * 4, "no value in 1 of 8 samples"),
        (TIMES, [*["1", "0"] * 3, "1", ""], "no value in 1 of 8 samples"),
    ],
)
def test_wrong_times_and_events_are_errors_that_say_where(tmp_path, times, event, found):
    with pytest.raises(DataError, match=found):
        read_table(table_of(tmp_path, event, times), time="months", event="died")


def test_samples_without_outcome_are_left_out_on_request(tmp_path):
    file = table_of(tmp_path, [*["1", "0"] * 3, "1", ""])
    table = read_table(file, time="months", event="died", drop_unlabelled=True)
    assert table.n_samples == 7


def test_time_and_event_belong_together(tmp_path):
    file = table_of(tmp_path, ["1", "0"] * 4)
    with pytest.raises(ValueError, match="'time' parameter needs the 'event' parameter"):
        DataOptions(time="months")
    with pytest.raises(ValueError, match="'target' parameter does not apply together"):
        DataOptions(target="died", time="months", event="died")
    with pytest.raises(ValueError, match="'task' parameter must be 'survival'"):
        DataOptions(time="months", event="died", task="regression")
    with pytest.raises(ValueError, match="needs the 'event' parameter as well"):
        read_table(file, time="months")
    with pytest.raises(ValueError, match="needs two columns"):
        load_data(file, DataOptions(target="months", task="survival"))


def targets_in_python():
    """Times and events as people have them, each with the options that give them."""
    time = np.asarray([float(t) for t in TIMES])
    event = np.asarray([1, 0] * 4)
    structured = np.empty(ROWS, dtype=[("dead", bool), ("days", float)])
    structured["dead"], structured["days"] = event, time
    return {
        "arrays": {"time": time, "event": event},
        "scikit-survival": {"target": structured},
        "two columns": {"target": {"time": time, "event": event}, "task": "survival"},
    }


@pytest.mark.parametrize("kind", ["arrays", "scikit-survival", "two columns"])
def test_arrays_are_targets_of_data_in_memory_and_packed(tmp_path, kind):
    X = np.random.default_rng(0).normal(size=(ROWS, 3))
    table = load_data(X, DataOptions(**targets_in_python()[kind]))
    assert table.task == "survival"
    assert table.y["time"].tolist() == [float(t) for t in TIMES]
    assert table.y["event"].tolist() == [True, False] * 4
    packed = load_data(pack_table(table, tmp_path / "table.zncols"), DataOptions())
    assert packed.task == "survival"
    assert np.array_equal(packed.y, table.y)


def test_an_array_beside_a_column_is_an_error():
    with pytest.raises(ValueError, match="both are names of columns, or both arrays"):
        load_data(np.eye(4), DataOptions(time="x1", event=np.ones(4)))
