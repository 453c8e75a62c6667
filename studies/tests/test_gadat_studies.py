"""Rules of the studies of optimal feature weighting that are calculated here."""

import numpy as np
import pytest

from zeronorm.datasets import make_reusable_features
from zeronorm_studies.declared.gadat2007_spam import (
    DATA,
    FIGURE_18,
    N_LISTED,
    OFW,
    SPAM_WORDS,
    _words_shared,
    shared_words,
)
from zeronorm_studies.declared.gadat2007_synthetic import conditional_entropy
from zeronorm_studies.results import Results
from zeronorm_studies.study import Configuration, Data, Plan


@pytest.mark.parametrize("feature", [0, 1, 9])
def test_the_exact_entropy_is_that_of_a_large_sample(feature):
    X, y, _ = make_reusable_features(40_000, n_features=10, random_state=0)
    joint = np.histogram2d(y, X[:, feature], bins=3)[0] / len(y)
    surprise = -np.log(joint / joint.sum(axis=0))
    seen = np.sum(joint * surprise)
    standard_error = np.sqrt(np.sum(joint * (surprise - seen) ** 2) / len(y))
    # Where nothing can be learnt, the estimate is below ln 3 by the number of free cells over twice the sample.
    assert conditional_entropy(feature) == pytest.approx(seen, abs=4 * standard_error + 4 / (2 * len(y)))


@pytest.mark.parametrize(("n_shared", "agrees"), [(16, True), (15, False)])
def test_shared_words_are_counted(n_shared, agrees):
    listed = [SPAM_WORDS.index(word) for word in FIGURE_18]
    others = [place for place in range(54) if place not in listed]
    selected = listed[:n_shared] + others[: N_LISTED - n_shared]
    row = {
        "data": DATA,
        "configuration": OFW,
        "trial": 0,
        "asked_size": N_LISTED,
        "selected": selected,
        "error": None,
    }
    plan = Plan((Data(DATA, lambda trial: None, 1),), (Configuration(OFW, "ofw"),), (N_LISTED,))
    results = Results(plan, [row])
    assert shared_words(results) == [n_shared]
    assert _words_shared(results).agrees is agrees
