r"""Targets that are as likely as the observed one if the features add nothing to the covariates.

A permutation test needs targets that keep their relation to the covariates Z, and features that keep theirs; only what
connects target and features beyond Z may be broken. So the features stay as they are, and the target changes:

- a real target by Freedman & Lane (1983): the residuals of its regression on Z are exchanged and added to the fitted
  values again;
- classes and times to an event by the conditional permutation test (Berrett, Wang, Barber & Samworth 2020), with target
  and features in each other's place: the labels are permuted, each order with the probability

  .. math:: P(\sigma) \propto \prod_i q(y_{\sigma(i)} \mid z_i),

  where q is a multinomial logistic regression of the labels on Z. Pairs of samples swap their labels with the
  probability that leaves this distribution unchanged. All targets start from one that is itself a chain of swaps away
  from the observed one, so that the observed one and the others are exchangeable if q is right.

  A time t is permuted together with its event δ. Here q consists of two Cox regressions on Z, of the events (with the
  log risks η and the cumulative hazard Λ) and of the censoring (γ and Λ'), so that also the censoring may depend on Z:

  .. math:: \log q(t, \delta \mid z) = \delta\,\eta_z - \Lambda(t)\,e^{\eta_z} + (1 - \delta)\,\gamma_z
      - \Lambda'(t)\,e^{\gamma_z} + \text{a function of } t \text{ and } \delta.

Both densities are a product of what is known of sample i and of label j, :math:`\log q(y_j \mid z_i) = u_i \cdot v_j`:
for classes log probabilities and indicators.

Sample groups restrict both as in any permutation test: labels are exchanged between whole groups or within each group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import DenseDesign
from zeronorm.engines._adjusted_scores import CovariateModel
from zeronorm.engines._cox_scores import PRACTICALLY_FREE
from zeronorm.resampling.survival._curves import baseline_hazard
from zeronorm.selection._covariates import Covariates
from zeronorm.selection._sample_groups import Exchange
from zeronorm.selection.target import Target
from zeronorm.solvers.linear._cox import CoxLoss
from zeronorm.solvers.linear._smooth import solve_in_weights

ROUNDS = 100  # of swaps, in which each unit meets one other; Berrett et al. find 50 enough
LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True, eq=False)
class ConditionalTargets:
    """Draws of targets given covariates; ``draw(rng)`` returns one.

    Attributes
    ----------
    exchange : what may be exchanged: single samples, or labels between or within sample groups.
    fitted : the regression of a real target on the covariates; None for others.
    of_units, of_labels : the factors u of each sample and v of each label, whose product is the log-likelihood of a
        label given the covariates; None for a real target.
    start : the order of the labels from which all draws of the conditional permutation test start.
    """

    target: Target
    exchange: Exchange
    fitted: FloatArray | None = None
    of_units: FloatArray | None = None
    of_labels: FloatArray | None = None
    start: tuple[IntArray, ...] = ()

    @classmethod
    def of(
        cls,
        target: Target,
        covariates: Covariates,
        rng: np.random.Generator,
        groups: np.ndarray | None = None,
        design: str = "auto",
    ) -> ConditionalTargets:
        """Fit the model of the target given the covariates, and find the common start."""
        if target.kind not in LIKELIHOODS:
            residuals = covariates.residuals(target.columns()).reshape(target.values.shape)
            fitted = target.values - residuals
            return cls(target, replace(target, values=residuals).exchange(groups, design), fitted)
        exchange = target.exchange(groups, design)
        of_units, of_labels = LIKELIHOODS[target.kind](target, covariates)
        if exchange.leaders is not None:  # the label of a leader is that of its whole group
            summed = np.zeros_like(of_units)
            np.add.at(summed, exchange.leaders, of_units)
            of_units = summed
        unmoved = cls(
            target,
            exchange,
            of_units=of_units,
            of_labels=of_labels,
            start=tuple(np.arange(len(pool)) for pool in exchange.pools),
        )
        return replace(unmoved, start=unmoved._swapped(rng))

    def draw(self, rng: np.random.Generator) -> Target:
        """One target."""
        if self.fitted is not None:
            residuals = self.target.values - self.fitted
            return replace(self.target, values=self.fitted + residuals[self.exchange.draw(rng)])
        rows = np.arange(self.target.n_samples)
        for pool, order in zip(self.exchange.pools, self._swapped(rng), strict=True):
            rows[pool] = pool[order]
        return self.target.take(rows if self.exchange.leaders is None else rows[self.exchange.leaders])

    def _swapped(self, rng: np.random.Generator) -> tuple[IntArray, ...]:
        """The unit whose labels each unit of each pool takes, after ``ROUNDS`` of swaps."""
        orders = tuple(order.copy() for order in self.start)
        for _ in range(ROUNDS):
            for pool, order in zip(self.exchange.pools, orders, strict=True):
                self._swap_once(pool, order, rng)
        return orders

    def _swap_once(self, pool: IntArray, order: IntArray, rng: np.random.Generator) -> None:
        """Divide the units of a pool into random pairs; each pair swaps with the probability of the swapped labels."""
        n_pairs = len(pool) // 2
        shuffled = rng.permutation(len(pool))
        i, j = shuffled[:n_pairs], shuffled[n_pairs : 2 * n_pairs]

        def likelihood(unit: IntArray, source: IntArray) -> FloatArray:
            assert self.of_units is not None
            assert self.of_labels is not None
            both = self.of_units[pool[unit]] * self.of_labels[pool[source]]
            return np.asarray(both.sum(axis=(1, 2)))

        gain = likelihood(i, order[j]) + likelihood(j, order[i])
        gain -= likelihood(i, order[i]) + likelihood(j, order[j])
        swaps = rng.random(n_pairs) < expit(gain)
        i, j = i[swaps], j[swaps]
        order[i], order[j] = order[j], order[i].copy()


def _of_classes(target: Target, covariates: Covariates) -> tuple[FloatArray, FloatArray]:
    model = CovariateModel.fit(covariates, target.values, target.n_classes)
    log_probability = np.log(np.maximum(model.all_probabilities, LEAST_PROBABILITY))
    return log_probability, np.eye(target.n_classes)[target.values]


def _of_times(target: Any, covariates: Covariates) -> tuple[FloatArray, FloatArray]:
    units, labels = [], []
    for happened in (target.event, ~target.event):
        if not happened.any():  # without censoring its hazard is zero
            continue
        log_risk = _log_risks(np.where(happened, target.time, -target.time), covariates)
        hazard = baseline_hazard(happened, target.time, log_risk)(target.time)
        units += [log_risk, np.exp(log_risk)]
        labels += [happened.astype(float), -hazard]
    return np.column_stack(units), np.column_stack(labels)


def _log_risks(signed_time: FloatArray, covariates: Covariates) -> FloatArray:
    """The log risks of a Cox regression on the covariates."""
    if not covariates.rank:
        return np.zeros(len(signed_time))
    cost = np.full(len(signed_time), PRACTICALLY_FREE)
    found = solve_in_weights(DenseDesign(covariates.basis), CoxLoss(), signed_time, cost)
    assert found.weights is not None
    return np.asarray(covariates.basis @ found.weights)


# By kind of target, the factors of the log-likelihood of labels; the residuals of other targets are permuted.
LIKELIHOODS: dict[str, Callable[[Target, Covariates], tuple[FloatArray, FloatArray]]] = {
    "binary": _of_classes,
    "multiclass": _of_classes,
    "survival": _of_times,
}
