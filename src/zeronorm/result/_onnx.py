"""A saved model as an ONNX graph, for programs in other languages.

The graph is written with the package onnx alone; skl2onnx is not needed, because a model is a few matrix products.
Numbers are of double precision. The input "features" has one row per sample with the features in the order of the
model; outputs are "prediction", "decision" and, where the model has them, "probabilities".
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._messages import OptionError

if TYPE_CHECKING:
    from zeronorm.result._models import LinearModel

OPSET, IR_VERSION = 17, 8  # of 2022, which all present runtimes read


def onnx_model(model: LinearModel) -> Any:
    """The ONNX model (``onnx.ModelProto``) of a linear model or of a support vector machine with a Gaussian kernel."""
    try:
        import onnx
    except ImportError as error:
        raise OptionError(
            "to_onnx needs the package 'onnx'. Install it with: pip install 'zeronorm[onnx]'."
        ) from error
    graph = _Graph(onnx)
    graph.add("Identity", _inputs_of_weights(graph, model), output="inputs_of_weights")
    product = graph.add("MatMul", "inputs_of_weights", graph.numbers(np.asarray(model.weights).T))
    graph.add("Add", product, graph.numbers(model.intercepts), output="decision")
    outputs = ["prediction", "decision"]
    if not model.classes:
        graph.add("Squeeze", "decision", graph.constant(np.array([1])), output="prediction")
    else:
        labels = graph.constant(_label_array(model.classes))
        graph.add("Gather", labels, _index(graph, model), output="prediction", axis=0)
    if model.probabilities is not None:
        logits = graph.add("Mul", _class_scores(graph, model), graph.numbers([model.probabilities["slope"]]))
        logits = graph.add("Add", logits, graph.numbers(model.probabilities["biases"]))
        graph.add("Softmax", logits, output="probabilities", axis=1)
        outputs.append("probabilities")
    return _finished(graph, model, outputs)


class _Graph:
    """Nodes and constants of a graph under construction."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any) -> str:
        """A constant tensor; its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def numbers(self, values: Any) -> str:
        """A constant tensor of double precision; its name."""
        return self.constant(np.asarray(values, dtype=np.float64))

    def add(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """A node; the name of its output."""
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name


def _label_array(classes: list[Any]) -> Any:
    labels = np.asarray(classes)
    return labels.astype(object) if labels.dtype.kind == "U" else labels


def _inputs_of_weights(graph: _Graph, model: LinearModel) -> str:
    """The standardised features, with missing values filled; of a Gaussian model the kernel with the support
    vectors."""
    found = "features"
    if model.fill:
        found = graph.add("Where", graph.add("IsNaN", found), graph.numbers(model.fill), found)
    centred = graph.add("Sub", found, graph.numbers(model.mean))
    standard = graph.add("Div", centred, graph.numbers(model.scale))
    support = getattr(model, "support", None)
    if support is None:
        return standard
    vectors = np.asarray(support, dtype=np.float64)
    own = graph.add(
        "ReduceSum", graph.add("Mul", standard, standard), graph.constant(np.array([1])), keepdims=1
    )
    products = graph.add("MatMul", standard, graph.numbers(-2.0 * vectors.T))
    distances = graph.add("Add", graph.add("Add", own, products), graph.numbers((vectors**2).sum(axis=1)))
    distances = graph.add("Max", distances, graph.numbers([0.0]))
    return graph.add("Exp", graph.add("Mul", distances, graph.numbers([-model.gamma])))  # type: ignore[attr-defined]


def _index(graph: _Graph, model: LinearModel) -> str:
    """The position of the predicted class."""
    if model.scheme == "classes":
        return graph.add("ArgMax", "decision", axis=1, keepdims=0)
    is_positive = graph.add("Greater", "decision", graph.numbers([0.0]))
    if model.scheme == "single":
        return graph.add(
            "Squeeze", graph.add("Cast", is_positive, to=7), graph.constant(np.array([1]))
        )  # int64
    positive = graph.add("Cast", is_positive, to=11)  # double
    # A pair votes for its first class where it is positive, else for its second one.
    n = len(model.classes)
    first, second = (np.eye(n)[[pair[k] for pair in combinations(range(n), 2)]] for k in (0, 1))
    votes = graph.add("MatMul", positive, graph.numbers(first - second))
    votes = graph.add("Add", votes, graph.numbers(second.sum(axis=0)))
    return graph.add("ArgMax", votes, axis=1, keepdims=0)


def _class_scores(graph: _Graph, model: LinearModel) -> str:
    """``class_scores`` of the model, a linear function of the decision values."""
    n = len(model.classes)
    if model.scheme == "classes":
        return "decision"
    mixing = np.array([[-0.5, 0.5]])
    if model.scheme == "pairs":
        pairs = list(combinations(range(n), 2))
        mixing = (np.eye(n)[[i for i, _ in pairs]] - np.eye(n)[[j for _, j in pairs]]) / (n - 1)
    return graph.add("MatMul", "decision", graph.numbers(mixing))


def _finished(graph: _Graph, model: LinearModel, outputs: list[str]) -> Any:
    """The checked model, with the names of features and target in its metadata."""
    helper, number = graph.onnx.helper, graph.onnx.TensorProto.DOUBLE
    labels = graph.onnx.numpy_helper.from_array(_label_array(model.classes), "") if model.classes else None
    kinds = {"prediction": number if labels is None else labels.data_type}
    shapes = {"prediction": ["samples"], "decision": ["samples", len(model.weights)]}
    described = [
        helper.make_tensor_value_info(
            name, kinds.get(name, number), shapes.get(name, ["samples", len(model.classes)])
        )
        for name in outputs
    ]
    entry = helper.make_tensor_value_info("features", number, ["samples", len(model.features)])
    made = helper.make_model(
        helper.make_graph(graph.nodes, "zeronorm", [entry], described, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="zeronorm",
        ir_version=IR_VERSION,
    )
    helper.set_model_props(made, {"target": model.target, "features": "\n".join(model.features)})
    graph.onnx.checker.check_model(made)
    return made
