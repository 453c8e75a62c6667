"""Parts of the study on spectra: chained selectors, score tables, the published matrices."""

import numpy as np
import pytest

from zeronorm.selectors.filters._fisher import FisherScore
from zeronorm.selectors.filters._gram_schmidt_relief import GramSchmidtRelief
from zeronorm_studies.declared.guyon2003_spectra import ChainedSelectors, full, third_of
from zeronorm_studies.guyon_tables import (
    TABLES,
    PublishedMatrix,
    code_of,
    matrix_table,
    measured_matrix,
    same_directions,
)
from zeronorm_studies.results import NotMeasured, Results
from zeronorm_studies.study import Configuration, Data, Plan

CONFIGURATIONS = {"A": ("a", 1), "B": ("b", 1)}


def sample(n=60, p=8):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, 5] += 3 * y
    X[:, 6] += 2 * y
    return X, y


def test_the_second_selector_chooses_among_what_the_first_leaves():
    X, y = sample()
    chain = ChainedSelectors(FisherScore(3), GramSchmidtRelief(2)).fit(X, y)
    first = FisherScore(3).fit(X, y)
    left = np.flatnonzero(first.get_support())
    second = GramSchmidtRelief(2).fit(X[:, left], y)
    assert chain.path_.order[:3].tolist() == left[second.path_.order].tolist()
    assert np.flatnonzero(chain.get_support()).tolist() == left[np.flatnonzero(second.get_support())].tolist()
    assert sorted(chain.path_.order) == list(range(8))


def test_the_first_selector_leaves_enough():
    X, y = sample()
    chain = ChainedSelectors(FisherScore(1), GramSchmidtRelief(4), at_least=5).fit(X, y)
    kept = set(FisherScore(5).fit(X, y).get_support(indices=True))
    assert set(np.flatnonzero(chain.get_support())) <= kept
    assert chain.get_support().sum() == 4


def results_of(a, b):
    """Three folds in which the truth is 1 everywhere."""
    data = Data("d", lambda fold: None, 3)
    rows = [
        {
            "data": "d",
            "configuration": config,
            "trial": t,
            "asked_size": 1,
            "error": None,
            "truth": [1] * 20,
            "predictions": p,
        }
        for config, p in (("a", a), ("b", b))
        for t in range(3)
    ]
    return Results(Plan((data,), (Configuration("a", "fisher"), Configuration("b", "fisher")), (1,)), rows)


def test_tables_show_ours_and_the_published_score():
    results = results_of([1] * 20, [0] * 10 + [1] * 10)
    found = measured_matrix(results, "d", CONFIGURATIONS)
    published = PublishedMatrix(("B", "A"), ((2,),))
    table = matrix_table(found, ("B", "A"), published)
    assert table.rows == (("1. B", "50.00", "-3 (2)"), ("2. A", "3 (-2)", "0.00"))
    assert matrix_table(found).rows[0] == ("1. A", "0.00", "3")


@pytest.mark.parametrize(("score", "agrees"), [(2, True), (-2, False)])
def test_directions_are_counted(score, agrees):
    results = results_of([1] * 20, [0] * 10 + [1] * 10)
    outcome = same_directions("d", CONFIGURATIONS, PublishedMatrix(("A", "B"), ((score,),)), 0.1)(results)
    assert outcome.agrees is agrees
    assert outcome.ours.startswith("of 1 pairs")


def test_a_matrix_needs_two_methods():
    with pytest.raises(NotMeasured, match="fewer than two"):
        measured_matrix(results_of([1] * 20, [1] * 20), "d", {"A": ("a", 1), "C": ("c", 1)})


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_published_tables_are_whole_and_declared(table):
    n = len(table.rows)
    assert [len(row) for row in table.upper] == list(range(n - 1, 0, -1))
    errors = [error for _, _, error in table.rows]
    assert errors == sorted(errors)
    asked = {(config.label, size) for config in full().configs for size in config.sizes or (None,)}
    assert set(table.configurations.values()) <= asked
    assert table.matrix.score(table.rows[0][0], table.rows[-1][0]) == 3


def test_codes_carry_the_number_of_features():
    assert code_of("R#_K4_RBF", 7) == "R7_K4_RBF"
    assert code_of("INTERCV_OM", None) == "INTERCV_OM"


def test_thirds_do_not_overlap():
    X, y = sample(n=326)
    parts = [third_of((X, y), fold) for fold in range(3)]
    tests = np.concatenate([part.test for part in parts])
    assert np.unique(tests).size == 3 * 108
    assert all(part.train.size == 218 for part in parts)
