"""Data, labels and selectors that the protocol takes, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from evaluation.made_data import make_data
from zeronorm import FisherScore, SelectorCV, as_design, evaluate

BAD_INPUT = {
    "same name": ({"selectors": [FisherScore(), FisherScore()]}, "same name: .'FisherScore'."),
    "no selector": ({"selectors": {}}, "'selectors' parameter is empty"),
    "a class": ({"selectors": {"a": FisherScore}}, "Give an object of it, FisherScore()"),
    "size 0": ({"sizes": [0]}, "between 1 and the 12 features of X. Got 0"),
    "size above p": ({"sizes": [3, 13]}, "Got 13"),
    "fraction": ({"sizes": [0.5]}, "Got 0.5"),
    "no size": ({"sizes": []}, "'sizes' parameter is empty"),
    "overlap": ({"cv": [(np.arange(30), np.arange(25, 40))]}, "Split 0 of 'cv' overlaps: 5 rows"),
    "no splits": ({"cv": []}, "no splits|Cannot"),
    "empty test set": ({"cv": [(np.arange(30), [])]}, "empty test set"),
    "row outside": ({"cv": [(np.arange(30), [40])]}, "names row 40"),
    "divided groups": ({"cv": KFold(4), "groups": np.zeros(40)}, "divides sample groups"),
    "short groups": ({"groups": np.zeros(3)}, "'groups' has 3 entries"),
    "short y": ({"y": np.zeros(3)}, "'y' has 3 entries"),
    "task": ({"task": "ranking"}, "'task' parameter"),
    "metric": ({"metrics": "acuracy"}, "which is not known"),
    "metric twice": ({"metrics": ["auc", "auc"]}, "more than once"),
    "metric type": ({"metrics": [3]}, "Got 3 instead"),
    "no metric": ({"metrics": []}, "Got none"),
    "metric name": ({"metrics": {"error": "auc"}}, "must not be named 'error'"),
    "seed": ({"random_state": "one"}, "'random_state' parameter"),
    "flat X": ({"X": np.zeros(40)}, "two dimensions"),
}


@pytest.mark.parametrize("backend", ["csr", "csc", "pandas", "polars", "design", "list", "float32"])
def test_every_container_gives_the_same_records(backend):
    X, y = make_data()
    X = X.astype(np.float32).astype(np.float64)
    containers = {
        "csr": sp.csr_array,
        "csc": sp.csc_matrix,
        "pandas": lambda a: pd.DataFrame(a, columns=[f"f{i}" for i in range(a.shape[1])]),
        "polars": pl.DataFrame,
        "design": as_design,
        "list": lambda a: a.tolist(),
        "float32": lambda a: a.astype(np.float32),
    }
    model = SVC(kernel="linear")
    expected = evaluate(FisherScore(), X, y, cv=3, sizes=[2], estimator=model)
    records = evaluate(FisherScore(), containers[backend](X), y, cv=3, sizes=[2], estimator=model)
    assert records["error"].to_list() == [None] * 3
    assert records["selected"].to_list() == expected["selected"].to_list()
    assert records["predictions"].to_list() == expected["predictions"].to_list()


def test_sparse_data_work_with_the_default_estimator():
    X, y = make_data()
    records = evaluate(FisherScore(), sp.csr_array(X), y, cv=3, sizes=[2])
    assert records["error"].null_count() == 3


@pytest.mark.parametrize("labels", [("tumour", "normal"), (1.0, 2.0), (True, False), (-1, 1)])
def test_labels_of_any_type_survive(labels):
    X, y = make_data()
    named = np.asarray(labels)[y]
    records = evaluate(FisherScore(), X, named, cv=3, sizes=[2])
    assert set(records["predictions"].explode().to_list()) == set(np.asarray(labels).tolist())
    assert sorted(records["truth"].explode().to_list()) == sorted(named.tolist())


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input(case):
    X, y = make_data()
    given, message = BAD_INPUT[case]
    arguments = {"selectors": FisherScore(), "X": X, "y": y, "cv": 3, "sizes": [2]} | given
    with pytest.raises(ValueError, match=message):
        evaluate(**arguments)


def test_selector_list_may_hold_named_pairs():
    X, y = make_data()
    records = evaluate([("a", FisherScore()), ("b", clone(FisherScore()))], X, y, cv=2, sizes=[1])
    assert records["method"].unique(maintain_order=True).to_list() == ["a", "b"]


def test_data_with_a_backend_of_their_own_are_not_gathered(monkeypatch):
    import dask.array

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 6)), np.arange(30) % 2
    expected = evaluate(FisherScore(), X, y, cv=2, sizes=[2])
    apart = dask.array.from_array(X, chunks=(15, 3))

    def contiguous(self, *args, **kwargs):
        raise AssertionError("all of the data were asked for as one array")

    monkeypatch.setattr(dask.array.Array, "__array__", contiguous)
    found = evaluate(FisherScore(), apart, y, cv=2, sizes=[2])
    assert found["selected"].to_list() == expected["selected"].to_list()
    assert found["predictions"].to_list() == expected["predictions"].to_list()


def test_selectors_from_elsewhere_searches_and_pipelines():
    X, y = make_data()
    X[:, 5] = 2.0  # scikit-learn scores a constant column NaN
    tuned = GridSearchCV(
        FisherScore(3, estimator=LogisticRegression()), {"variant": ["between", "overall"]}, cv=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns about the constant column
        records = evaluate(
            {
                "k best": SelectKBest(k=2),
                "search": tuned,
                "pipeline": make_pipeline(StandardScaler(), FisherScore()),
                "cv": SelectorCV(FisherScore(), cv=2, sizes=[1, 2, 3]),
            },
            X,
            y,
            cv=3,
            sizes=[2, 11, 12],
        )
    assert records["error"].null_count() == len(records)
    assert not any(5 in s for s in records.filter(pl.col("size") == 11)["selected"].to_list())


def test_a_pipeline_that_drops_columns_is_refused():
    X, y = make_data()
    X[:, 0] = 1.0
    with pytest.warns(FitFailedWarning, match="2 of 2 tasks failed"):
        records = evaluate(make_pipeline(VarianceThreshold(), FisherScore()), X, y, cv=2, sizes=[2])
    assert "only steps that keep the columns" in records["error"][0]
