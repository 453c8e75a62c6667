"""A run of pytest in a process that is forked from one in which the large libraries are loaded.

Loading them takes longer than most tests. Each run imports the package itself, so that it can hold a fault.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

READ_BEFORE = [
    "hypothesis",
    "numba",
    "pandas",
    "pytest",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.ensemble",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "sklearn.pipeline",
    "sklearn.svm",
    "sklearn.utils.estimator_checks",
]


def run(
    arguments: list[str], settings: dict[str, str], folders: tuple[str, str], memory: int, output: str
) -> None:
    """As ``python -m pytest`` for the tests of a folder, standing in another; what it says goes to a file."""
    root, standing = folders
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    os.chdir(standing)
    os.environ.clear()
    os.environ.update(settings)
    said = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    sys.path[:0] = [root, *filter(None, settings["PYTHONPATH"].split(os.pathsep))]
    sys.modules.pop("sitecustomize", None)
    import pytest
    import sitecustomize  # noqa: F401

    status = int(pytest.main(arguments))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)  # threads that a test has left do not matter


def text_of(output: Path) -> str:
    return output.read_text("utf-8", errors="replace") if output.exists() else ""
