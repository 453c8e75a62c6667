r"""The probability that a column is relevant, with all models of correlated columns weighed against each other.

For columns of unit length and a target y the model is

.. math:: y = X_\gamma \beta_\gamma + \varepsilon, \qquad \varepsilon \sim N(0, \sigma^2 I), \qquad
          \beta_j \sim N(0, \tau^2 \sigma^2), \qquad
          P(\gamma) \propto \frac{1}{|\gamma| + 1} \Big/ \binom{p}{|\gamma|},

with :math:`P(\sigma^2) \propto 1 / \sigma^2` and :math:`\tau^2 / \nu` on a grid of its logarithm (after Guan & Stephens
2011). With :math:`\nu` independent samples and :math:`M = X_\gamma^\top X_\gamma + I / \tau^2`,

.. math:: P(\gamma, \tau \mid y) \propto P(\gamma)\, \tau^{-|\gamma|}\, |M|^{-1/2}\, S^{-\nu / 2},
          \qquad S = \|y\|^2 - y^\top X_\gamma M^{-1} X_\gamma^\top y.

The weighted tempered Gibbs sampler (Zanella & Roberts 2019) adds or removes column i with a probability proportional to
:math:`(\pi_i + e) / P(\gamma_i \mid \gamma_{-i})` with :math:`\pi_i = P(\gamma_i = 1 \mid \gamma_{-i})`; each model has
the inverse of their sum as its weight, and the weighted mean of :math:`\pi_i` is the probability of column i. A column
is removed as often as any other however good it is, so that the chain does not stay with one of several substitutes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray

# tau^2 / nu: the variance of an effect, that of the noise being 1. Where it is too small for strong effects, two copies
# of a column together are preferred to one of them, because both weights are shrunken less.
SLABS = np.array([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e3, 1e4, 1e5])
ROUNDS, FLIPS = 60, 100  # tau is drawn again in each round; two runs then differ by less than 0.05
BURN_IN = 6  # rounds that do not count
EXPLORATION = 5.0  # e times the number of columns
LARGEST_LOG_ODDS = 50.0  # keeps the odds finite
LEAST = 1e-10  # squared length of a column without the others that counts as zero
LEAST_REST = 1e-6  # share of the target that no model explains; with the largest tau an exact fit leaves less


class _Model(NamedTuple):
    """A model at one value of tau, and what every column would add to it."""

    tau_sq: float
    inverse: FloatArray  # of M
    weights: FloatArray  # of the columns in the model
    rest: FloatArray  # S, in an array of one value
    length: FloatArray  # squared length of each column without the model, plus 1 / tau^2
    product: FloatArray  # its product with the target


def inclusion_probabilities(
    columns: FloatArray,
    target: FloatArray,
    n_independent: float,
    n_features: int,
    start: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """The probability of each column that it is relevant.

    Parameters
    ----------
    columns : candidates, of unit length; the other columns of ``n_features`` are taken as irrelevant.
    target : the values to explain, of unit length.
    n_independent : the number of independent samples.
    start : columns of the first model.
    """
    gram, with_y = columns.T @ columns, columns.T @ target
    log_prior = log_prior_odds(max(1, min(with_y.size, int(n_independent) // 2)), n_features)
    model = np.zeros(log_prior.size - 1, dtype=np.intp)
    size = min(model.size, start.size)
    model[:size] = start[:size]
    total, weight = np.zeros(with_y.size), 0.0
    for number in range(ROUNDS):
        state = _with_drawn_slab(gram, with_y, model[:size], n_independent, log_prior, rng)
        found = np.zeros(with_y.size)
        size, part = _flip(
            gram,
            model,
            size,
            *_with_room(state, model.size),
            n_independent,
            log_prior,
            rng.random(FLIPS),
            found,
        )
        if number >= BURN_IN:
            total += found
            weight += part
    return np.asarray(total / weight)


def log_prior_odds(largest: int, n_features: int) -> FloatArray:
    """The logarithm of P(model with one given column more) / P(model), for models of 0 to ``largest`` columns."""
    size = np.arange(largest + 1)
    return np.asarray(np.log((size + 1.0) ** 2 / ((size + 2.0) * np.maximum(n_features - size, 1.0))))


def _with_room(state: _Model, largest: int) -> _Model:
    """The model with room for more columns."""
    more = largest - state.weights.size
    return state._replace(inverse=np.pad(state.inverse, (0, more)), weights=np.pad(state.weights, (0, more)))


def _with_drawn_slab(
    gram: FloatArray,
    with_y: FloatArray,
    model: IntArray,
    n_independent: float,
    log_prior: FloatArray,
    rng: np.random.Generator,
) -> _Model:
    """Draw tau given the model, with the weight that the sampler gives to both together."""
    values, vectors = np.linalg.eigh(gram[np.ix_(model, model)])
    along, across = vectors.T @ with_y[model], gram[:, model] @ vectors
    states, log_p = [], np.empty(SLABS.size)
    rates, chances = np.empty(with_y.size), np.empty(with_y.size)
    for number, tau_sq in enumerate(SLABS * n_independent):
        ridge = np.maximum(values, 0.0) + 1.0 / tau_sq
        state = _Model(
            float(tau_sq),
            (vectors / ridge) @ vectors.T,
            vectors @ (along / ridge),
            np.array([max(1.0 - float(along**2 @ (1.0 / ridge)), LEAST_REST)]),
            1.0 + 1.0 / tau_sq - across**2 @ (1.0 / ridge),
            with_y - across @ (along / ridge),
        )
        _rates(model, model.size, *state, n_independent, log_prior, rates, chances)
        log_p[number] = np.log(rates.sum()) - 0.5 * (
            model.size * np.log(tau_sq) + np.log(ridge).sum() + n_independent * np.log(state.rest[0])
        )
        states.append(state)
    p = np.exp(log_p - log_p.max())
    return states[int(rng.choice(SLABS.size, p=p / p.sum()))]


@kernel
def _flip(
    gram: FloatArray,
    model: IntArray,
    size: int,
    tau_sq: float,
    inverse: FloatArray,
    weights: FloatArray,
    rest: FloatArray,
    length: FloatArray,
    product: FloatArray,
    n_independent: float,
    log_prior: FloatArray,
    uniform: FloatArray,
    found: FloatArray,
) -> tuple[int, float]:
    """Add or remove one column for each number of ``uniform``; returns the size of the model and the total weight."""
    rates, chances = np.empty(length.size), np.empty(length.size)
    total = 0.0
    for number in uniform:
        _rates(
            model,
            size,
            tau_sq,
            inverse,
            weights,
            rest,
            length,
            product,
            n_independent,
            log_prior,
            rates,
            chances,
        )
        all_rates = rates.sum()
        total += 1.0 / all_rates
        for i in range(length.size):
            found[i] += chances[i] / all_rates
        chosen, left = 0, number * all_rates - rates[0]
        while left > 0.0 and chosen < length.size - 1:
            chosen += 1
            left -= rates[chosen]
        position = 0
        while position < size and model[position] != chosen:
            position += 1
        if position == size:
            size = _add(gram, model, size, inverse, weights, rest, length, product, chosen)
        else:
            size = _remove(gram, model, size, inverse, weights, rest, length, product, position)
    return size, total


@kernel
def _rates(
    model: IntArray,
    size: int,
    tau_sq: float,
    inverse: FloatArray,
    weights: FloatArray,
    rest: FloatArray,
    length: FloatArray,
    product: FloatArray,
    n_independent: float,
    log_prior: FloatArray,
    rates: FloatArray,
    chances: FloatArray,
) -> None:
    """How often each column is added or removed, and its conditional probability; a full model gets no more columns."""
    exploration = EXPLORATION / length.size
    prior = log_prior[size] - 0.5 * np.log(tau_sq)
    for i in range(length.size):
        free = max(length[i], LEAST)
        less = max(rest[0] - product[i] * product[i] / free, LEAST_REST)
        log_odds = prior - 0.5 * np.log(free) - 0.5 * n_independent * np.log(less / rest[0])
        odds = np.exp(min(log_odds, LARGEST_LOG_ODDS))
        chances[i] = odds / (1.0 + odds)
        rates[i] = (chances[i] + exploration) * (1.0 + odds) if size < log_prior.size - 1 else 0.0
    prior = log_prior[max(size - 1, 0)] - 0.5 * np.log(tau_sq)
    for position in range(size):
        own = inverse[position, position]
        more = rest[0] + weights[position] * weights[position] / own
        log_odds = prior + 0.5 * np.log(own) + 0.5 * n_independent * np.log(more / rest[0])
        odds = np.exp(max(min(log_odds, LARGEST_LOG_ODDS), -LARGEST_LOG_ODDS))
        i = model[position]
        chances[i] = odds / (1.0 + odds)
        rates[i] = (chances[i] + exploration) / chances[i]


@kernel
def _across(gram: FloatArray, model: IntArray, size: int, by: FloatArray, across: FloatArray) -> None:
    """Subtract the products of all columns with those of the model, times ``by``."""
    for position in range(size):
        row = gram[model[position]]
        for i in range(across.size):
            across[i] -= row[i] * by[position]


@kernel
def _add(
    gram: FloatArray,
    model: IntArray,
    size: int,
    inverse: FloatArray,
    weights: FloatArray,
    rest: FloatArray,
    length: FloatArray,
    product: FloatArray,
    chosen: int,
) -> int:
    """Add a column to the model."""
    share = np.zeros(size)
    for a in range(size):
        for b in range(size):
            share[a] += inverse[a, b] * gram[model[b], chosen]
    across = gram[chosen].copy()
    _across(gram, model, size, share, across)
    own = max(length[chosen], LEAST)
    weight = product[chosen] / own
    rest[0] = max(rest[0] - product[chosen] * weight, LEAST_REST)
    for i in range(length.size):
        length[i] -= across[i] * across[i] / own
        product[i] -= across[i] * weight
    for a in range(size):
        weights[a] -= share[a] * weight
        for b in range(size):
            inverse[a, b] += share[a] * share[b] / own
        inverse[a, size] = -share[a] / own
        inverse[size, a] = -share[a] / own
    inverse[size, size] = 1.0 / own
    weights[size], model[size] = weight, chosen
    return size + 1


@kernel
def _remove(
    gram: FloatArray,
    model: IntArray,
    size: int,
    inverse: FloatArray,
    weights: FloatArray,
    rest: FloatArray,
    length: FloatArray,
    product: FloatArray,
    position: int,
) -> int:
    """Remove the column at a position of the model; the last one takes its position."""
    column, last = inverse[position, :size].copy(), size - 1
    own, weight = column[position], weights[position]
    across = np.zeros(length.size)
    _across(gram, model, size, column, across)
    rest[0] += weight * weight / own
    for i in range(length.size):
        length[i] += across[i] * across[i] / own
        product[i] -= across[i] * weight / own
    for a in range(size):
        weights[a] -= weight * column[a] / own
        for b in range(size):
            inverse[a, b] -= column[a] * column[b] / own
    model[position], weights[position] = model[last], weights[last]
    for a in range(size):
        inverse[a, position] = inverse[a, last]
    for a in range(size):
        inverse[position, a] = inverse[last, a]
    return last
