"""Saved predictors on the selected features: plain numbers in a JSON file.

Nothing is pickled, so loading a model runs no code.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from zeronorm._messages import OptionError, setting
from zeronorm.evaluation._probabilities import probabilities_of
from zeronorm.resampling.predictors._units import Values, transformed
from zeronorm.resampling.survival._curves import StepFunction
from zeronorm.result._moments import Completion, Moments
from zeronorm.result._schema import Mismatch, check, described, parsed, shown
from zeronorm.result._seen import SeenSamples
from zeronorm.selection.target import TASKS, TimeToEvent

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

FORMAT = "zeronorm-model"
FORMAT_VERSION = 2
READABLE = (1, FORMAT_VERSION)  # files of version 1 have no probabilities, expected values and moments
GIVE_A_MODEL = f"Give the model.json of a selection. To write one, {setting('save_model', True, 'set')}."


@dataclass(frozen=True)
class LinearModel:
    """A linear predictor with standardisation.

    Parameters
    ----------
    task : "classification", "regression" or "survival".
    target : name of the target.
    features : names of the features, in the order of the weights.
    mean, scale : the standardisation of each feature.
    weights : one row for two classes and for regression; for more classes one row per pair of classes
        ("pairs", decided by votes) or per class ("classes", decided by the largest value).
    intercepts : one per row.
    scheme : "single", "pairs" or "classes".
    classes : labels, empty for regression.
    fill : value of each feature that replaces missing values, if the training data had any; empty otherwise.
    values : what is standardised: "measured", "log", "root", "rows" or "root rows" (see `transformed`).
    unit : unit of the logarithm.
    probabilities : slope and biases (one per class) from held-out decision values to probabilities; None without.
    expected : metrics with intervals, measured on held-out samples when the features were selected; None without.
    moments : correlations of these features and of others that can replace them; None where they were not kept.
    seen : hashes of the samples that it was selected on; None where they were not kept.
    """

    task: str
    target: str
    features: list[str]
    mean: list[float]
    scale: list[float]
    weights: list[list[float]]
    intercepts: list[float]
    scheme: str
    classes: list[Any]
    fill: list[float] = field(default_factory=list)
    values: Values = "measured"
    unit: float = 1.0
    probabilities: dict[str, Any] | None = None
    expected: dict[str, Any] | None = None
    moments: Moments | None = None
    seen: SeenSamples | None = None

    @property
    def coefficients(self) -> list[float] | None:
        """The weights of the standardised features; None where there are several per feature."""
        return self.weights[0] if self.scheme == "single" else None

    def decision(self, X: Any) -> NDArray[np.float64]:
        """Decision values, one column per row of weights."""
        values = transformed(X, self.values, self.unit)
        standard = (values - np.asarray(self.mean)) / np.asarray(self.scale)
        return np.asarray(self._weighed(standard) @ np.asarray(self.weights).T + np.asarray(self.intercepts))

    def _weighed(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inputs that the weights are multiplied with: the standardised features."""
        return standard

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions for samples whose columns are ``features``."""
        values = self.decision(X)
        if not TASKS[self.task].has_classes:
            return np.asarray(values[:, 0])
        labels: NDArray[Any] = np.asarray(self.classes)
        if self.scheme == "single":
            return np.asarray(labels[(values[:, 0] > 0.0).astype(int)])
        if self.scheme == "classes":
            return np.asarray(labels[values.argmax(axis=1)])
        votes = np.zeros((len(values), len(labels)))
        pairs = [(i, j) for i in range(len(labels)) for j in range(i + 1, len(labels))]
        for column, (first, second) in zip(values.T, pairs, strict=True):
            votes[:, first] += column > 0.0
            votes[:, second] += column <= 0.0
        return np.asarray(labels[votes.argmax(axis=1)])

    def class_scores(self, X: Any) -> NDArray[np.float64]:
        """One score per class: ±half the decision value of two classes, else the sum over the pairs of a class."""
        values, n = self.decision(X), len(self.classes)
        if self.scheme == "single":
            return np.asarray(values * [[-0.5, 0.5]])
        if self.scheme == "classes":
            return values
        scores = np.zeros((len(values), n))
        for column, (first, second) in zip(values.T, combinations(range(n), 2), strict=True):
            scores[:, first] += column
            scores[:, second] -= column
        return scores / (n - 1)

    def predict_proba(self, X: Any, *, certainty: float = 1.0) -> NDArray[np.float64]:
        """Probabilities of the classes, in a population with the class shares of the training samples.

        They come from the decision values of held-out samples (Platt 1999, with one slope and one bias per class). The
        prediction of a model with balanced class weights treats all classes alike, so that the predicted class of
        unequal classes is not always the most probable one. ``certainty`` below 1 moves the logits towards 0.
        """
        if self.probabilities is None:
            raise ValueError(
                "This model has no probabilities: it is a model of regression, or it was saved by an earlier version. "
                "Select again to get a model with probabilities."
            )
        slope, biases = self.probabilities["slope"], self.probabilities["biases"]
        return probabilities_of(self.class_scores(X), slope, biases, certainty)

    def certainty_without(self, completion: Completion) -> float | None:
        r"""The factor of the logits where features were filled in; None where it is not known.

        With a slope a and the residual variance τ² of the score, the mean of the sigmoid over what is not known is
        near the sigmoid of the logit times :math:`1/\sqrt{1 + \pi a^2 \tau^2 / 8}` (MacKay 1992).
        """
        if self.probabilities is None or self.values != "measured":
            return None
        scale = np.asarray(completion.moments.scale)
        at = {name: index for index, name in enumerate(completion.moments.features)}
        own = [self.features.index(name) for name in completion.missing]
        units = scale[[at[name] for name in completion.missing]] / np.asarray(self.scale)[own]
        weights = self._weights_of_scores()[:, own] * units
        gaps = [weights[i] - weights[j] for i, j in combinations(range(len(weights)), 2)]
        variance = float(np.mean([gap @ completion.residual @ gap for gap in gaps]))
        return float(1 / np.sqrt(1 + np.pi * self.probabilities["slope"] ** 2 * max(0.0, variance) / 8))

    def _weights_of_scores(self) -> NDArray[np.float64]:
        """The weights of the standardised features in the score of each class."""
        origin = replace(self, mean=[0.0] * len(self.features), scale=[1.0] * len(self.features))
        unit = origin.class_scores(np.eye(len(self.features)))
        return np.asarray((unit - origin.class_scores(np.zeros((1, len(self.features))))).T)

    def to_onnx(self) -> Any:
        """The model as an ONNX graph, for programs in other languages; needs the package onnx (``zeronorm[onnx]``).

        The input "features" has the features in the order of the model. Write it with ``onnx.save(model,
        "model.onnx")``.
        """
        from zeronorm.result._onnx import onnx_model

        return onnx_model(self)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the model as JSON."""
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        if self.values == "measured":  # as in files of earlier versions
            del fields["values"], fields["unit"]
        content = {"format": FORMAT, "format_version": FORMAT_VERSION, **fields}
        Path(file).write_text(
            json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n", "utf-8"
        )

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> LinearModel:
        """The model in a file that ``save`` wrote; ValueError for any other file."""
        path = Path(file)
        path = path / "model.json" if path.is_dir() else path
        if not path.is_file():
            raise OptionError(f"There is no model at {str(path)!r}. {GIVE_A_MODEL}")
        try:
            content = parsed(path.read_text(encoding="utf-8"))
            is_model = isinstance(content, dict) and content.get("format") == FORMAT
            if is_model and content.get("format_version") in READABLE:
                return _from_content(content)
        except (Mismatch, UnicodeDecodeError) as error:
            raise OptionError(
                f"The file {str(path)!r} is not a model of zeronorm, or it is damaged: {error}. {GIVE_A_MODEL}"
            ) from error
        raise OptionError(
            f"The file {str(path)!r} is not a model of zeronorm, or it has another format version. {GIVE_A_MODEL}"
        )


@dataclass(frozen=True)
class GaussianModel(LinearModel):
    """A support vector machine with a Gaussian kernel and standardisation; it has one weight per support vector.

    Parameters
    ----------
    support : the support vectors, standardised.
    gamma : exp(-gamma d²) is the kernel of two samples at the distance d.
    """

    support: list[list[float]] = field(default_factory=list)
    gamma: float = 1.0

    @property
    def coefficients(self) -> None:
        """None, because features have no weights."""
        return

    def certainty_without(self, completion: Completion) -> None:
        """None: how certain a nonlinear model is with features filled in does not follow from correlations."""
        return

    def _weighed(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(rbf_kernel(standard, np.asarray(self.support), gamma=self.gamma))


@dataclass(frozen=True)
class SurvivalModel(LinearModel):
    """Cox regression on standardised features: predictions are log risks, relative to a mean sample.

    Parameters
    ----------
    times, hazard : the cumulative hazard of a mean sample at the times of events, in ascending order.
    """

    times: list[float] = field(default_factory=list)
    hazard: list[float] = field(default_factory=list)

    @property
    def cumulative_hazard(self) -> StepFunction:
        """The cumulative hazard of a mean sample as a function of time."""
        return StepFunction(np.asarray(self.times), np.asarray(self.hazard), 0.0)

    def survival(self, X: Any, times: ArrayLike) -> NDArray[np.float64]:
        """Probabilities that the event has not happened at some times: one row for each sample."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-np.outer(np.exp(self.predict(X)), self.cumulative_hazard(times))))

    predict_survival_function = survival  # as metrics call it

    def expected_events(self, X: Any, time: ArrayLike) -> NDArray[np.float64]:
        """How many events are expected of each sample up to its time: its cumulative hazard there."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.predict(X)) * self.cumulative_hazard(time))

    def median_time(self, X: Any) -> NDArray[np.float64]:
        """The time by which the event happens with probability one half; NaN where that is after all known times."""
        curves = self.survival(X, self.times)
        reached = curves <= 0.5
        first = np.asarray(self.times)[reached.argmax(axis=1)]
        return np.where(reached.any(axis=1), first, np.nan)


def _from_content(content: dict[str, Any]) -> LinearModel:
    """The model with these fields, if they are as the schema describes them; Mismatch otherwise."""
    kind = "gaussian" if "support" in content or "gamma" in content else "linear"
    kind = "survival" if content.get("task") == TimeToEvent.task else kind
    root = described("model")
    check(content, root["$defs"][kind], root)
    fields = {name: value for name, value in content.items() if name not in ("format", "format_version")}
    if "moments" in fields:
        fields["moments"] = Moments(**fields["moments"])
    if "seen" in fields:
        fields["seen"] = SeenSamples(**fields["seen"])
    classes = {"gaussian": GaussianModel, "linear": LinearModel, "survival": SurvivalModel}
    model: LinearModel = classes[kind](**fields)
    _check_classes(model)
    _check_additions(model)
    return model


def _check_classes(model: LinearModel) -> None:
    """The rows of weights that the classes and the scheme call for, which a schema cannot describe."""
    if not TASKS[model.task].has_classes:
        if model.classes or model.scheme != "single":
            raise Mismatch(f"a model of {model.task} must have no classes and the scheme 'single'")
        expected = 1
    else:
        n, kinds = len(model.classes), {_kind_of_label(label) for label in model.classes}
        if n < 2 or len(kinds) > 1 or (model.scheme == "single" and n > 2):
            raise Mismatch(
                f"the scheme {model.scheme!r} cannot be that of the classes {shown(model.classes)}"
            )
        expected = {"single": 1, "pairs": n * (n - 1) // 2, "classes": n}[model.scheme]
    if len(model.weights) != expected:
        raise Mismatch(
            f"'weights' has {len(model.weights)} rows, but the scheme {model.scheme!r} with "
            f"{len(model.classes)} classes needs {expected}"
        )


def _check_additions(model: LinearModel) -> None:
    """The biases and the moments that the classes and features call for."""
    if model.probabilities is not None and len(model.probabilities["biases"]) != len(model.classes):
        raise Mismatch(f"'probabilities.biases' must have one value for each of {len(model.classes)} classes")
    if model.moments is not None and model.moments.features[: len(model.features)] != model.features:
        raise Mismatch("'moments.features' must begin with the features of the model")


def _kind_of_label(label: Any) -> type:
    return float if isinstance(label, int) and not isinstance(label, bool) else type(label)
