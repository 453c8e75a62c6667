"""Saved predictors on the selected features: plain numbers in a JSON file.

Nothing is pickled, so loading a model runs no code.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from zeronorm._messages import OptionError, setting
from zeronorm.selection.target import TASKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "zeronorm-model"
FORMAT_VERSION = 1
GIVE_A_MODEL = f"Give the model.json of a selection. To write one, {setting('save_model', True, 'set')}."


@dataclass(frozen=True)
class LinearModel:
    """A linear predictor with standardisation.

    Parameters
    ----------
    task : "classification" or "regression".
    target : name of the target.
    features : names of the features, in the order of the weights.
    mean, scale : the standardisation of each feature.
    weights : one row for two classes and for regression; for more classes one row per pair of classes
        ("pairs", decided by votes) or per class ("classes", decided by the largest value).
    intercepts : one per row.
    scheme : "single", "pairs" or "classes".
    classes : labels, empty for regression.
    fill : value of each feature that replaces missing values, if the training data had any; empty otherwise.
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

    @property
    def coefficients(self) -> list[float] | None:
        """The weights of the standardised features; None where there are several per feature."""
        return self.weights[0] if self.scheme == "single" else None

    @property
    def n_weights(self) -> int:
        """Length of each row of weights."""
        return len(self.features)

    def decision(self, X: Any) -> NDArray[np.float64]:
        """Decision values, one column per row of weights."""
        standard = (np.asarray(X, dtype=np.float64) - np.asarray(self.mean)) / np.asarray(self.scale)
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

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the model as JSON."""
        content = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}
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
            content = json.loads(path.read_text(encoding="utf-8"))
            known = (
                content.pop("format", None) == FORMAT
                and content.pop("format_version", None) == FORMAT_VERSION
            )
            kind = GaussianModel if "support" in content else LinearModel
            model = kind(**content) if known else None
        except (ValueError, TypeError, AttributeError, UnicodeDecodeError) as error:
            raise OptionError(f"The file {str(path)!r} is not a model of zeronorm. {GIVE_A_MODEL}") from error
        if model is None:
            raise OptionError(
                f"The file {str(path)!r} is not a model of zeronorm, or it has another format version. {GIVE_A_MODEL}"
            )
        model._check()
        return model

    def _check(self) -> None:
        k, rows = len(self.features), len(self.intercepts)
        sizes = {len(self.mean), len(self.scale)}
        n_classes = len(self.classes)
        expected = {"single": 1, "pairs": n_classes * (n_classes - 1) // 2, "classes": n_classes}
        numbers = [*self.mean, *self.scale, *self.intercepts, *self.fill]
        numbers += [v for row in self.weights for v in row]
        if (
            sizes != {k}
            or len(self.fill) not in (0, k)
            or {len(row) for row in self.weights} != {self.n_weights}
            or rows != len(self.weights)
            or expected.get(self.scheme) != rows
        ):
            raise ValueError("The numbers of features and weights in the model do not agree. Save it again.")
        if not all(isinstance(v, (int, float)) and np.isfinite(v) for v in numbers) or 0 in self.scale:
            raise ValueError("The model holds values that are not finite numbers. Save it again.")


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

    @property
    def n_weights(self) -> int:
        """Number of support vectors."""
        return len(self.support)

    def _weighed(self, standard: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(rbf_kernel(standard, np.asarray(self.support), gamma=self.gamma))

    def _check(self) -> None:
        super()._check()
        if {len(row) for row in self.support} != {len(self.features)}:
            raise ValueError("The numbers of features and weights in the model do not agree. Save it again.")
        numbers = [self.gamma, *(v for row in self.support for v in row)]
        if not all(isinstance(v, (int, float)) and np.isfinite(v) for v in numbers):
            raise ValueError("The model holds values that are not finite numbers. Save it again.")
