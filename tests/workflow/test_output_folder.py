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


def made_by_a_run(folder):
    folder.mkdir()
    (folder / folders.MARK).touch()
    return folder


def test_leftovers_of_earlier_runs_go_when_a_run_begins(tmp_path):
    old = made_by_a_run(tmp_path / ".zeronorm-other-1-old")
    os.utime(old / folders.MARK, (0, 0))
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
        made_by_a_run(tmp_path / name)
    folders.remove_leftovers(tmp_path)
    assert {folder.name for folder in tmp_path.iterdir()} == stay


def test_leftovers_of_other_computers_go_after_a_week(tmp_path, monkeypatch):
    kept = made_by_a_run(tmp_path / ".zeronorm-other-1-abc")
    made = (kept / folders.MARK).stat().st_mtime
    week = 7 * 24 * 3600
    monkeypatch.setattr(folders.time, "time", lambda: made + week)
    folders.remove_leftovers(tmp_path)
    assert kept.exists()
    monkeypatch.setattr(folders.time, "time", lambda: made + week + 1)
    folders.remove_leftovers(tmp_path)
    assert not kept.exists()


@pytest.mark.parametrize("name", [".zeronorm-notes", ".zeronorm-my-1-notes", ".zeronorm-running"])
def test_a_folder_that_no_run_made_stays(name, tmp_path):
    """However old it is, and even if it is named like one of ours."""
    own = tmp_path / name
    own.mkdir()
    (own / "notes.txt").write_text("mine")
    os.utime(own / "notes.txt", (0, 0))
    os.utime(own, (0, 0))
    with folders.output_folder(tmp_path / "out"):
        pass
    assert (own / "notes.txt").read_text() == "mine"


def test_the_mark_of_a_temporary_folder_is_no_result(tmp_path):
    with folders.output_folder(tmp_path / "out") as output:
        assert (output.folder / folders.MARK).is_file()
        (output.folder / "result.json").write_text("1")
    assert os.listdir(tmp_path / "out") == ["result.json"]


def test_a_link_with_our_name_is_not_followed(tmp_path):
    mine = made_by_a_run(tmp_path / "mine")
    (tmp_path / ".zeronorm-other-1-abc").symlink_to(mine)
    os.utime(mine / folders.MARK, (0, 0))
    folders.remove_leftovers(tmp_path)
    assert (mine / folders.MARK).is_file()


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


# -- The folder of a run for which none is named --


def test_a_folder_is_named_after_data_and_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = folders.folder_named_after("/data/genes.csv.gz")
    assert re.fullmatch(r"zeronorm-genes-\d{8}-\d{6}", str(first))
    assert str(folders.folder_named_after("-")).startswith("zeronorm-input-2")
    assert str(folders.folder_named_after("t-cells", "comparison")).startswith(
        "zeronorm-comparison-t-cells-2"
    )


def test_two_runs_in_one_second_have_two_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folders.time, "strftime", lambda form: "20261118-120000")
    names = []
    for _ in range(3):
        names.append(str(folders.folder_named_after("genes.csv")))
        (tmp_path / names[-1]).mkdir()
    start = "zeronorm-genes-20261118-120000"
    assert names == [start, f"{start}-2", f"{start}-3"]


def test_an_interrupted_run_is_found_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"found no interrupted run of 'genes\.csv'"):
        folders.folder_named_after("genes.csv", resume=True)
    for number, name in enumerate(("zeronorm-genes-20261118-120000", "zeronorm-genes-20261118-110000")):
        (tmp_path / name / folders.JOURNAL).mkdir(parents=True)
        (tmp_path / name / folders.JOURNAL / "fold.json").touch()
        os.utime(tmp_path / name / folders.JOURNAL, (number, number))
    (tmp_path / "zeronorm-other-20261118-130000" / folders.JOURNAL).mkdir(parents=True)
    found = folders.folder_named_after("genes.csv", resume=True)
    assert str(found) == "zeronorm-genes-20261118-110000"  # the later one
