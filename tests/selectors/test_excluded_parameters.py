"""Parameters that exclude each other are refused; either alone is accepted."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import zeronorm
from small_problems import INF, noise
from zeronorm import FisherScore
from zeronorm.registry import get_method

REGRESSION = {"task": "regression"}


@pytest.mark.parametrize(
    ("method", "wrong", "right"),
    [
        ("lasso", {"method": "lars", "norm_bound": 1.0}, [{"method": "lars"}, {"norm_bound": 1.0}]),
        ("zeronorm-svm", {"loss": "probit", "q": INF}, [{"loss": "probit"}, {"q": INF}]),
        ("arom", {"multi_class": "weston_watkins", "norm": "switch"}, [{"multi_class": "weston_watkins"}]),
        ("arom", {"multi_class": "weston_watkins", "slack_norm": 0}, [{"norm": "switch"}, {"slack_norm": 0}]),
        ("arom", {"C": INF, **REGRESSION}, [{"C": INF}, {"C": 1.0, **REGRESSION}, {"C": "auto", **REGRESSION}]),
        ("arom", {"C": INF, "slack_norm": 0}, [{"C": 1e9, "slack_norm": 0}]),
        ("ofw", {"checkpoint": "x", "method": "exact"}, [{"checkpoint": "x"}, {"method": "exact"}]),
        ("ofw", {"checkpoint": "x", "method": "exact_euclidean"}, [{"checkpoint": "x", "method": "euclidean"}]),
        ("ofw", {"step_offset": 1.0}, [{"step_size": 1.0}, {"step_size": 1.0, "step_offset": 1.0}]),
        ("grafting", {"loss": "logistic", **REGRESSION}, [{"loss": "logistic"}, REGRESSION]),
        ("grafting", {"loss": "squared_hinge", **REGRESSION}, [{"loss": "squared_error", **REGRESSION}]),
        ("tree", {"criterion": "squared_error"}, [{"criterion": "squared_error", **REGRESSION}]),
        ("tree", {"criterion": "gini", **REGRESSION}, [{"criterion": "gini"}, {"criterion": "auto", **REGRESSION}]),
        ("tree", {"n_trees": 2, "criterion": "error"}, [{"criterion": "error"}, {"n_trees": 2}]),
        ("tree", {"n_trees": 2, "ccp_alpha": "auto"}, [{"ccp_alpha": "auto"}, {"n_trees": 2, "ccp_alpha": 0.1}]),
        ("radius-margin-scaling", {"discard": "curvature", "bound": "span"}, [{"discard": "curvature"}]),
        ("radius-margin-scaling", {"discard": "curvature", "bound": "validation"}, [{"bound": "validation"}]),
        ("max-entropy-discrimination", {"epsilon": 0.0, **REGRESSION}, [{"epsilon": 0.0}, REGRESSION]),
        ("max-entropy-discrimination", {"C": 1.0}, [{"C": 1.001}, {"C": 1.0, **REGRESSION}]),
        ("ard", {"prior_shape": 1.0}, [{"prior_shape": 1.0, "prior_rate": 1.0}, {}]),
        ("ard", {"prior_rate": 1.0}, []),
        ("consensus", {"weights": "stability"}, [{"weights": "stability", "n_subsamples": 2}, {"weights": "equal"}]),
    ],
)  # fmt: skip
def test_parameters_that_exclude_each_other(method, wrong, right, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a checkpoint is written there
    cls = get_method(method).cls
    with pytest.raises(ValueError, match=f"parameter of {cls.__name__} must be"):
        fit(cls, wrong)
    for params in right:
        fit(cls, params)


def fit(cls, params):
    """Fit classes that a line separates, or the numbers that decide them; few iterations are enough here."""
    y = noise(24, 1, 1)[:, 0]
    X = noise(24, 4) + np.outer(3.0 * np.sign(y) if "task" not in params else y, np.eye(4)[0])
    quick = {"max_iter": 5} if cls in (zeronorm.OptimalFeatureWeighting, zeronorm.RadiusMarginScaling) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**quick | params).fit(X, y if "task" in params else y > 0)


def test_parameters_of_stability_selection_that_exclude_each_other():
    X, y, settings = noise(20), np.arange(20) % 2, {"subset_size": 1, "n_subsamples": 2}
    with pytest.raises(ValueError, match="'worst_case' with sampling='halves'"):
        zeronorm.StabilitySelection(FisherScore(), sampling="halves", assumption="unimodal", **settings).fit(
            X, y
        )
    for right in ({"sampling": "halves"}, {"assumption": "unimodal"}):
        zeronorm.StabilitySelection(FisherScore(), **settings, **right).fit(X, y)


@pytest.mark.parametrize("cls", [zeronorm.KnockoffSelector, zeronorm.ProbeSelector])
@pytest.mark.parametrize("setting", [{"feature_groups": [0, 0, 1]}, {"always_keep": [0]}])
def test_column_settings_are_refused_where_columns_are_added(cls, setting):
    X, y = noise(20), np.arange(20) % 2
    cls(FisherScore(), n_features_to_select=1).fit(X, y)
    with pytest.raises(ValueError, match=f"cannot have '{next(iter(setting))}'"):
        cls(FisherScore(**setting)).fit(X, y)
    with pytest.raises(ValueError, match="cannot have"):
        cls(make_pipeline(StandardScaler(), FisherScore(**setting))).fit(X, y)
