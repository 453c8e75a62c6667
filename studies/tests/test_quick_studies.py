"""The quick version of every study runs on data that need no download, and its claims have the right direction."""

import pytest

from zeronorm.datasets import make_linear_toy
from zeronorm.evaluation import evaluate
from zeronorm.evaluation._records import columns_of
from zeronorm_studies.declared.lal2006_claims import make_wrapper
from zeronorm_studies.pages import build_page, compare_all, to_html, to_markdown
from zeronorm_studies.runner import run_study
from zeronorm_studies.study import NAMES, NOT_RUN, all_studies, get_study

# Speed is measured by the full version; tests do not assert wall time.
WITHOUT_QUICK_CLAIM = {
    "huang2008-time",
    *(name for name in (*NAMES, *NOT_RUN) if name.startswith(("defaults", "answer", "challenge"))),
}
SAME_QUICK_VERSION = {"defaults-fresh", "defaults-fresh-regression"}  # as the studies they extend


@pytest.mark.parametrize("name", [name for name in (*NAMES, *NOT_RUN) if name not in SAME_QUICK_VERSION])
def test_quick_version_bears_out_its_claims(name, monkeypatch):
    monkeypatch.delenv("ZERONORM_DATA", raising=False)
    study = get_study(name)
    results = run_study(study, quick=True)
    findings = compare_all(study, results, quick=True)
    measured = {f.what: (f.verdict, f.ours) for f in findings if f.origin != "figure"}
    assert all(verdict == "agrees" for verdict, _ in measured.values()), measured
    assert bool(measured) == (name not in WITHOUT_QUICK_CLAIM)
    assert [row["error"] for row in results.rows if row["error"]] == []
    page = build_page(study, results, quick=True)
    assert "quick version" in to_markdown(page)
    assert to_html(page).count("<table") == sum(section.table is not None for section in page.sections)


def test_every_study_tells_its_source_cost_and_choices():
    for study in all_studies():
        assert study.name in NAMES
        assert len(study.source) > 10
        assert len(study.cost) > 10
        assert len(study.about) > 100
        assert study.expectations


@pytest.mark.parametrize("name", [*NAMES, *NOT_RUN])
def test_expectations_refer_to_configurations_of_the_full_plan(name):
    study = get_study(name)
    plan = study.full()
    configs, data = (
        {config.label for config in plan.configs},
        {d.label for d in plan.data},
    )
    for expectation in study.expectations:
        if hasattr(expectation, "config"):
            assert expectation.config in configs
            assert expectation.data in data


def test_the_wrapper_of_the_full_version_can_be_scored():
    """The quick version leaves it out for its time."""
    X, y, _ = make_linear_toy(60, n_features=8, random_state=0)
    found = columns_of(evaluate({"wrapper": make_wrapper()}, X, y, cv=2, sizes=(None,)))
    assert found["error"] == [None, None]
    assert found["n_selected"] == [2, 2]
    assert max(found["error_rate"]) < 0.4


@pytest.mark.parametrize("name", NAMES)
def test_labels_name_one_cell_each(name):
    for plan in (get_study(name).full(), get_study(name).quick()):
        labels = [
            (data.label, config.label)
            for data in plan.data
            for config in plan.configs
            if config.only is None or data.label in config.only
        ]
        assert len(set(labels)) == len(labels)
