"""The Python blocks of the documentation run as printed; what the pages are made from is complete."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from zeronorm import as_design
from zeronorm.datasets._catalogue import BUNDLED
from zeronorm.registry import all_methods
from zeronorm.selection._parameters import VOCABULARY

DOCS = Path(__file__).parents[1] / "docs"
GENERATED = {"papers.rst", "parameters.rst", "performance.rst", "references.rst"}
PAGES = [
    page
    for page in sorted([*DOCS.glob("*.rst"), *DOCS.glob("guide/*.rst")])
    if page.name not in GENERATED and ".. code-block:: python" in page.read_text(encoding="utf-8")
]


def blocks(text):
    """The Python blocks of a page, in order."""
    found = re.findall(r"^\.\. code-block:: python\n\n((?:(?: {3}.*)?\n)+)", text + "\n", flags=re.MULTILINE)
    return [textwrap.dedent(block) for block in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, block in enumerate(blocks(page.read_text(encoding="utf-8"))):
            exec(compile(block, f"{page.name}, block {number + 1}", "exec"), names)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", sorted((DOCS.parent / "examples").glob("plot_*.py")), ids=lambda path: path.stem
)
def test_the_examples_run(script, tmp_path):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_page_with_code_is_found():
    assert {"start", "paths", "error_control", "big_data"} <= {page.stem for page in PAGES}


@pytest.fixture(scope="module")
def cards():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        import method_cards

        yield method_cards
    for name in (
        "method_cards",
        "toy_pictures",
        "generated_pages",
        "check_links",
        "measure_gpu",
        "readme_table",
    ):
        sys.modules.pop(name, None)


METHODS = all_methods()
SECTIONS = {
    "What it does",
    "When not to use it",
    "Measured rank",
    "References",
    "Tested against",
    "Options and defaults",
    "Reference",
}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_page_of_a_method_has_every_part(cards, method):
    parts = cards.sections(method)
    expected = SECTIONS | ({"On the toy problem"} if method.kind != "transformer" else set())
    assert set(parts) == expected
    assert all("".join(body).strip() for body in parts.values())
    assert {"Family", "Tasks", "Cost", "Backends"} <= set(cards.properties(method))
    assert "tests/" in cards.tested(method)
    assert "Not in the studies" not in cards.measured(method) or method.name not in cards.measured_ranks()


def test_the_references_of_the_methods_are_in_the_list(cards):
    """In docs/references.csv, or in ``papers`` where the method is registered."""
    named = {part.strip() for method in METHODS for part in method.reference.split(";")}
    assert [part for part in named if not cards.cited(part)] == ["scikit-learn's RFECV"]
    for method in METHODS:
        assert set(method.papers) <= set(cards.cited(method.reference)), (
            "a paper that 'reference' does not name"
        )


def test_links_of_references_are_dois_or_addresses(cards):
    links = [link for _, link in cards.references().values() if link]
    assert len(links) >= 30
    assert all(re.fullmatch(r"10\.\d{4,}/\S+|https://\S+", link) for link in links)


def test_generated_pages_are_complete(cards):
    import generated_pages

    from zeronorm.cli.commands import app

    page = generated_pages.commands()
    assert all(f"zeronorm {command.name}" in page for command in app.registered_commands if command.name)
    assert "zeronorm study" in page
    api = generated_pages.api()
    assert "API reference" in api["index"]
    assert all(f"/api/{name}>`" in api["index"] for name in api if name != "index")
    assert {"zeronorm.select", "zeronorm.evaluation.Metric", "zeronorm.testing.check_selector"} <= set(api)
    parameters = generated_pages.parameters()
    rows = re.findall(r"^   \* - ``(\w+)``\n     - (.+)\n     - (.+)$", parameters, re.MULTILINE)
    shown = {name: meaning.replace("\\_", "_") for name, _, meaning in rows}
    assert shown == {name: word.meaning for name, word in VOCABULARY.items()}
    assert {must_be for name, must_be, _ in rows if name == "n_jobs"} == {VOCABULARY["n_jobs"].kind.must_be}
    papers = generated_pages.papers(DOCS / "studies")
    assert papers.count(".. dropdown::") >= 17
    agree, differ = map(int, re.findall(r"(\d+) agree and (\d+) differ\.", papers)[0])
    assert agree + differ >= 200
    assert all(key.split()[0].rstrip(",") in generated_pages.reference_list() for key in cards.references())
    performance = generated_pages.performance(DOCS.parent / "benchmarks")
    assert performance.count("\n   * - ") == 1 + len(sys.modules["readme_table"].measured()["rows"])


def test_the_tables_of_the_comparison_come_from_the_studies(cards):
    gains, shapes = cards.gains(), cards.shapes()
    for name, (sets, gain, p_value) in cards.gains_of_defaults(cards.DEFAULTS).items():
        row = [f"   * - {name}", f"     - {sets}", f"     - {gain.replace('-', '−')}"]
        assert "\n".join(row) in gains
        assert f"     - {p_value}\n" in gains
    for name in cards.SHOWN_RANKS:
        assert (
            "\n".join([f"   * - {name}", *(f"     - {rank}" for rank in cards.measured_ranks()[name][1:])])
            in shapes
        )
    study = (DOCS / "studies" / "defaults-fresh.md").read_text(encoding="utf-8")
    _, _, ranks = study.partition("## Mean ranks")
    assert "| arom | " in ranks
    for line in ranks.partition("## Against")[0].splitlines()[6:]:
        if line and not line.startswith(cards.UNFAIR):
            name, *found = (cell.strip() for cell in line.split("|")[1:-1])
            assert "\n".join([f"   * - {name}", *(f"     - {rank}" for rank in found)]) in cards.fresh_ranks()
    assert "scikit-learn RFE" not in gains + cards.fresh_ranks()
    page = (DOCS / "comparison.rst").read_text(encoding="utf-8")
    assert page.count(".. include:: methods/") == 3


def test_broken_links_are_found(cards, tmp_path):
    import check_links

    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">x</a><a href="b.html#gone">x</a><a href="c.html">x</a>'
        '<script src="https://elsewhere.org/x.js"></script><a href="https://elsewhere.org">x</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    found = check_links.problems(tmp_path)
    assert len(found) == 3
    assert all(part in "".join(found) for part in ("#gone", "c.html", "x.js"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [m for m in METHODS if m.kind in ("selector", "meta")], ids=lambda m: m.name
)
def test_every_selector_selects_the_same_from_every_backend(method, tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    rng = np.random.default_rng(0)
    y = np.arange(50) % 2
    X = rng.normal(size=(50, 20))
    X[:, :4] += np.outer(y, np.linspace(0.5, 2.0, 4))
    np.save(tmp_path / "x.npy", X)
    selector = method.instances()[0]
    if "random_state" in selector.get_params():
        selector.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = clone(selector).fit(X, y).support_
        for data in (as_design(tmp_path / "x.npy"), da.from_array(X, chunks=(-1, 7)), strict.asarray(X)):
            np.testing.assert_array_equal(clone(selector).fit(data, y).support_, expected)


def test_the_column_about_a_gpu_names_registered_selectors(cards):
    """A new one may be missing: its page says that it is not measured yet."""
    assert set(cards.gpu_readings()) <= {method.name for method in all_methods("selector")}
    assert cards.on_gpu(None) == "not measured yet"
    assert "data stay there" in cards.abilities(METHODS)


def test_the_toy_problem_shows_registered_methods(cards):
    from toy_pictures import rows

    measured = {*rows("selected.csv"), *(name.removesuffix(" peer") for name in rows("errors.csv"))}
    assert measured <= {method.name for method in METHODS}


@pytest.mark.parametrize(
    "name", ["fisher", "relief", "gram-schmidt", "arom", "zeronorm-svm", "rfe", "lasso", "tree"]
)
def test_the_column_about_a_gpu_is_what_the_code_does(cards, name):
    pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    import measure_gpu

    method = next(method for method in METHODS if method.name == name)
    assert cards.on_gpu(measure_gpu.readings(method)) == cards.on_gpu(cards.gpu_readings()[name])


def test_error_control_is_stated_for_registered_methods_only(cards):
    assert set(cards.ERROR_CONTROL) <= {method.name for method in all_methods()}


def test_the_short_table_of_trust_follows_from_the_long_ones(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "trust"))
    simulate = importlib.import_module("simulate")
    try:
        for name in simulate.SUMMARIES:
            shutil.copy(DOCS / "trust" / f"{name}.csv", tmp_path)
        for file in (simulate.summarise(tmp_path), simulate.shorten(tmp_path)):
            assert file.read_bytes() == (DOCS / "trust" / file.name).read_bytes()
    finally:
        sys.modules.pop("simulate", None)


def test_the_data_of_the_package_are_listed_with_their_sizes():
    page = (DOCS / "guide" / "command_line.rst").read_text(encoding="utf-8")
    for name, entry in BUNDLED.items():
        row = f"* - ``{name}``\n     - {entry.n_samples} × {entry.n_features}\n"
        assert (row in page) == bool(entry.file)


def test_the_ranks_of_the_systematic_study_are_read(cards):
    ranks = cards.measured_ranks()
    assert len(ranks) >= 38
    assert ranks["random"][0] == max(ranks.values(), key=lambda found: float(found[0]))[0]
