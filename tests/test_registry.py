"""The lazy index is fresh, and importing the package is light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import zeronorm
from zeronorm.registry import all_methods, generated_files, get_method, register

PACKAGE = Path(zeronorm.__file__).parent


def test_generated_index_is_fresh():
    for file, text in generated_files(PACKAGE).items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name} is stale: run `make index`"


def test_every_public_name_resolves():
    for name in zeronorm.__all__:
        assert getattr(zeronorm, name).__name__ == name


def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        zeronorm.Nothing


def test_import_pulls_in_nothing_heavy():
    code = "import sys, zeronorm; print([m for m in ('numba', 'sklearn', 'scipy', 'polars') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_method_is_described():
    for method in all_methods():
        assert method.summary, method.name
        assert method.reference, method.name
        assert "_" not in method.name, "names on the command line are written with hyphens"
        assert set(method.tasks) <= {"binary", "multiclass", "multilabel", "regression", "any"}, method.name


def test_unknown_method_names_close_ones():
    with pytest.raises(ValueError, match="Did you mean fisher"):
        get_method("fischer")


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="registered twice"):

        @register("fisher", family="x", tasks=("binary",), reference="-")
        class Other:
            """Another."""


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind"):
        register("new", family="x", tasks=("binary",), reference="-", kind="gadget")
