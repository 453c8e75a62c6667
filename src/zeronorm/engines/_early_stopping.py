r"""Early stopping: an iteration ends before the error on samples that are kept out of it rises.

Used by AROM, ZeroNormSVM and FSV with ``validation_fraction`` (Weston et al. 2003; Lal et al. 2006, section 4.3).

With the losses :math:`\ell_i` of an iterate on the validation samples, of weights :math:`\omega_i`, and the losses
:math:`\ell_i^*` of the best iterate so far, the error is too high if it is above the lowest by more than one standard
error of the difference:

.. math:: \sum_i \omega_i (\ell_i - \ell_i^*) > \sqrt{\textstyle\sum_i \omega_i (\ell_i - \ell_i^*)^2} .

For classes this is McNemar's statistic above one: one more error is not enough, two are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zeronorm._types import BoolArray, FloatArray, IntArray
from zeronorm.engines._by_content import turns_by_content
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Multiclass
from zeronorm.solvers.linear import Loss, SeparableLoss

ROUNDING = 1e-9  # relative; one more error equals its standard error exactly


class EarlyStopping:
    """The validation samples of a problem and the errors of the iterates on them.

    Attributes
    ----------
    errors : mean error of each iterate, in the order of the iteration: errors of classes as a share, else the loss.
    """

    def __init__(self, held_out: Problem, loss: SeparableLoss, pairing: str) -> None:
        self.held_out, self.loss = held_out, loss
        self.targets, self.involved = held_out.target.model_columns(pairing)
        self.errors: list[float] = []
        self._best: dict[int | None, FloatArray] = {}
        weight = np.ones(held_out.n_samples) if held_out.sample_weight is None else held_out.sample_weight
        # Weights below one, such as weights that sum to one, are scaled to sum to the effective number of samples.
        self._weight = weight * max(1.0, float(weight.sum()) / float(weight @ weight))

    def stops(
        self, features: IntArray | slice, weights: FloatArray, bias: FloatArray, index: int | None = None
    ) -> bool:
        """Whether the error of these models is too high; ``index`` is that of a model by itself.

        ``weights`` has one row for each feature and one column for each model.
        """
        design = self.held_out.design
        decision = (design if isinstance(features, slice) else design.take(features)).dot(weights) + bias
        losses = self._losses(decision, slice(None) if index is None else [index])
        self.errors.append(float(self._weight @ losses / self._weight.sum()))
        worse = losses - self._best.setdefault(index, losses)
        total = float(self._weight @ worse)
        if total < 0.0:
            self._best[index] = losses
        return total > (1.0 + ROUNDING) * float(np.sqrt(self._weight @ worse**2))

    def _losses(self, decision: FloatArray, models: Any) -> FloatArray:
        targets, involved = self.targets[:, models], self.involved[:, models]
        if not self.held_out.target.has_classes:
            losses = [self.loss.value(f, y) for f, y in zip(decision.T, targets.T, strict=True)]
            return np.asarray(np.mean(losses, axis=0))
        is_one_of_many = isinstance(self.held_out.target, Multiclass) and involved.all()
        if is_one_of_many and decision.shape[1] > 1:  # the class with the largest decision value
            return np.asarray(decision.argmax(axis=1) != self.held_out.y, dtype=np.float64)
        is_wrong: BoolArray = (targets * decision <= 0.0) & involved
        return np.asarray(is_wrong.sum(axis=1) / np.maximum(involved.sum(axis=1), 1))


def held_out_samples(problem: Problem, fraction: float) -> BoolArray:
    """Which samples are kept out of the training.

    They are chosen by their values within each class, so that neither their order nor a seed matters; groups of samples
    and copies stay together.
    """
    turns = turns_by_content(problem)
    ends = np.floor(fraction * np.arange(problem.n_samples + 1) + ROUNDING)
    return np.asarray(np.diff(ends)[turns] > 0.0)


def split_off(
    selector: Any, problem: Problem, loss: Loss, pairing: str = "one_vs_rest"
) -> tuple[Problem, EarlyStopping | None]:
    """The samples to train on and, if ``validation_fraction`` is set, those that stop the iteration."""
    if selector.validation_fraction is None:
        return problem, None
    assert isinstance(loss, SeparableLoss)  # its mean over the samples held out is what stops the iteration
    fraction = float(selector.validation_fraction)
    is_held_out = held_out_samples(problem, fraction)
    train, held_out = problem.take(np.flatnonzero(~is_held_out)), problem.take(np.flatnonzero(is_held_out))
    strata, trained = problem.target.strata(), train.target.strata()
    has_all = train.n_samples >= 2 and (
        strata is None or trained is None or np.array_equal(np.unique(strata), np.unique(trained))
    )
    if not held_out.n_samples or not has_all:
        found = (
            f"{train.n_samples} samples{'' if has_all else ', not of every class,'} and {held_out.n_samples}"
        )
        must_be = "None, or leave samples of every class to train on and at least one to stop on"
        raise parameter_error(selector, "validation_fraction", must_be, f"{fraction:g}, which leaves {found}")
    return train, EarlyStopping(held_out, loss, pairing)
