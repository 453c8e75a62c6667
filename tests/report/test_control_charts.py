"""The charts of error control: their numbers are those of the selectors."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from zeronorm import (
    DummySelector,
    FisherScore,
    KnockoffSelector,
    LassoSelector,
    ProbeSelector,
    StabilitySelection,
)
from zeronorm.engines._error_control import false_selection_bound
from zeronorm.report import ReportData
from zeronorm.report.charts._control import (
    FalseFeaturesChart,
    HalfSamplePathsChart,
    estimate_of,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 40))
Y = X[:, :12].sum(axis=1) + RNG.normal(size=150)
LARS = LassoSelector(task="regression", method="lars")
FISHER = FisherScore(task="regression")
SELECTORS = {
    "dummies": DummySelector(task="regression", level=0.2, random_state=0),
    "knockoffs": KnockoffSelector(task="regression", level=0.2, random_state=0),
    "probes, rate": ProbeSelector(FISHER, level=0.05, random_state=0),
    "probes, fdr": ProbeSelector(FISHER, level=0.2, control="fdr", random_state=0),
    "probes, fwer": ProbeSelector(FISHER, level=0.2, control="fwer", random_state=0),
    "halves": StabilitySelection(LARS, false_selections=3.0, n_subsamples=40, random_state=0),
    "integrated": StabilitySelection(
        LARS, bound="integrated", level=0.2, n_subsamples=40, n_permutations=1, random_state=0
    ),
}


@pytest.fixture(scope="module", params=SELECTORS)
def fitted(request):
    return SELECTORS[request.param].fit(X, Y)


def test_the_selected_number_is_where_the_estimate_meets_the_level(fitted):
    """The last size within the level is the one that the selector chose, or equally good features share its value."""
    found = estimate_of(fitted)
    within = np.flatnonzero(found.values <= found.level + 1e-12)
    chosen = int(fitted.support_.sum())
    assert chosen > 0
    if isinstance(fitted, StabilitySelection) and fitted.bound == "frequency":
        q, p = fitted.subset_size_, X.shape[1]
        by_hand = [
            false_selection_bound(q, p, share) for share in -np.sort(-fitted.frequencies_) if share > 0.5
        ]
        np.testing.assert_allclose(found.values, by_hand)
        assert found.values[chosen - 1] <= false_selection_bound(q, p, fitted.threshold) <= found.level
    elif isinstance(fitted, DummySelector):
        assert chosen <= within[-1] + 1
    else:
        assert chosen == within[-1] + 1


def test_the_estimate_of_knockoffs_is_that_of_the_definition():
    selector = SELECTORS["knockoffs"].fit(X, Y)
    W = selector.statistics_
    positive = np.sort(W[W > 0])[::-1]
    by_hand = [min(1.0, (1 + np.sum(-t >= W)) / np.sum(t <= W)) for t in positive]
    np.testing.assert_allclose(estimate_of(selector).values, by_hand)


def test_other_selectors_have_no_estimate():
    assert estimate_of(FisherScore(3)) is None
    assert estimate_of(object()) is None
    assert estimate_of(KnockoffSelector(n_draws=3)) is None


@pytest.fixture(scope="module")
def result():
    y = 2.0 * X[:, :4].sum(axis=1) + RNG.normal(size=150)
    params = {"selector": "fisher", "bound": "integrated", "level": 0.4, "n_subsamples": 20}
    found = zeronorm.select(X, y, method="stability-selection", params=params, cv=2, permutations=0)
    assert found.selected
    return found


def test_the_chart_of_a_run_marks_the_chosen_number_and_the_level(result):
    chart = FalseFeaturesChart.from_data(ReportData(result, result.records))
    assert (chart.chosen, chart.level) == (len(result.selected), 0.4)
    q = np.maximum.accumulate([feature.selection_q_value for feature in result.selected])
    np.testing.assert_allclose(chart.values[: chart.chosen], q)
    picture = chart.picture()
    (ringed,) = [point for point in picture.series[0].points if point.is_chosen]
    assert (ringed.x, ringed.y) == (chart.chosen, chart.values[chart.chosen - 1])
    assert picture.guides.levels == ((0.4, "level 0.4"),)
    headers, rows = chart.table()
    assert [row[0] for row in rows if row[2] == "yes"] == [str(chart.chosen)]
    assert headers[1] in chart.title.lower()
    chart.plot()


def test_paths_of_features_are_shown_beside_those_of_a_permuted_target(result):
    chart = HalfSamplePathsChart.from_data(ReportData(result, result.records))
    assert list(chart.names) == [result.name_of(i) for i in result.figures["half-sample-paths"]["features"]]
    shares = np.asarray(chart.paths)
    assert shares.shape == (8, 20)
    assert (np.diff(shares, axis=1) >= 0).all()  # a longer list has all features of a shorter one
    assert len(chart.permuted) == 20
    assert set(chart.names[:3]) <= {f"x{k}" for k in range(1, 5)}
    assert len(chart.table()[1]) == 9 * 20
    assert chart.keys()[-1] == "permuted target, largest"
    chart.plot()


def test_runs_without_error_control_have_neither_chart():
    plain = zeronorm.select(X, Y, method="lasso", features=5, cv=2, permutations=0)
    report_data = ReportData(plain, plain.records)
    assert FalseFeaturesChart.from_data(report_data) is None
    assert HalfSamplePathsChart.from_data(report_data) is None
