"""Tests of ranks and scores against published values, scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from evaluation.published import AUC, VARIANTS
from zeronorm import FisherScore, evaluate
from zeronorm.evaluation.significance import (
    critical_difference,
    friedman,
    mcnemar,
    score_matrix,
    score_matrix_of_records,
)


def _predictions(only_a, only_b, both, neither):
    truth = np.zeros(only_a + only_b + both + neither, dtype=int)
    a, b = truth.copy(), truth.copy()
    a[:only_a] = 1
    b[only_a : only_a + only_b] = 1
    a[only_a + only_b : only_a + only_b + both] = 1
    b[only_a + only_b : only_a + only_b + both] = 1
    return truth, a, b


def test_friedman_of_demsar():
    test = friedman(AUC, greater_is_better=True)
    np.testing.assert_allclose(test.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert test.statistic == pytest.approx(9.28, abs=5e-3)
    assert test.f_statistic == pytest.approx(3.69, abs=5e-3)
    assert test.f_p_value < 0.05


def test_friedman_matches_scipy_without_ties():
    table = np.random.default_rng(0).random((9, 5))
    test = friedman(table, greater_is_better=False)
    expected = stats.friedmanchisquare(*table.T)
    assert test.statistic == pytest.approx(expected.statistic)
    assert test.p_value == pytest.approx(expected.pvalue)
    assert test.concordance == pytest.approx(expected.statistic / (9 * 4))
    turned = friedman(-table, greater_is_better=True)
    np.testing.assert_array_equal(turned.mean_ranks, test.mean_ranks)


def test_friedman_at_full_agreement_is_finite_or_infinite_but_never_nan():
    test = friedman(np.tile([1.0, 2.0, 3.0], (4, 1)), greater_is_better=False)
    assert test.mean_ranks.tolist() == [1, 2, 3]
    assert test.f_p_value == 0.0
    assert test.concordance == pytest.approx(1.0)
    level = friedman(np.ones((4, 3)), greater_is_better=False)
    assert (level.statistic, level.p_value) == (0.0, 1.0)


def test_nemenyi_of_demsar():
    """Critical values 2.569 and 2.291 for four classifiers; differences 1.25 and 1.12 at N = 14."""
    at_5 = critical_difference(AUC, VARIANTS, greater_is_better=True)
    at_10 = critical_difference(AUC, VARIANTS, greater_is_better=True, level=0.10)
    unit = np.sqrt(4 * 5 / (6 * 14))
    assert at_5.difference / unit == pytest.approx(2.569, abs=5e-4)
    assert at_10.difference / unit == pytest.approx(2.291, abs=5e-4)
    assert at_5.difference == pytest.approx(1.25, abs=5e-3)
    assert at_5.methods == ("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")
    # No two differ by 1.25; at 10 % C4.5 differs by more than 1.12 from the two variants with +m.
    assert at_5.groups == (at_5.methods,)
    assert at_10.groups == (at_5.methods[:3], at_5.methods[2:])
    gaps = np.abs(at_10.mean_ranks[:, None] - at_10.mean_ranks)
    np.testing.assert_array_equal(at_10.p_values < 0.10, gaps > at_10.difference)


def test_critical_difference_groups_by_hand():
    rng = np.random.default_rng(0)
    base = np.array([0.0, 0.1, 5.0, 5.1, 10.0])
    table = base + 0.5 * rng.normal(size=(30, 5))
    result = critical_difference(table, list("abcde"), greater_is_better=False)
    assert [set(group) for group in result.groups] == [{"a", "b"}, {"c", "d"}]


def test_mcnemar_matches_statsmodels():
    truth, a, b = _predictions(only_a=4, only_b=13, both=6, neither=40)
    test = mcnemar(truth, a, b)
    reference = statsmodels_mcnemar([[40, 13], [4, 6]], exact=False, correction=False)
    assert test.z**2 == pytest.approx(reference.statistic)
    assert 2 * test.p_value == pytest.approx(reference.pvalue)  # one side against two
    assert test.decision() == 1
    assert mcnemar(truth, b, a).decision() == -1
    assert mcnemar(truth, b, a).p_value == pytest.approx(1 - test.p_value)
    assert test.difference.estimate == pytest.approx((10 - 19) / 63)
    assert test.difference.low < test.difference.estimate < test.difference.high < 0


def test_mcnemar_without_differences():
    test = mcnemar([0, 1, 1], [0, 0, 1], [0, 0, 1])
    assert (test.z, test.p_value, test.decision()) == (0.0, 0.5, 0)


def test_score_matrix_of_paper_004():
    """Three folds: better on two, indistinguishable on one."""
    folds = [_predictions(1, 12, 3, 92), _predictions(2, 14, 3, 89), _predictions(5, 6, 3, 94)]
    truth = [fold[0] for fold in folds]
    matrix = score_matrix(truth, {"a": [f[1] for f in folds], "b": [f[2] for f in folds]})
    assert matrix.scores.tolist() == [[0, 2], [-2, 0]]
    assert matrix.error_rates == pytest.approx([17 / 324, 41 / 324])
    assert np.diag(matrix.with_errors()) == pytest.approx(matrix.error_rates)
    assert matrix.n_folds == 3


def _records():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 8))
    X[:, 7] += 1.5 * y
    selectors = {"fisher": FisherScore(), "reversed": _Reversed(), "again": FisherScore()}
    return evaluate(selectors, X, y, cv=5, sizes=[1, 2])


class _Reversed(FisherScore):
    """The worst features first."""

    def _select(self, problem):
        from zeronorm import SelectionPath

        return SelectionPath(order=super()._select(problem).order[::-1].copy())


def _records_with_errors(*counts):
    """One test part of 60 samples, and a method for each number of errors."""
    return pl.DataFrame(
        [
            {
                "split": 0, "method": str(n_wrong), "size": None, "truth": [0] * 60, "error_rate": n_wrong / 60,
                "predictions": [1] * n_wrong + [0] * (60 - n_wrong), "test_rows": list(range(60)),
                "n_train": 60, "n_test": 60,
            }
            for n_wrong in counts
        ]
    )  # fmt: skip


@pytest.fixture(scope="module")
def records():
    return _records()


def test_a_score_needs_a_difference_at_the_level():
    """Two errors against none, one-sided: p = 0.079."""
    records = _records_with_errors(0, 2)
    assert score_matrix_of_records(records).scores.tolist() == [[0, 0], [0, 0]]
    assert score_matrix_of_records(records, level=0.1).scores.tolist() == [[0, 1], [-1, 0]]
    test = mcnemar(*_predictions(only_a=0, only_b=2, both=0, neither=8))
    assert (test.decision(), test.decision(0.05), test.decision(0.1)) == (0, 0, 1)
