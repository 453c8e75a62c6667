"""Damaged files of every format: a table or an error that says so; no hang, no crash, no memory for nothing."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.attempt import CLEAR_REFUSAL, PATHS, judged_refusal
from fuzz.files import ACCIDENTS, FORMATS, MEMORY, WRONG_TABLE, attempt_file, good_file, mutated
from fuzz.inputs import ANY
from fuzz.runner import run_cases, table
from zeronorm.datasets import read_table

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


def test_a_fork_reads_as_a_new_process_does():
    """In the worker a fork reads; here each file has a process of its own, as for users."""
    cases = [("mat", 1), ("compressed mat", 2), ("h5ad", 0), ("h5ad", 3)]
    told = [(kind, seen.split(" (")[0]) for _, kind, seen in run_cases("fuzz.worker files", cases, LIMIT_S)]
    assert [_without_folder(kind, seen) for kind, seen in told] == [
        _without_folder(kind, seen[:600].split(" (")[0])
        for kind, seen in (attempt_file(*case) for case in cases)
    ]


def _without_folder(kind, seen):
    return kind, PATHS.sub("", seen)


def test_the_name_of_a_folder_is_no_word_of_a_library(tmp_path):
    path = tmp_path / "tmpv09rnmkl broadcast" / "damaged.mat"
    path.parent.mkdir()
    path.write_bytes(good_file("mat")[:150])
    with pytest.raises(ValueError, match="damaged") as refused:
        read_table(path, "y")
    assert judged_refusal(refused.value, ANY)[0] == CLEAR_REFUSAL
