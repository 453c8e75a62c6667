"""ONNX graphs of saved models, run by onnxruntime."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification

import zeronorm

FAST = {"method": "fisher", "features": 4, "cv": 3, "permutations": 0}


def run(model, X):
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    content = model.to_onnx().SerializeToString()
    assert onnx.load_from_string(content).metadata_props[1].value.split("\n") == model.features
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"features": X}), strict=True))


@pytest.mark.parametrize("predictor", ["linear", "gaussian"])
@pytest.mark.parametrize(
    "labels", [("a", "b"), (3, 7), (0.5, 1.5), (False, True), ("x", "y", "z"), (1, 2, 4, 8)]
)
def test_the_graph_gives_the_same_predictions_and_probabilities(labels, predictor):
    X, y = make_classification(
        90, 6, n_informative=4, n_classes=len(labels), n_clusters_per_class=1, random_state=0
    )
    found = zeronorm.select(X, np.asarray(labels)[y], task="classification", predictor=predictor, **FAST)
    new = np.ascontiguousarray(X[:, [feature.index for feature in found.selected]])
    graph = run(found.model, new)
    assert graph["prediction"].tolist() == found.model.predict(new).tolist()
    np.testing.assert_allclose(graph["decision"], found.model.decision(new), atol=1e-9)
    np.testing.assert_allclose(graph["probabilities"], found.model.predict_proba(new), atol=1e-9)


@pytest.mark.parametrize("predictor", ["linear", "gaussian"])
def test_the_graph_of_a_regression(predictor):
    X = np.random.default_rng(0).normal(size=(60, 6))
    found = zeronorm.select(X, X[:, 0] - X[:, 1], task="regression", predictor=predictor, **FAST)
    new = np.ascontiguousarray(X[:, [feature.index for feature in found.selected]])
    graph = run(found.model, new)
    assert set(graph) == {"prediction", "decision"}
    np.testing.assert_allclose(graph["prediction"], found.model.predict(new), atol=1e-9)


def test_the_graph_fills_missing_values_and_knows_one_row_per_class():
    X, y = make_classification(
        60, 5, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    model = replace(zeronorm.select(X, y, **FAST).model, scheme="classes", fill=[0.1, 0.2, 0.3, 0.4])
    new = X[:, :4].copy()
    graph = run(model, np.where(np.arange(240).reshape(60, 4) % 7 == 0, np.nan, new))
    filled = np.where(np.arange(240).reshape(60, 4) % 7 == 0, model.fill, new)
    assert graph["prediction"].tolist() == model.predict(filled).tolist()


def test_without_onnx_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    model = zeronorm.select("linear-toy", method="fisher", features=2, permutations=0).model
    with pytest.raises(ValueError, match=r"pip install 'zeronorm\[onnx\]'"):
        model.to_onnx()
