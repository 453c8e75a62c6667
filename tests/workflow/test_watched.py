"""A run can be watched by another process, through a file in its output folder."""

from __future__ import annotations

import json

import zeronorm
from zeronorm.result._folder import PROGRESS, is_running
from zeronorm.selection import _progress_file as progress_file
from zeronorm.selection._progress_file import ProgressFile, read_progress

from .conftest import two_signals


def test_a_run_writes_each_step_and_removes_the_file(tmp_path, monkeypatch):
    seen = []
    original = ProgressFile._write

    def spy(self):
        original(self)
        seen.append(dict(read_progress(self.file)))
        assert is_running(tmp_path / "out")

    monkeypatch.setattr(ProgressFile, "_write", spy)
    monkeypatch.setattr(progress_file, "LEAST_SECONDS", 0.0)
    zeronorm.select(*two_signals(), method="fisher", features=2, cv=3, permutations=2, out=tmp_path / "out")
    assert seen[-1]["done"] == seen[-1]["total"] == 1 + 3 * (1 + 2)
    assert any("fold 2 of 3" in step["text"] for step in seen)
    assert any("permutation 2 of 2" in step["text"] for step in seen)
    assert not (tmp_path / "out" / PROGRESS).exists()
    assert not is_running(tmp_path / "out")


def test_the_file_is_written_at_most_some_times_per_second(tmp_path):
    file = tmp_path / "progress"
    bar = ProgressFile(file)
    bar.update(total=10, description="first")
    bar.update(advance=1, description="second")
    assert read_progress(file)["text"] == "first"
    bar.add_line("compiling")
    assert read_progress(file) == {"text": "second", "done": 1, "total": 10, "lines": ["compiling"]}
    bar.close()
    assert read_progress(file) is None


def test_a_folder_that_cannot_be_written_does_not_stop_the_run(tmp_path):
    ProgressFile(tmp_path / "nowhere" / "progress").update(advance=1)


def test_damaged_files_are_no_progress(tmp_path):
    for text in ("", "[]", "{}", "[" * 100_000, json.dumps({"text": 1})):
        (tmp_path / "progress").write_text(text)
        assert read_progress(tmp_path / "progress") is None
