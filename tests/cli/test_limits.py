"""Limits of the system and odd values of options: the message names the cause."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys

import pytest

from zeronorm.cli import _main as cli
from zeronorm.cli.options import parameters

GIB = 2**30


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "The disk is full"),
        (RuntimeError("write failed: No space left on device (os error 28)"), "The disk is full"),
        (MemoryError("Unable to allocate 26.8 GiB for an array"), "There is not enough memory: Unable to"),
        (MemoryError(), "There is not enough memory. Close other programs"),
    ],
)
def test_limits_are_not_reported_as_faults(error, message, capsys):
    assert cli._explain(error, None) == cli.FAILED
    printed = capsys.readouterr().err
    assert message in printed
    assert "report it" not in printed


def test_other_errors_are_faults(capsys):
    assert cli._explain(OSError(errno.EIO, "input/output error"), None) == cli.FAILED
    assert "report it" in capsys.readouterr().err


def test_deeply_nested_values_are_refused():
    with pytest.raises(ValueError, match="The value of 'C' is nested too deeply"):
        parameters(["C=" + "-" * 20_000 + "5"])
    assert parameters(["C=-5"]) == {"C": -5}


def test_an_empty_folder_name_is_refused(data_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(tmp_path))
    assert cli.run(["select", str(data_file), "--target", "label", "-o", ""]) == cli.INVALID
    assert "it is empty. Name a file or folder" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == before


def _limited(n_bytes, *arguments):
    code = "from zeronorm.cli._main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes)),
    )


def test_a_small_memory_limit_is_named(tmp_path):
    done = _limited(GIB, "select", "x.csv")
    assert done.returncode == cli.INVALID
    assert "The memory limit of this shell is 1.0 GiB of address space" in done.stderr


def test_the_least_memory_limit_is_enough(data_file, tmp_path):
    """With a margin for systems with more threads."""
    done = _limited(
        cli.LEAST_ADDRESS_SPACE + GIB // 4,
        *("select", str(data_file), "-t", "label", "-m", "fisher", "--permutations", "0", "--cv", "3"),
        *("-o", str(tmp_path / "out")),
    )
    assert done.returncode == 0, done.stderr
