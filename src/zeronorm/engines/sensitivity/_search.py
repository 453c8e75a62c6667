"""Backward, forward and add-remove search by sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from zeronorm._types import FloatArray, IntArray, written
from zeronorm.engines.elimination._loop import Elimination, count_to_remove, eliminate
from zeronorm.engines.sensitivity._models import SensitiveModel
from zeronorm.selection._path import SelectionPath, order_by_score
from zeronorm.selection._problem import Problem
from zeronorm.solvers._status import Status

# -- Sensitivity of a trained model to each of its inputs --


BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity measure of the output (eq. 6, by ``order`` and ``norm``) or of the objective (eq. 10)."""

    criterion: str
    order: int
    norm: str

    def values(self, model: SensitiveModel, problem: Problem) -> FloatArray:
        """Sensitivity to each column that the model was trained on."""
        design = problem.design.take(model.columns)
        n_functions = problem.target.columns().shape[1]
        width = max(1, BLOCK_BYTES // (8 * problem.n_samples * n_functions))
        result = np.empty(design.n_features)
        for part, block in design.iter_blocks(width):
            if self.criterion == "objective":
                result[part] = self._of_objective(model, part, block)
            else:
                result[part] = self._of_output(model, part, block)
        return result

    def _of_output(self, model: SensitiveModel, part: slice, block: FloatArray) -> FloatArray:
        t = self.responses(model, part, block)
        if self.norm == "l1":
            return np.asarray(np.abs(t).mean(axis=0).sum(axis=1))
        return np.asarray(np.sqrt(np.square(t).mean(axis=0).sum(axis=1)))

    def responses(self, model: SensitiveModel, part: slice, block: FloatArray) -> FloatArray:
        """The term t of eq. 6: the response of each output at each sample to each column."""
        if self.order == 1:
            return model.slopes(part, block)
        shift = block.mean(axis=0) - block
        if self.order == 0:
            return model.changes(part, block, shift)
        shift = shift[:, :, None]
        second = 0.5 * shift**2 * model.curvatures(part, block)
        return np.asarray(shift * model.slopes(part, block) + second)

    @staticmethod
    def _of_objective(model: SensitiveModel, part: slice, block: FloatArray) -> FloatArray:
        slopes = model.slopes(part, block)
        return np.asarray(np.abs(np.einsum("kc,kj,kjc->j", model.loss_slopes(), block, slopes)))


class SensitivityModels:
    """A model and a sensitivity measure as ``Models`` of the elimination loop."""

    def __init__(self, problem: Problem, model: SensitiveModel, measure: Sensitivity) -> None:
        self.problem, self.model, self.measure = problem, model, measure
        self.active: IntArray = np.arange(problem.n_features)

    @property
    def status(self) -> Status:
        return self.model.status

    @property
    def n_iter(self) -> int:
        return self.model.n_iter

    def train(self) -> None:
        self.model.train(self.active)

    def importance(self) -> FloatArray:
        return self.measure.values(self.model, self.problem)

    def group_importance(self, unit: IntArray) -> FloatArray:
        """Sum of the importances over each group."""
        return np.bincount(unit, weights=self.importance()).astype(np.float64)

    def remove(self, features: IntArray) -> None:
        self.active = self.active[~np.isin(self.active, features)]


def search_backward(
    problem: Problem, model: SensitiveModel, measure: Sensitivity, step: int | float
) -> SelectionPath:
    """Backward search: remove the units to which the model is least sensitive."""
    record = Elimination(problem)
    eliminate(SensitivityModels(problem, model, measure), record, step)
    return record.path()


class Growth:
    """A set of chosen units (features or groups); forced units are in it from the start."""

    def __init__(self, problem: Problem, model: SensitiveModel, measure: Sensitivity) -> None:
        self.problem, self.model, self.measure = problem, model, measure
        codes = problem.feature_groups
        self.codes = np.arange(problem.n_features) if codes is None else codes
        self.forced: list[int] = np.unique(self.codes[problem.always_keep]).tolist()
        self.chosen: list[int] = list(self.forced)
        self.scores = np.zeros(problem.n_features)
        self.subsets: list[IntArray] = [self.features()] if self.chosen else []

    @property
    def wanted(self) -> int:
        """The size at which the search may end."""
        size = self.problem.n_features_to_select
        return max(1, self.problem.n_features // 2) if size is None else size

    def features(self, *more: int) -> IntArray:
        """Features of the chosen units and of the given others."""
        return np.flatnonzero(np.isin(self.codes, [*self.chosen, *more]))

    def outside(self) -> list[int]:
        """Units that are not chosen."""
        return [int(unit) for unit in np.setdiff1d(self.codes, self.chosen)]

    def is_complete(self) -> bool:
        """Whether the requested size is reached, or no unit is left."""
        return self.features().size >= self.wanted or not self.outside()

    def add(self, step: int | float) -> None:
        """Train once with each other unit added, and add those to which the model is most sensitive."""
        candidates = self.outside()
        values = np.array([self._value_with(unit) for unit in candidates])
        best = order_by_score(values)[: count_to_remove(step, len(candidates))]
        self.chosen += [candidates[i] for i in best]
        self.subsets.append(self.features())

    def _value_with(self, unit: int) -> float:
        self.model.train(self.features(unit))
        values = self.measure.values(self.model, self.problem)
        is_new = self.codes[self.model.columns] == unit
        self.scores[self.model.columns[is_new]] = values[is_new]
        return float(values[is_new].sum())

    def drop_worst(self) -> None:
        """Train on the chosen units and remove the one to which the model is least sensitive."""
        self.model.train(self.features())
        values = self.measure.values(self.model, self.problem)
        codes = self.codes[self.model.columns]
        removable = [unit for unit in self.chosen if unit not in self.forced]
        totals = np.array([values[codes == unit].sum() for unit in sorted(removable)])
        self.chosen.remove(sorted(removable)[int(order_by_score(totals)[-1])])
        self.subsets.append(self.features())

    def path(self) -> SelectionPath:
        """The path of the chosen subsets; units that were never chosen come last, by their latest value."""
        status = self.model.status
        return SelectionPath.from_subsets(
            self.subsets,
            n_features=self.problem.n_features,
            tie_break=self.scores,
            scores=self.scores,
            n_iter=self.model.n_iter,
            converged=status.as_good_as_it_gets,
            remedy=status.remedy,
        )


def search_forward(
    problem: Problem, model: SensitiveModel, measure: Sensitivity, step: int | float
) -> SelectionPath:
    """Forward search: add units until the requested size is reached."""
    growth = Growth(problem, model, measure)
    with problem.progress.task("Adding features", growth.wanted) as advance:
        while not growth.is_complete():
            before = growth.features().size
            growth.add(step)
            advance(growth.features().size - before)
    return growth.path()


def search_nested(
    problem: Problem, model: SensitiveModel, measure: Sensitivity, step: int | float
) -> SelectionPath:
    """Add-remove search: add twice, remove the worst unit, and repeat, so that early choices can be undone."""
    growth = Growth(problem, model, measure)
    with problem.progress.task("Adding and removing features", growth.wanted) as advance:
        while not growth.is_complete():
            before = growth.features().size
            growth.add(step)
            if growth.outside():
                growth.add(step)
                growth.drop_worst()
            advance(growth.features().size - before)
    return growth.path()


SEARCHES = {"backward": search_backward, "forward": search_forward, "nested": search_nested}


# -- Any scikit-learn estimator, with numerical derivatives --


SMALLEST_PROBABILITY = 1e-12
OUTPUTS = ("decision_function", "predict_proba", "predict")


class NumericalModel(SensitiveModel):
    """An estimator whose output is ``decision_function``, else ``predict_proba``, else ``predict``.

    Derivatives are central differences with a step given in standard deviations of the column.
    """

    def __init__(self, problem: Problem, estimator: Any, step: float) -> None:
        self.problem, self.estimator, self.step = problem, estimator, step
        self.output = _output_name(estimator, problem)
        self.columns = np.arange(problem.n_features)
        self.target = problem.target.labels()
        self.n_trained = 0
        self.X = np.empty((0, 0))
        self.f = np.empty((0, 0))
        self.fitted: Any = None

    @property
    def status(self) -> Status:
        return Status.CONVERGED

    @property
    def n_iter(self) -> int:
        return self.n_trained

    def train(self, columns: IntArray) -> None:
        self.columns = columns
        self.X = np.ascontiguousarray(self.problem.design.block(columns))
        self.fitted = clone(self.estimator).fit(self.X, self.target)
        self.n_trained += 1
        self.f = self._evaluate()

    def slopes(self, part: slice, block: FloatArray) -> FloatArray:
        h = self._widths(block)
        return (self._moved(part, block + h) - self._moved(part, block - h)) / (2.0 * h[:, None])

    def curvatures(self, part: slice, block: FloatArray) -> FloatArray:
        h = self._widths(block)
        both = self._moved(part, block + h) + self._moved(part, block - h)
        return (both - 2.0 * self.f[:, None, :]) / h[:, None] ** 2

    def changes(self, part: slice, block: FloatArray, shift: FloatArray) -> FloatArray:
        return self._moved(part, block + shift) - self.f[:, None, :]

    def loss_slopes(self) -> FloatArray:
        """Derivative of the squared loss (regression, labels), hinge loss (decisions) or log loss (probabilities)."""
        signs = self.problem.target.columns()
        if not self.problem.target.has_classes:
            return self.f - signs
        if self.f.shape[1] not in (signs.shape[1], self.problem.n_classes):
            raise ValueError(
                "sensitivity_of='objective' of SensitivityElimination needs one output per class. "
                f"Got {self.f.shape[1]} outputs for {self.problem.n_classes} classes from {self.output} of "
                f"{type(self.estimator).__name__}; use sensitivity_of='output'."
            )
        if self.output == "decision_function":
            return np.where(signs * self.f < 1.0, -signs, 0.0)
        is_class = (self.problem.y[:, None] == np.arange(self.f.shape[1])).astype(np.float64)
        if self.output == "predict":
            return np.asarray(self.f - is_class)
        return np.asarray(-is_class / np.maximum(self.f, SMALLEST_PROBABILITY))

    def _widths(self, block: FloatArray) -> FloatArray:
        scale = block.std(axis=0)
        return self.step * np.where(scale > 0.0, scale, 1.0)

    def _moved(self, part: slice, values: FloatArray) -> FloatArray:
        """f with each column of ``part`` in turn replaced by new values."""
        result = np.empty(values.shape + self.f.shape[1:])
        for j, column in enumerate(range(part.start, part.stop)):
            kept = self.X[:, column].copy()
            self.X[:, column] = values[:, j]
            result[:, j] = self._evaluate()
            self.X[:, column] = kept
        return result

    def _evaluate(self) -> FloatArray:
        values = np.asarray(getattr(self.fitted, self.output)(self.X))
        if self.output == "predict" and self.problem.target.has_classes:
            values = values[:, None] == np.asarray(self.problem.classes)
        return np.asarray(values, dtype=np.float64).reshape(self.X.shape[0], -1)


def _output_name(estimator: Any, problem: Problem) -> str:
    names = OUTPUTS if problem.target.has_classes else OUTPUTS[-1:]
    for name in names:
        if hasattr(estimator, name):
            return name
    raise ValueError(
        "The 'learner' parameter of SensitivityElimination must be 'svm', 'network' or an estimator with one of "
        f"{names}. Got {written(estimator)}, which has none."
    )
