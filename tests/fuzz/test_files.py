"""Damaged files of every format: a table or a clear error; no hang, no crash, no excessive memory."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

from fuzz.attempt import CLEAR_REFUSAL, PATHS, classified_error
from fuzz.files import ACCIDENTS, FORMATS, MEMORY, WRONG_TABLE, attempt_file, good_file, mutated
from fuzz.inputs import ANY
from fuzz.runner import run_cases, table
from zeronorm.datasets import DataError, read_table
from zeronorm.datasets.readers import _matrices as matrices

QUICK, ALL = 70, 10_000
LIMIT_S = 60.0


def _read_all(n_files, first_seed):
    cases = [(name, first_seed + i) for i in range(-(-n_files // len(FORMATS))) for name in FORMATS][:n_files]
    outcomes = list(run_cases("fuzz.worker files", cases, LIMIT_S))
    print(f"\n{len(outcomes)} files: {table(outcomes)}")
    bad = [f"{case}: {kind}: {seen}" for case, kind, seen in outcomes if kind not in ("right", "refused")]
    assert not bad, "\n".join(bad)
    assert {kind for _, kind, _ in outcomes} == {"right", "refused"}


def test_damaged_files():
    _read_all(QUICK, first_seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_damaged_files(part):
    _read_all(ALL // 10, first_seed=1000 * (part + 1))


@pytest.mark.parametrize("name", FORMATS)
def test_the_good_file_is_read(name, tmp_path):
    ending, target, _ = FORMATS[name]
    path = tmp_path / f"good{ending}"
    path.write_bytes(good_file(name))
    assert read_table(path, target).X.shape == (24, 8)


@pytest.mark.parametrize("accident", ACCIDENTS, ids=lambda a: a.__name__)
def test_every_accident_changes_the_file(accident):
    content, rng = good_file("csv"), np.random.default_rng(0)
    assert any(accident(content, int(rng.integers(len(content))), rng) != content for _ in range(5))


def test_one_seed_gives_one_file():
    first, second, other = (mutated(good_file("npz"), np.random.default_rng(s)) for s in (1, 1, 2))
    assert first == second != other


def test_outcomes_that_count_as_defects_have_names():
    assert {MEMORY, WRONG_TABLE}.isdisjoint({"right", "refused"})


def _without_folder(kind, seen):
    return kind, PATHS.sub("", seen)


def test_a_fork_reads_as_a_new_process_does():
    """In the worker a fork reads; here each file has a process of its own, as for users."""
    cases = [("compressed mat", 2), ("h5ad", 0), ("h5ad", 3)]
    found = [(kind, seen.split(" (")[0]) for _, kind, seen in run_cases("fuzz.worker files", cases, LIMIT_S)]
    assert [_without_folder(kind, seen) for kind, seen in found] == [
        _without_folder(kind, seen[:600].split(" (")[0])
        for kind, seen in (attempt_file(*case) for case in cases)
    ]


def test_the_name_of_a_folder_is_no_word_of_a_library(tmp_path):
    path = tmp_path / "tmpv09rnmkl broadcast" / "damaged.mat"
    path.parent.mkdir()
    path.write_bytes(good_file("mat")[:150])
    with pytest.raises(ValueError, match="damaged") as refused:
        read_table(path, "y")
    assert classified_error(refused.value, ANY)[0] == CLEAR_REFUSAL


def test_a_file_on_which_hdf5_does_not_end_is_refused(tmp_path, monkeypatch):
    """Which damage keeps HDF5 busy for ever depends on its version, so here every file does."""
    monkeypatch.setattr(matrices, "seconds_for", lambda path: 1)
    monkeypatch.setattr(matrices, "_WALK_H5", "while True:\n    pass\n")
    path = tmp_path / "good.h5ad"
    path.write_bytes(good_file("h5ad"))
    with pytest.raises(
        DataError, match="is damaged or not an h5ad file: reading it ends in a crash, or never"
    ):
        read_table(path, "label")


@pytest.mark.parametrize("offset", [6, 8, 10], ids=["version", "password", "compression"])
def test_an_archive_that_asks_for_what_python_does_not_know_is_refused(offset, tmp_path):
    path, content = tmp_path / "damaged.npz", bytearray(good_file("npz"))
    content[content.index(b"PK\x01\x02") + offset] = 99  # in the directory at the end
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as a NumPy archive: it is damaged") as refused:
        read_table(path, "y")
    assert classified_error(refused.value, ANY)[0] == CLEAR_REFUSAL


def test_damage_inside_hdf5_has_our_message(tmp_path, monkeypatch):
    path = tmp_path / "damaged.h5ad"
    path.write_bytes(good_file("h5ad"))
    message = b"Traceback (most recent call last):\nRuntimeError: iterating (integer offset out of bounds)"
    walk = subprocess.CompletedProcess("", 1, b"", message)
    monkeypatch.setattr("zeronorm.datasets.readers._matrices._read_elsewhere", lambda path, program: walk)
    with pytest.raises(
        DataError, match="not an h5ad file: its groups and attributes cannot be read"
    ) as refused:
        read_table(path, "label")
    assert classified_error(refused.value, ANY)[0] == CLEAR_REFUSAL


def test_a_file_on_which_the_matlab_reader_crashes_is_refused(tmp_path):
    path = tmp_path / "damaged.mat"
    path.write_bytes(mutated(good_file("mat"), np.random.default_rng([25, 3])))
    with pytest.raises(DataError, match="is damaged"):
        read_table(path, "y")


# -- carriage returns and signs, which text tables hold more often than other damage --

RETURNS = ("\r", "\r\n", "\r\r\n", "\n\r", "\x0b")
SIGNS = ("+", "-", "--", "+-", "-" * 5000, "−", "'", '"', "=", "\ufeff", "1e+", ".")
TOKENS = RETURNS + SIGNS


def _attempt_text(text, folder):
    path = folder / "damaged.csv"
    path.write_bytes(text.encode())
    try:
        table_read = read_table(path, "label")
    except Exception as error:
        return classified_error(error, ANY)
    return ("right" if table_read.X.shape == (24, 8) else WRONG_TABLE), f"{table_read.X.shape}"


def _insert_tokens(n_positions, seed, folder):
    text, rng = good_file("csv").decode(), np.random.default_rng(seed)
    outcomes = []
    for token in TOKENS:
        outcomes += [
            ((token[:5], at), *_attempt_text(text[:at] + token + text[at:], folder))
            for at in rng.integers(len(text), size=n_positions).tolist()
        ]
        outcomes.append(((token[:5], "all ends"), *_attempt_text(text.replace("\n", token + "\n"), folder)))
        outcomes.append(((token[:5], "all cells"), *_attempt_text(text.replace(",", "," + token), folder)))
    print(f"\n{len(outcomes)} tables: {table(outcomes)}")
    bad = [f"{case}: {kind}: {seen}" for case, kind, seen in outcomes if kind not in ("right", "refused")]
    assert not bad, "\n".join(bad)


@pytest.mark.filterwarnings("ignore")
def test_carriage_returns_and_signs_in_tables(tmp_path):
    _insert_tokens(6, 0, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_carriage_returns_and_signs_anywhere_in_tables(tmp_path):
    _insert_tokens(200, 1, tmp_path)
