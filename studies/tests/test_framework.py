"""Rules, journal, caps and pages of the study framework, on studies made for the purpose."""

import json
import re
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config
from scipy import stats

from zeronorm.resampling._journal import Journal
from zeronorm_studies import code_version
from zeronorm_studies import runner as workers
from zeronorm_studies.pages import Page, PageTable, Section, build_page, to_html, to_markdown, write_study
from zeronorm_studies.results import Claim, ClaimCheck, NotMeasured, PublishedFigure, Results
from zeronorm_studies.runner import failed_task, next_job, run_capped, run_study
from zeronorm_studies.study import (
    Configuration,
    Data,
    Plan,
    Study,
    StudyError,
    Trial,
    folds,
    generated,
    get_study,
    resplits,
)


def draw(trial):
    rng = np.random.default_rng(trial)
    X = rng.normal(size=(40, 6))
    return Trial(X, (X[:, 0] > 0).astype(int), np.arange(20), np.arange(20, 40))


TWO_CONFIGURATIONS = (Configuration("Fisher", "fisher"), Configuration("random", "random"))


def plan(configs=TWO_CONFIGURATIONS, n_trials=3, sizes=(1,)):
    return Plan((Data("toy", draw, n_trials, independent=True),), configs, sizes)


def study(make, expectations=()):
    return Study("made-here", "A title", "a source", "About it.", "nothing", make, make, tuple(expectations))


def results_with(errors, *, independent=True, n_train=80, n_test=20):
    """Results whose errors are known, to check the rules by hand."""
    data = Data("toy", draw, len(errors["a"]), independent=independent)
    configs = tuple(Configuration(name, "fisher") for name in errors)
    rows = [
        {
            "data": "toy",
            "configuration": config,
            "trial": t,
            "asked_size": 1,
            "error": None,
            "selected": [0],
            "error_rate": value,
            "n_train": n_train,
            "n_test": n_test,
            "n_selected": 1,
            "fit_seconds": 0.1,
        }
        for config, values in errors.items()
        for t, value in enumerate(values)
    ]
    return Results(Plan((data,), configs, (1,)), rows)


@pytest.mark.parametrize(("published", "verdict"), [(20.0, "agrees"), (26.0, "agrees"), (27.0, "differs")])
def test_published_figures_are_compared_by_the_t_interval_of_ours(published, verdict):
    values = [0.1, 0.2, 0.3, 0.2, 0.1, 0.3, 0.2, 0.2]
    results = results_with({"a": values})
    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (low <= published / 100 <= high) == (verdict == "agrees")
    assert PublishedFigure("x", "toy", "a", 1, published).compare(results).verdict == verdict


@pytest.mark.parametrize(
    ("published", "mean", "error", "n_trials", "verdict"),
    [
        (13.89, 39.20, 17.05, 3, "too few trials to tell"),
        (23.46, 25.38, 0.48, 3, "agrees"),  # the t quantile of two degrees of freedom is 4.3
        (23.46, 25.38, 0.48, 30, "differs"),
        (12.65, 22.63, 2.42, 3, "too few trials to tell"),
        (5.0, 5.0, 0.0, 1, "too few trials to tell"),
        (5.0, 5.0, 0.0, 5, "agrees"),
    ],
)
def test_a_wide_interval_shows_no_agreement(published, mean, error, n_trials, verdict):
    figure = PublishedFigure("x", "toy", "a", 1, published)
    assert figure.verdict(mean, error, n_trials) == verdict


@pytest.mark.parametrize(
    ("n_test", "verdict"), [(None, "differs"), (2000, "differs"), (100, "too few trials to tell")]
)
def test_a_published_figure_of_one_division_has_an_error_of_its_own(n_test, verdict):
    """27 % of 100 samples are known to 4.4 points, of 2000 to 1.0; ours, 20 %, to 2.7."""
    results = results_with({"a": [0.1, 0.2, 0.3, 0.2, 0.1, 0.3, 0.2, 0.2]})
    finding = PublishedFigure("x", "toy", "a", 1, 27.0, one_division_of=n_test).compare(results)
    assert finding.verdict == verdict
    if n_test == 100:
        assert "(4.44, 100 samples)" in finding.rule


@pytest.mark.parametrize(("decimals", "verdict"), [(2, "differs"), (1, "agrees"), (0, "agrees")])
def test_on_one_split_ours_must_round_to_the_printed_number(decimals, verdict):
    figure = PublishedFigure("x", "toy", "a", 1, 7.3, is_fixed=True, decimals=decimals)
    assert figure.compare(results_with({"a": [0.0734]})).verdict == verdict
    assert figure.compare(results_with({"a": [0.083]})).verdict == "differs"


def test_standard_error_of_resplits_is_corrected():
    values = [0.1, 0.2, 0.3, 0.2]
    _, error = results_with({"a": values}, independent=False).mean_and_error("toy", "a", 1)
    assert error == pytest.approx(np.sqrt((1 / 4 + 20 / 80) * np.var(values, ddof=1)))


def test_difference_is_a_minus_b():
    results = results_with({"a": [0.1, 0.15, 0.2, 0.1, 0.12, 0.11], "b": [0.3, 0.32, 0.35, 0.4, 0.31, 0.33]})
    found = results.difference("toy", "a", "b", 1)
    assert found.mean == pytest.approx(-0.205)
    assert found.p_value < 0.05


def test_resplits_are_compared_by_the_test_of_the_papers():
    """Differences 1, 2, 3, 4 in hundredths: mean 2.5, variance 5/3, and Nadeau and Bengio's factor 1/4 + 20/80."""
    results = results_with({"a": [0.12, 0.14, 0.16, 0.18], "b": [0.11, 0.12, 0.13, 0.14]}, independent=False)
    found = results.difference("toy", "a", "b", 1)
    assert found.p_value == pytest.approx(2 * stats.t.sf(2.5 / np.sqrt(0.5 * 5 / 3), 3))


def test_a_trial_without_result_is_not_averaged_away():
    results = results_with({"a": [0.1, None, 0.3]})
    results.rows[1]["error"] = "timeout: too long"
    with pytest.raises(NotMeasured, match="1 of 3 trials: timeout"):
        results.mean("toy", "a", 1)
    finding = PublishedFigure("x", "toy", "a", 1, 20.0).compare(results)
    assert finding.verdict == "not measured"


def test_no_statement_is_made_about_selections_that_nobody_made():
    results = results_with({"a": [None, None]})
    for row in results.rows:
        row.update(selected=None, error="DataError: not on this machine")
    with pytest.raises(NotMeasured, match="no selection in 2 trials: DataError: not on this machine"):
        results.selections("toy", "a", 1)


def test_a_missing_method_is_an_error_and_never_silent():
    configs = (Configuration("Fisher", "fisher"), Configuration("new", "not-a-method"))
    with pytest.raises(StudyError, match="new \\(not registered: not-a-method\\)"):
        run_study(study(lambda: plan(configs)), in_process=True)
    made = study(lambda: plan(configs))
    results = run_study(made, in_process=True, allow_missing=True)
    assert "not registered: not-a-method" in to_markdown(build_page(made, results, quick=False))


def test_a_study_resumes_from_its_journal(tmp_path, monkeypatch):
    made = study(plan)
    first = run_study(made, in_process=True, journal=tmp_path)
    files = sorted(tmp_path.glob("*.json"))
    assert len(files) == 6
    files[0].unlink()
    computed = []
    original = workers.run_task
    monkeypatch.setattr(workers, "run_task", lambda *args: computed.append(args) or original(*args))
    again = run_study(made, in_process=True, journal=tmp_path)
    assert len(computed) == 1
    assert [r["error_rate"] for r in again.rows] == [r["error_rate"] for r in first.rows]


def test_a_page_names_the_code_of_every_task_in_the_journal(tmp_path, monkeypatch):
    made = study(plan)
    monkeypatch.setattr(workers, "code_now", lambda: "zeronorm 9.1, commit 11111111, 2001-01-01")
    run_study(made, in_process=True, journal=tmp_path)
    files = sorted((tmp_path).glob("*.json"))
    files[0].unlink()
    monkeypatch.setattr(workers, "code_now", lambda: "zeronorm 9.2, commit 22222222, 2002-02-02")
    again = run_study(made, in_process=True, journal=tmp_path)
    old = f"zeronorm 9.1, commit 11111111, 2001-01-01 ({len(files) - 1} of the tasks)"
    new = "zeronorm 9.2, commit 22222222, 2002-02-02 (1 of the tasks)"
    text = to_markdown(build_page(made, again, quick=False))
    assert f"computed by {old}; {new};" in text.partition("## ")[0]
    assert f"| code | {old}; {new} |" in text


def test_a_journal_without_the_code_is_said_to_be_of_unknown_code(tmp_path):
    made, journal = study(plan), Journal(tmp_path)
    run_study(made, in_process=True, journal=tmp_path)
    for key in journal.finished():
        result = journal.read(key)
        assert result is not None
        journal.write(key, {name: value for name, value in result.items() if name != "code"})
    results = run_study(made, in_process=True, journal=tmp_path)
    assert "unknown" in to_markdown(build_page(made, results, quick=False)).partition("## ")[0]


def test_the_state_of_the_code_follows_its_files(tmp_path, monkeypatch):
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(code_version, "PACKAGES", (package,))
    code_version.code_state.cache_clear()
    without = code_version.code_state()
    (package / "a.py").write_text("x = 2\n", encoding="utf-8")
    code_version.code_state.cache_clear()
    changed = code_version.code_state()
    assert without.startswith("source files with digest")
    assert changed != without
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    code_version.code_state.cache_clear()
    assert code_version.code_state() == f"commit {commit[:8]}"
    (package / "a.py").write_text("x = 3\n", encoding="utf-8")
    code_version.code_state.cache_clear()
    assert code_version.code_state().startswith("source files with digest")
    code_version.code_state.cache_clear()


def test_other_settings_are_other_work(tmp_path):
    run_study(study(plan), in_process=True, journal=tmp_path)
    other = (Configuration("Fisher", "fisher", {"variant": "overall"}), Configuration("random", "random"))
    run_study(study(lambda: plan(other)), in_process=True, journal=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 9


def test_the_relevant_feature_gives_the_lower_error():
    results = run_study(study(plan), in_process=True)
    assert results.mean("toy", "Fisher", 1) < results.mean("toy", "random", 1)


def test_a_task_that_takes_too_long_is_a_timeout_and_other_trials_are_not_tried_where_the_plan_says_so():
    made = get_study("systematic")
    assert made.quick().one_timeout_is_enough
    results = dict(run_capped(made.quick, [(0, 1, 0), (0, 1, 1)], n_jobs=1, cap_s=1e-6))
    assert list(results) == [(0, 1, 0), (0, 1, 1)]
    assert {row["error"] for row in results[0, 1, 0]["rows"]} == {"timeout: not finished after 1e-06 s"}
    assert "an earlier trial took too long" in results[0, 1, 1]["rows"][0]["error"]


def test_timeouts_are_results_and_are_tried_again_under_a_larger_cap(tmp_path):
    made = study(plan)
    run_study(made, in_process=True, journal=tmp_path)
    late = failed_task(plan(), TWO_CONFIGURATIONS[0], "timeout: not finished after 5 s", 5.0)
    journal = Journal(tmp_path)
    for key in journal.finished():
        journal.write(key, late)
    kept = run_study(made, in_process=True, journal=tmp_path, cap_s=5.0)
    assert all(row["error"].startswith("timeout") for row in kept.rows)
    assert "timeout: not finished" in to_markdown(build_page(made, kept, quick=False))
    again = run_study(made, in_process=True, journal=tmp_path, cap_s=6.0)
    assert all(row["error"] is None for row in again.rows)


def test_processes_and_this_process_agree():
    made = get_study("huang2008-time")
    here = run_study(made, quick=True)
    there = run_study(made, quick=True, in_process=False)
    assert [row["selected"] for row in here.rows] == [row["selected"] for row in there.rows]


def test_claims_are_decided_by_their_check():
    results = results_with({"a": [0.1, 0.2]})
    for agrees, verdict in ((True, "agrees"), (False, "differs")):
        claim = Claim("x", "y", "rule", lambda r, agrees=agrees: ClaimCheck("seen", agrees))
        assert claim.compare(results).verdict == verdict


def test_pages_escape_what_they_show():
    table = PageTable(("a|b", "<c>"), (("x | y\nz", "<script>"),))
    page = Page("<t>", "s", (Section("h & h", ("p < q",), table),))
    assert "x \\| y z" in to_markdown(page)
    html = to_html(page)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_files_are_written_whole(tmp_path):
    made = study(plan)
    results = run_study(made, in_process=True)
    page = build_page(made, results, quick=False, provenance=[("date", "today")])
    written = write_study(tmp_path, "made-here", page, results)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in written)
    rows = [json.loads(line) for line in (tmp_path / "made-here.jsonl").read_text().splitlines()]
    assert len(rows) == 6
    assert "today" in (tmp_path / "made-here.md").read_text()


def test_unknown_studies_are_explained():
    with pytest.raises(StudyError, match=re.escape("weston2003-linear")):
        get_study("weston2003-linar")


# -- trials ---------------------------------------------------------------------------------------------


def sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[0, 0] = np.nan
    return X, np.arange(30) % 2


def test_the_same_number_gives_the_same_trial_and_parts_do_not_overlap():
    for data in (
        resplits("s", sample, n_trials=3, test_size=0.2),
        folds("f", sample, n_folds=3),
    ):
        one, two = data.draw(1), data.draw(1)
        np.testing.assert_array_equal(one.test, two.test)
        assert not set(one.train) & set(one.test)
        assert set(data.draw(0).test) != set(one.test)


def test_folds_cover_every_sample_once():
    data = folds("f", sample, n_folds=3)
    assert sorted(np.concatenate([data.draw(t).test for t in range(3)])) == list(range(30))


def test_missing_values_are_filled_from_the_training_set_only():
    X, y = sample()
    X[5:10, 1] = np.nan
    data = resplits("s", lambda: (X, y), n_trials=1, test_size=0.3)
    trial = data.draw(0)
    expected = np.nanmedian(X[trial.train, 1])
    assert np.all(trial.X[5:10, 1] == expected)
    assert np.isnan(X[5, 1])


def test_generated_training_sets_have_both_classes():
    def make(n, random_state):
        y = np.r_[np.ones(5, dtype=int), np.zeros(n - 5, dtype=int)]
        return np.arange(float(n))[:, None], y, None

    trial = generated("g", make, n_train=5, n_test=20, n_trials=1).draw(0)
    assert set(trial.y[trial.train]) == {0, 1}
    assert sorted(trial.X[:, 0]) == list(range(25))


def test_tasks_through_the_parallel_backend_in_force_are_the_same(tmp_path):
    def what(results):
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in results.rows]

    here = run_study(study(plan), in_process=True)
    with parallel_config(backend="threading"):
        elsewhere = run_study(study(plan), elsewhere=True, journal=tmp_path)
    assert what(elsewhere) == what(here)
    assert len(list(tmp_path.glob("*.json"))) > 0


def test_a_method_is_clearly_worse_where_its_whole_interval_is():
    from zeronorm_studies.declared.defaults import clearly_worse, gains

    errors = {  # by data set: the Fisher score and a method, in three folds
        "steadily worse": ([0.20, 0.22, 0.21], [0.30, 0.32, 0.31]),
        "worse by less than a point": ([0.20, 0.22, 0.21], [0.206, 0.226, 0.216]),
        "worse in one fold": ([0.20, 0.22, 0.21], [0.20, 0.22, 0.51]),
        "better": ([0.20, 0.22, 0.21], [0.10, 0.12, 0.11]),
    }
    rows = [
        {
            "data": data,
            "configuration": config,
            "trial": t,
            "asked_size": 5,
            "balanced_error_rate": value,
        }
        for data, both in errors.items()
        for config, values in zip(("fisher", "a"), both, strict=True)
        for t, value in enumerate(values)
    ]
    results = Results(plan(), rows)
    assert gains(results, "a", "fisher")["worse in one fold"] == pytest.approx(-0.1)
    assert clearly_worse(results, "a", "fisher") == ["steadily worse"]


def test_in_regression_no_error_is_larger_than_that_of_the_mean():
    from zeronorm_studies.declared.defaults import gains

    explained = {"lasso": (0.75, 0.5), "scikit-learn f_regression": (0.5, -40.0)}
    rows = [
        {"data": "one", "configuration": config, "trial": t, "asked_size": 5, "r2": value}
        for config, values in explained.items()
        for t, value in enumerate(values)
    ]
    results = Results(replace(plan(), metrics=("r2",)), rows)
    assert gains(results, "lasso", "scikit-learn f_regression") == pytest.approx({"one": (0.25 + 0.5) / 2})


def test_a_claim_on_data_never_looked_at_leaves_the_others_out():
    from zeronorm_studies.declared.defaults import FRESH_DATA
    from zeronorm_studies.real_data import FRESH, TUNING, UNSEEN

    assert not {*FRESH} & {*TUNING, *UNSEEN}
    gain = {**dict.fromkeys(UNSEEN, 0.2), **dict.fromkeys(FRESH, -0.1)}
    rows = [
        {
            "data": data,
            "configuration": config,
            "trial": 0,
            "asked_size": 5,
            "balanced_error_rate": value,
        }
        for data, gained in gain.items()
        for config, value in (("fisher", 0.5), ("consensus", 0.5 - gained))
    ]
    results = Results(plan(), rows)
    claims = {c.what: c for c in FRESH_DATA.expectations if c.what.startswith("consensus is better")}
    on_all, on_fresh = (claim.check(results) for claim in claims.values())
    assert on_all.agrees
    assert f"on {len(UNSEEN) + len(FRESH)} data sets" in on_all.ours
    assert not on_fresh.agrees
    assert "gain -10.00 points" in on_fresh.ours


def test_a_process_stays_with_a_draw_whose_tasks_share_what_they_compute():
    waiting = [(data, config, trial) for trial in (1, 0) for data in (1, 0) for config in (2, 1, 0)]
    jobs, given_up, taken = set(waiting), {(1, 2)}, []
    workers = [SimpleNamespace(draw=None), SimpleNamespace(draw=None)]
    while any(job[:2] not in given_up for job in waiting):
        for worker in workers:
            if any(job[:2] not in given_up for job in waiting):
                data, config, trial = next_job(waiting, given_up, worker, workers)
                worker.draw = data, trial
                taken.append((data, config, trial))
    assert sorted(taken) == sorted(job for job in jobs if job[:2] not in given_up)
    assert taken[:6] == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 2, 0), (0, 0, 1)]
