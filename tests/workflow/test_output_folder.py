"""The output folder: written completely or not at all, resumed, and cleaned of leftover files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

import zeronorm
from zeronorm import FisherScore
from zeronorm.result import _folder as folders

OPTIONS = {"cv": 3, "features": 3, "permutations": 0}
QUICK = {"method": "fisher", "features": 3, "cv": 3}


def test_an_output_folder_that_is_a_file_is_refused_before_any_work(problem, tmp_path, monkeypatch):
    """An error also with force, which replaces results only."""
    monkeypatch.setattr(
        FisherScore, "fit", lambda *_, **__: pytest.fail("a fit whose result cannot be written")
    )
    mine = tmp_path / "mine"
    mine.write_text("notes")
    for force in (False, True):
        with pytest.raises(ValueError, match=r"'out' parameter names .*mine', which is a file"):
            zeronorm.select(*problem, method="fisher", out=mine, force=force, **OPTIONS)
    assert mine.read_text() == "notes"
    assert list(tmp_path.iterdir()) == [mine]


def test_a_run_writes_beside_its_folder_first(tmp_path):
    folder = tmp_path / "a" / "b" / "out"
    with folders.output_folder(folder) as output:
        assert output.folder.parent == folder.parent
        assert re.match(rf"\.zeronorm-[0-9a-f]{{8}}-{os.getpid()}-", output.folder.name)
        assert sorted(os.listdir(folder)) == [".zeronorm-running", "journal"]
        (output.folder / "result.json").write_text("1")
    assert os.listdir(folder.parent) == ["out"]


def refused(folder, **options):
    with folders.output_folder(folder, **options):
        pytest.fail("work whose result cannot be written")


def test_folders_with_files_are_overwritten_only_with_force(tmp_path):
    folder = tmp_path / "out"
    with folders.output_folder(folder) as output:
        (output.folder / "result.json").write_text("1")
        (output.folder / "model.json").write_text("m")
        assert output.journal == folder / "journal"
        assert output.journal.is_dir()
    assert sorted(os.listdir(folder)) == ["model.json", "result.json"]
    assert os.listdir(tmp_path) == ["out"]
    with pytest.raises(ValueError, match=r"already holds results \(result\.json, model\.json\)"):
        refused(folder)
    with pytest.raises(ValueError, match="already holds results"):
        refused(folder, resume=True)
    with folders.output_folder(folder, force=True) as output:
        (output.folder / "result.json").write_text("2")
    assert os.listdir(folder) == ["result.json"]  # no file of the earlier run is left
    assert (folder / "result.json").read_text() == "2"


def test_finished_folds_are_kept_after_an_interruption(tmp_path):
    folder = tmp_path / "out"

    def begin(output):
        (output.journal / f"fold-{len(list(output.journal.iterdir()))}").write_text("")
        raise KeyboardInterrupt

    def interrupted(**options):
        with pytest.raises(KeyboardInterrupt), folders.output_folder(folder, **options) as output:
            begin(output)

    interrupted()
    assert folders.has_journal(folder)
    with pytest.raises(ValueError, match=r"interrupted run\. Set resume=True"):
        refused(folder)
    interrupted(resume=True)
    assert sorted(os.listdir(folder / "journal")) == ["fold-0", "fold-1"]
    interrupted(force=True)
    assert os.listdir(folder / "journal") == ["fold-0"]
    assert os.listdir(tmp_path) == ["out"]
    with folders.output_folder(folder, resume=True) as output:
        (output.folder / "report.html").write_text("")
    assert os.listdir(folder) == ["report.html"]
    assert not folders.has_journal(folder)
    with pytest.raises(RuntimeError), folders.output_folder(tmp_path / "new"):
        raise RuntimeError
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    with pytest.raises(RuntimeError), folders.output_folder(tmp_path / "old"):
        raise RuntimeError
    assert os.listdir(tmp_path / "old") == []


def test_an_interrupted_run_goes_on_where_it_stopped(problem, tmp_path, monkeypatch):
    from zeronorm.workflow import _chance as chance

    whole = zeronorm.select(*problem, **QUICK, permutations=2)
    real = chance.permutation_test
    monkeypatch.setattr(chance, "permutation_test", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        zeronorm.select(*problem, **QUICK, permutations=2, out=tmp_path / "out")
    kept = list((tmp_path / "out" / "journal").glob("*.json"))
    assert len(kept) == 3
    monkeypatch.setattr(chance, "permutation_test", real)
    with pytest.raises(ValueError, match="resume=True"):
        zeronorm.select(*problem, **QUICK, permutations=2, out=tmp_path / "out")
    fits = []
    fit = zeronorm.FisherScore.fit
    monkeypatch.setattr(zeronorm.FisherScore, "fit", lambda *a, **k: fits.append(1) or fit(*a, **k))
    resumed = zeronorm.select(*problem, **QUICK, permutations=2, out=tmp_path / "out", resume=True)
    assert len(fits) == 1 + 2 * 3  # on all samples and on permuted targets, not again on the three folds
    assert resumed.procedure | {"seconds": 0} == whole.procedure | {"seconds": 0}
    assert sorted(os.listdir(tmp_path / "out")) == [
        "figures.parquet",
        "records.parquet",
        "report.html",
        "result.json",
        "selected.csv",
    ]


def test_results_appear_also_where_the_folder_was_removed_meanwhile(tmp_path):
    with folders.output_folder(tmp_path / "out") as output:
        (output.folder / "result.json").write_text("1")
        shutil.rmtree(tmp_path / "out")
    assert (tmp_path / "out" / "result.json").read_text() == "1"


def test_results_that_were_removed_before_they_could_be_moved_are_an_error(tmp_path):
    def vanish(output):
        shutil.rmtree(output.folder)

    with (
        pytest.raises(ValueError, match="results cannot be moved"),
        folders.output_folder(tmp_path / "out") as output,
    ):
        vanish(output)


def test_leftovers_of_earlier_runs_go_when_a_run_begins(tmp_path):
    old = tmp_path / ".zeronorm-old"
    old.mkdir()
    os.utime(old, (0, 0))
    with folders.output_folder(tmp_path / "out"):
        assert not old.exists()


def test_leftovers_of_killed_processes_go_and_those_of_living_ones_stay(tmp_path):
    """Folders of this computer; process 1 always runs, whoever owns it."""
    with folders.output_folder(tmp_path / "out") as output:
        here = output.folder.name.split("-")[1]
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    dead = f".zeronorm-{here}-{ended.stdout.strip()}-abc"
    stay = {f".zeronorm-{here}-{os.getpid()}-abc", f".zeronorm-{here}-1-abc", ".zeronorm-other-1-abc"}
    for name in (dead, *stay):
        (tmp_path / name).mkdir()
    folders.remove_leftovers(tmp_path)
    assert {folder.name for folder in tmp_path.iterdir()} == stay


def test_leftovers_of_unknown_processes_go_after_a_week(tmp_path, monkeypatch):
    kept = tmp_path / ".zeronorm-x"
    kept.mkdir()
    made = kept.stat().st_mtime
    week = 7 * 24 * 3600
    monkeypatch.setattr(folders.time, "time", lambda: made + week)
    folders.remove_leftovers(tmp_path)
    assert kept.exists()
    monkeypatch.setattr(folders.time, "time", lambda: made + week + 1)
    folders.remove_leftovers(tmp_path)
    assert not kept.exists()


# -- Other runs, links and empty names --


def test_two_runs_do_not_share_a_folder(tmp_path):
    folder = tmp_path / "out"
    with folders.output_folder(folder) as output:
        (output.folder / "result.json").write_text("1")
        for options in ({}, {"force": True}, {"resume": True}):
            with pytest.raises(ValueError, match=r"Another run is writing to the folder .*out'\. Wait until"):
                refused(folder, **options)
    assert os.listdir(folder) == ["result.json"]


@pytest.mark.parametrize("content", ["", "no host", f"{folders._host()} 999999999", f"{folders._host()} "])
def test_a_run_that_was_killed_does_not_block_its_folder(content, tmp_path):
    file = tmp_path / "out" / folders.RUNNING
    file.parent.mkdir()
    file.write_text(content)
    os.utime(file, (0, 0))
    with folders.output_folder(tmp_path / "out") as output:
        (output.folder / "result.json").write_text("1")
    assert os.listdir(tmp_path / "out") == ["result.json"]


def test_a_second_process_is_told_that_the_folder_is_in_use(problem, tmp_path):
    code = f"""if True:
        from zeronorm.result._folder import output_folder
        try:
            with output_folder({str(tmp_path / "out")!r}): print("went on")
        except ValueError as error: print(error)
    """
    with folders.output_folder(tmp_path / "out"):
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "Another run is writing" in told


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="this system has no links")
@pytest.mark.parametrize("options", [{}, {"force": True}, {"resume": True}])
def test_a_journal_that_is_a_link_is_not_followed(options, tmp_path):
    mine, folder = tmp_path / "mine", tmp_path / "out"
    mine.mkdir()
    folder.mkdir()
    (mine / "notes.json").write_text("notes")
    (folder / "journal").symlink_to(mine)
    with pytest.raises(ValueError, match=r"'journal' in the folder .* is a link to another folder"):
        refused(folder, **options)
    assert os.listdir(mine) == ["notes.json"]


def test_an_empty_name_is_not_this_folder(problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"The 'out' parameter must name a folder\. Got an empty text"):
        zeronorm.select(*problem, out="", **QUICK)
    assert os.listdir(tmp_path) == []
