"""The lazy index is fresh, and importing the package is light."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import zeronorm
from zeronorm.registry import (
    all_methods,
    generated_files,
    get_method,
    names_in_sources,
    parameters_of,
    register,
)
from zeronorm.selection.target import KINDS

PACKAGE = Path(zeronorm.__file__).parent


def test_generated_index_is_fresh():
    for file, text in generated_files(PACKAGE).items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name} is stale: run `make index`"


def test_the_index_names_every_method_of_the_package():
    own = [method for method in all_methods() if method.cls.__module__.startswith("zeronorm.")]
    assert names_in_sources() == sorted(method.name for method in own)


def test_every_public_name_resolves():
    for name in zeronorm.__all__:
        assert getattr(zeronorm, name).__name__ == name


def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        zeronorm.Nothing


def test_every_method_is_described():
    for method in all_methods():
        assert method.summary, method.name
        assert method.reference, method.name
        assert "_" not in method.name, "names on the command line are written with hyphens"
        assert set(method.tasks) <= {*KINDS, "any"}, method.name


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
from zeronorm.selection._path import SelectionPath
from zeronorm.selectors._base import BaseSelector


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


def plugin(method, class_name):
    return PLUGIN.replace('"last-first"', f'"{method}"').replace("LastFirst", class_name)


# Name of the package: its module and its entry point.
PACKAGES = {
    "outside": (PLUGIN, "last-first = outside:LastFirst"),
    "module_alone": (plugin("last-again", "LastAgain"), "last-again = module_alone"),
    "broken": ("raise RuntimeError('broken')", "lost = broken:Lost"),
    "thief": (plugin("fisher", "FisherScore"), "fisher = thief:FisherScore"),
}
WITH_ALL_OF_THEM = """
import json, sys
import zeronorm
heavy = [name for name in ("numba", "sklearn", "scipy", "polars") if name in sys.modules]
reached = [zeronorm.report.render.__name__, zeronorm.datasets.load_dataset.__name__]
from sklearn.datasets import load_iris
from method_cards import card
from zeronorm.cli._main import run
from zeronorm.registry import all_methods, get_method
from zeronorm.testing import selector_checks

run(["methods"])
method = get_method("last-first")
result = zeronorm.select(*load_iris(return_X_y=True), method="last-first", features=1, permutations=0)
print(json.dumps({
    "heavy": heavy,
    "reached": reached,
    "is listed": method in all_methods("selector"),
    "checks": [name for name, _ in selector_checks(method.cls())],
    "card": card(method),
    "features": result.features,
    "named by its module": get_method("last-again").cls.__name__,
    "methods": [method.name for method in all_methods()],
    "module of fisher": get_method("fisher").cls.__module__,
}))
"""


@pytest.fixture(scope="module")
def with_packages(tmp_path_factory):
    """What a process finds that has four packages beside this one: one process, as starting it takes longest."""
    folder = tmp_path_factory.mktemp("packages")
    for name, (module, point) in PACKAGES.items():
        (folder / f"{name}.py").write_text(module)
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[zeronorm.selectors]\n{point}\n")
    paths = [str(folder), str(PACKAGE.parents[1] / "docs"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", WITH_ALL_OF_THEM], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    *printed, found = done.stdout.splitlines()
    return json.loads(found) | {"printed": "\n".join(printed), "stderr": done.stderr}


def test_import_gradients_in_nothing_heavy(with_packages):
    assert with_packages["heavy"] == []


def test_packages_are_reached_without_an_import_of_their_own(with_packages):
    assert with_packages["reached"] == ["render", "load_dataset"]


def test_a_package_outside_adds_a_method(with_packages):
    assert with_packages["is listed"]
    assert with_packages["checks"]
    assert "autoclass:: outside.LastFirst" in with_packages["card"]
    assert with_packages["features"] == ["x4"]
    assert "last-first" in with_packages["printed"]


def test_a_package_outside_may_name_only_its_module(with_packages):
    assert with_packages["named by its module"] == "LastAgain"


def test_a_broken_package_outside_only_loses_its_own_method(with_packages):
    added = {"last-first", "last-again"}
    assert sorted(with_packages["methods"]) == sorted({m.name for m in all_methods()} | added)
    message = "'broken' adds the method 'lost' to zeronorm, but it cannot be loaded"
    assert message in with_packages["stderr"]


def test_a_package_outside_cannot_take_a_known_name(with_packages):
    assert with_packages["module of fisher"] == "zeronorm.selectors.filters._fisher"
    assert "registered twice" in with_packages["stderr"]


def test_parameters_come_from_signature_and_docstring():
    rows = {row["name"]: row for row in parameters_of(zeronorm.RFE)}
    assert set(rows) == set(zeronorm.RFE().get_params(deep=False))
    assert all(row["text"] for row in rows.values())

    class Wrapper:
        def __init__(self, selector, *, level=0.5):
            """A class whose first parameter has no default."""

    assert [row["default"] for row in parameters_of(Wrapper)] == ["required", "0.5"]


def test_a_method_of_this_package_is_found_without_a_look_at_all_others(monkeypatch):
    info = get_method("fisher")
    monkeypatch.setattr("zeronorm.registry.all_methods", lambda: pytest.fail("looked at all methods"))
    assert get_method("fisher") is info
