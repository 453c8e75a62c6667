"""What selectors around another selector take from the one inside."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from small_problems import problem_of
from zeronorm import LassoSelector
from zeronorm.selectors.meta.selector_cv import SelectorCV


def test_the_selector_inside_searches_and_pipelines():
    lasso = LassoSelector(task="regression")
    inside = [
        lasso,
        make_pipeline(StandardScaler(), lasso),
        GridSearchCV(lasso, {"n_alphas": [5]}),
        RandomizedSearchCV(make_pipeline(StandardScaler(), lasso), {"lassoselector__n_alphas": [5]}),
    ]
    for selector in inside:
        whole = SelectorCV(selector)
        assert whole._innermost() is lasso
        assert whole.task == "regression"
        assert whole._tasks() == lasso._tasks()
    foreign = SelectorCV(StandardScaler())
    assert (foreign.task, foreign._tasks()) == ("classification", SelectorCV._method.tasks)
    assert SelectorCV(SimpleNamespace(task="regression")).task == "regression"


def test_labels_as_the_user_gave_them():
    names = np.array(["p", "q", "r"])
    assert problem_of([1, 0, 1], classes=names[:2]).target.labels().tolist() == ["q", "p", "q"]
    assert problem_of([2, 0, 1], classes=names, task="multiclass").target.labels().tolist() == ["r", "p", "q"]
    assert problem_of([0.5, 2.0, 1.0], task="regression").target.labels().tolist() == [0.5, 2.0, 1.0]
