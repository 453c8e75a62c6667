"""What a selector tells scikit-learn about the targets it takes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import get_tags

from zeronorm import FisherScore
from zeronorm.registry import all_methods
from zeronorm.selectors import base

SELECTORS = [s for kind in ("selector", "meta") for m in all_methods(kind) for s in m.instances()]


def test_the_tags_are_those_of_the_task():
    for selector in SELECTORS:
        tags, is_regression = get_tags(selector), selector._task_name() == "regression"
        assert (tags.regressor_tags is not None) == is_regression, selector
        assert (tags.classifier_tags is None) == is_regression, selector


def test_the_tags_say_whether_more_than_two_classes_are_taken():
    found = set()
    for selector in SELECTORS:
        if selector._task_name() != "regression":
            takes_more = "multiclass" in selector._tasks()
            assert get_tags(selector).classifier_tags.multi_class == takes_more, selector
            found.add(takes_more)
    assert found == {True, False}


def test_plain_arrays_need_no_checks_and_leave_no_names_behind(monkeypatch):
    """As with scikit-learn's checks: names of an earlier data frame go, and what is not plain is still checked."""
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
    selector = FisherScore(1).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    expected = selector.scores_
    with monkeypatch.context() as without_checks:
        without_checks.setattr(base, "validate_data", None)
        selector.fit(X, y)
    # A data frame may be stored the other way round, and its sums then differ by rounding.
    np.testing.assert_allclose(selector.scores_, expected, rtol=1e-12)
    assert selector.n_features_in_ == 3
    assert not hasattr(selector, "feature_names_in_")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        selector.fit(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        selector.fit(np.where(X[3, 1] == X, np.nan, X), y)
