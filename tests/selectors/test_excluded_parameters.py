"""Parameters that exclude each other are refused; either alone is accepted."""

from __future__ import annotations

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import zeronorm
from small_problems import INF
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
        ("consensus", {"weights": "stability"}, [{"weights": "stability", "n_subsamples": 1}, {"weights": "equal"}]),
    ],
)  # fmt: skip
def test_parameters_that_exclude_each_other(method, wrong, right):
    cls = get_method(method).cls
    with pytest.raises(ValueError, match=f"parameter of {cls.__name__} must be"):
        cls(**wrong)._validate_params()
    for params in right:
        cls(**params)._validate_params()


def test_parameters_of_stability_selection_that_exclude_each_other():
    fisher = FisherScore()
    with pytest.raises(ValueError, match="'worst_case' with sampling='halves'"):
        zeronorm.StabilitySelection(fisher, sampling="halves", assumption="unimodal")._validate_params()
    zeronorm.StabilitySelection(fisher, sampling="halves")._validate_params()
    zeronorm.StabilitySelection(fisher, assumption="unimodal")._validate_params()


@pytest.mark.parametrize("cls", [zeronorm.KnockoffSelector, zeronorm.ProbeSelector])
@pytest.mark.parametrize("setting", [{"feature_groups": [0, 0, 1]}, {"always_keep": [0]}])
def test_columns_cannot_be_named_where_others_are_mixed_in(cls, setting):
    cls(FisherScore())._validate_params()
    with pytest.raises(ValueError, match=f"cannot have '{next(iter(setting))}'"):
        cls(FisherScore(**setting))._validate_params()
    with pytest.raises(ValueError, match="cannot have"):
        cls(make_pipeline(StandardScaler(), FisherScore(**setting)))._validate_params()
