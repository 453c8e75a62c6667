"""Tasks and tags of selectors that wrap another selector."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from small_problems import problem_of
from zeronorm import FisherScore, GolubScore, LassoSelector
from zeronorm.selectors.meta._selector_cv import SelectorCV


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda selector: selector,
        lambda selector: make_pipeline(StandardScaler(), selector),
        lambda selector: GridSearchCV(selector, {"n_features_to_select": [1, 2]}),
        lambda selector: RandomizedSearchCV(
            make_pipeline(StandardScaler(), selector),
            {f"{type(selector).__name__.lower()}__estimator": [None]},
        ),
    ],
    ids=["alone", "pipeline", "search", "search over a pipeline"],
)
def test_the_selector_inside_searches_and_pipelines_decides_the_targets(wrapped):
    real = SelectorCV(wrapped(LassoSelector(task="regression")))
    assert real.task == "regression"
    assert get_tags(real).regressor_tags is not None
    for selector, takes_more in ((FisherScore(), True), (GolubScore(), False)):
        whole = SelectorCV(wrapped(selector))
        assert whole.task == "classification"
        assert get_tags(whole).classifier_tags.multi_class is takes_more


def test_a_selector_of_another_library_is_a_classifier_by_default():
    foreign = SelectorCV(StandardScaler())
    assert foreign.task == "classification"
    assert get_tags(foreign).classifier_tags.multi_class
    assert SelectorCV(SimpleNamespace(task="regression")).task == "regression"


def test_labels_as_the_user_gave_them():
    names = np.array(["p", "q", "r"])
    assert problem_of([1, 0, 1], classes=names[:2]).target.labels().tolist() == ["q", "p", "q"]
    assert problem_of([2, 0, 1], classes=names, task="multiclass").target.labels().tolist() == ["r", "p", "q"]
    assert problem_of([0.5, 2.0, 1.0], task="regression").target.labels().tolist() == [0.5, 2.0, 1.0]
