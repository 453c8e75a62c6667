"""The lazy index is fresh, and importing the package is light."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import zeronorm
from zeronorm.registry import all_methods, generated_files, get_method, parameters_of, register

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


@pytest.mark.parametrize("method", all_methods(), ids=lambda method: method.name)
def test_cost_oracle_and_limits_are_registered(method):
    for text in (method.cost, method.oracle, method.avoid):
        assert 0 < len(text) <= 120


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind"):
        register("new", family="x", tasks=("binary",), reference="-", kind="gadget")


PLUGIN = '''
"""A package outside."""
from zeronorm.registry import register
from zeronorm.selection.path import SelectionPath
from zeronorm.selectors.base import BaseSelector


@register("last-first", family="outside", tasks=("binary", "multiclass"), reference="nobody")
class LastFirst(BaseSelector):
    """Take the columns from the last to the first."""

    def __init__(self, n_features_to_select=None, *, estimator=None, feature_groups=None, always_keep=None):
        self.n_features_to_select = n_features_to_select
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem):
        return SelectionPath.from_scores(range(problem.n_features))
'''


def with_distribution(
    folder, code, *, module=PLUGIN, points="[zeronorm.selectors]\nlast-first = outside:LastFirst\n"
):
    """Run code in a process that finds a distribution in the folder."""
    (folder / "outside.py").write_text(module)
    info = folder / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    paths = [str(folder), str(PACKAGE.parents[1] / "docs"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )


def test_a_package_outside_adds_a_method(tmp_path):
    code = (
        "from zeronorm.cli.main import run\n"
        "from zeronorm.registry import all_methods, get_method\n"
        "from zeronorm.testing import selector_checks\n"
        "assert run(['methods']) == 0\n"
        "assert get_method('last-first') in all_methods('selector')\n"
        "names = [name for name, _ in selector_checks(get_method('last-first').cls())]\n"
        "assert names\n"
        "from method_cards import card\n"
        "assert 'autoclass:: outside.LastFirst' in card(get_method('last-first'))\n"
        "import zeronorm\n"
        "from sklearn.datasets import load_iris\n"
        "result = zeronorm.select(*load_iris(return_X_y=True), method='last-first', features=1, permutations=0)\n"
        "assert result.features == ['x4'], result.features\n"
    )
    points = "[zeronorm.selectors]\nlast-first = outside:LastFirst\n"
    done = with_distribution(tmp_path, code, points=points)
    assert done.returncode == 0, done.stderr
    assert "last-first" in done.stdout


def test_a_package_outside_may_name_only_its_module(tmp_path):
    code = "from zeronorm.registry import get_method; print(get_method('last-first').cls.__name__)"
    done = with_distribution(tmp_path, code, points="[zeronorm.selectors]\nlast-first = outside\n")
    assert done.stdout.strip() == "LastFirst", done.stderr


def test_a_broken_package_outside_only_loses_its_own_method(tmp_path):
    code = "from zeronorm.registry import all_methods; print(len(all_methods()))"
    done = with_distribution(tmp_path, code, module="raise RuntimeError('broken')")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(all_methods())
    assert "'outside' adds the method 'last-first' to zeronorm, but it cannot be loaded" in done.stderr


def test_a_package_outside_cannot_take_a_known_name(tmp_path):
    module = PLUGIN.replace('"last-first"', '"fisher"').replace("LastFirst", "FisherScore")
    code = "from zeronorm.registry import get_method; print(get_method('fisher').cls.__module__)"
    points = "[zeronorm.selectors]\nfisher = outside:FisherScore\n"
    done = with_distribution(tmp_path, code, module=module, points=points)
    assert done.stdout.strip() == "zeronorm.selectors.filters.fisher"
    assert "registered twice" in done.stderr


def test_parameters_come_from_signature_and_docstring():
    rows = {row["name"]: row for row in parameters_of(zeronorm.RFE)}
    assert set(rows) == set(zeronorm.RFE().get_params(deep=False))
    assert all(row["text"] for row in rows.values())
    assert {row["name"]: row["default"] for row in parameters_of(zeronorm.SelectorCV)}[
        "selector"
    ] == "required"
