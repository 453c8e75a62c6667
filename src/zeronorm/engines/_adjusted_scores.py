r"""What single features add to covariates: score tests at the fit of the covariates, one pass over the data.

With :math:`Z` the covariates and a constant, a real target has the squared partial correlation

.. math:: r_k^2 = \frac{(\tilde x_k^\top y)^2}{\tilde x_k^\top \tilde x_k \cdot \tilde y^\top \tilde y}, \qquad
    \tilde x = (1 - P_Z)\, x,

whose F statistic is :math:`r^2 (n - q - 2) / (1 - r^2)`. For classes let :math:`\pi` be the probabilities of a
multinomial logistic regression on the covariates alone, :math:`U_k = x_k^\top (Y - \pi)` the derivative of its
likelihood for the weights of a feature, one for each class but the first, and :math:`V_k` the variance of
:math:`U_k` given the fit (Rao 1948):

.. math:: S_k = U_k^\top V_k^{-1} U_k, \qquad V_k = I_{xx} - I_{xz} I_{zz}^{-1} I_{zx}, \qquad
    I_{uv,ab} = \sum_i \pi_{ia} (\delta_{ab} - \pi_{ib})\, u_i v_i^\top .

Neither fits a model to a feature. A feature that is a combination of covariates adds nothing and scores 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from zeronorm._types import BoolArray, FloatArray
from zeronorm.engines._cox_scores import adjusted_score_tests
from zeronorm.selection._covariates import Covariates
from zeronorm.selection._problem import Problem

EXPLAINED = 1e-10  # share of its variance below which what remains of a feature is rounding
# Ridge of the covariates' weights, per sample and unit of variance: it matters where they separate the classes.
RIDGE = 1e-8
NEWTON_STEPS, CONVERGED, SHORTEST_STEP = 100, 1e-15, 1e-10


@dataclass(frozen=True, eq=False)
class AdjustedScores:
    """Score, p-value, and whether the covariates explain the feature, for all features."""

    score: FloatArray
    p_value: FloatArray
    explained: BoolArray


@dataclass(frozen=True, eq=False)
class CovariateModel:
    r"""A multinomial logistic regression on covariates.

    Attributes
    ----------
    columns : covariates and a constant.
    probability : of each class but the first.
    residual : class indicators minus probabilities, times the sample weights.
    information : of the weights of all columns, class by class.
    coefficients : one column for each class but the first.
    """

    columns: FloatArray
    probability: FloatArray
    residual: FloatArray
    information: FloatArray
    coefficients: FloatArray

    @classmethod
    def fit(cls, covariates: Covariates, codes: FloatArray, n_classes: int) -> CovariateModel:
        """Fit by Newton's method with step halving."""
        weight = covariates.root_weight**2
        Z = np.column_stack([covariates.basis, np.ones(len(codes))])
        truth = (codes[:, None] == np.arange(1, n_classes)).astype(float)
        ridge = np.tile(np.append(np.full(covariates.rank, RIDGE * weight.sum()), 0.0), n_classes - 1)
        beta = np.zeros((Z.shape[1], n_classes - 1))
        beta[-1] = np.log((weight @ truth) / (weight @ (1.0 - truth.sum(axis=1))))
        value = _penalized_loss(Z, truth, weight, beta, ridge)
        for _ in range(NEWTON_STEPS):
            pi = _probabilities(Z, beta)
            residual = weight[:, None] * (truth - pi)
            gradient = (Z.T @ residual).T.ravel() - ridge * beta.T.ravel()
            step = np.linalg.solve(_information(Z, pi, weight) + np.diag(ridge), gradient)
            length, decrease = 1.0, float(gradient @ step)
            if decrease <= CONVERGED * max(abs(value), 1.0):
                break
            while length > SHORTEST_STEP:
                moved = beta + length * step.reshape(n_classes - 1, -1).T
                new = _penalized_loss(Z, truth, weight, moved, ridge)
                if new <= value:
                    break
                length *= 0.5
            beta, value = moved, new
        pi = _probabilities(Z, beta)
        return cls(Z, pi, weight[:, None] * (truth - pi), _information(Z, pi, weight) + np.diag(ridge), beta)

    @property
    def all_probabilities(self) -> FloatArray:
        """The probabilities of all classes."""
        return np.column_stack([1.0 - self.probability.sum(axis=1), self.probability])


def _probabilities(Z: FloatArray, beta: FloatArray) -> FloatArray:
    return np.asarray(softmax(np.column_stack([np.zeros(len(Z)), Z @ beta]), axis=1)[:, 1:])


def _penalized_loss(
    Z: FloatArray, truth: FloatArray, weight: FloatArray, beta: FloatArray, ridge: FloatArray
) -> float:
    f = np.column_stack([np.zeros(len(Z)), Z @ beta])
    loss = np.logaddexp.reduce(f, axis=1) - (truth * f[:, 1:]).sum(axis=1)
    return float(weight @ loss + 0.5 * ridge @ beta.T.ravel() ** 2)


def _pairs(pi: FloatArray, weight: FloatArray) -> dict[tuple[int, int], FloatArray]:
    """The weights of the samples in the information of each pair of classes."""
    m = pi.shape[1]
    return {(a, b): weight * pi[:, a] * ((a == b) - pi[:, b]) for a in range(m) for b in range(m)}


def _information(Z: FloatArray, pi: FloatArray, weight: FloatArray) -> FloatArray:
    m, q = pi.shape[1], Z.shape[1]
    found = np.empty((m * q, m * q))
    for (a, b), pair in _pairs(pi, weight).items():
        found[a * q : (a + 1) * q, b * q : (b + 1) * q] = (pair[:, None] * Z).T @ Z
    return found


def adjusted_scores(problem: Problem) -> AdjustedScores:
    """What each feature of the problem adds to its covariates."""
    if problem.target.kind not in SCORE_TESTS:
        raise ValueError(f"There is no score test given covariates for a {problem.target.kind} target.")
    return SCORE_TESTS[problem.target.kind](problem)


def _of_real_target(problem: Problem) -> AdjustedScores:
    assert problem.adjust is not None
    design = problem.shared.standardized(problem.design, problem.sample_weight)
    root, free = problem.adjust.root_weight, problem.adjust.orthonormal
    y = problem.target.around_zero().columns()
    y = root[:, None] * problem.residuals(y / max(float(np.abs(y).max()), np.finfo(float).tiny))
    length = float(np.linalg.norm(y))
    is_explained = length <= EXPLAINED * np.sqrt(len(y))
    directions = np.column_stack([y / (1.0 if is_explained else length), free])
    score, explained = np.zeros(problem.n_features), np.zeros(problem.n_features, dtype=bool)
    for columns, block in design.iter_blocks():
        block *= root[:, None]
        products = block.T @ directions
        whole = (block**2).sum(axis=0)
        left = whole - (products[:, 1:] ** 2).sum(axis=1)
        explained[columns] = left <= EXPLAINED * np.maximum(whole, np.finfo(float).tiny)
        np.divide(products[:, 0] ** 2, left, out=score[columns], where=~explained[columns])
    score = np.zeros_like(score) if is_explained else np.minimum(score, 1.0)
    freedom = max(float((root**2).sum()) - problem.adjust.rank - 2.0, 1.0)
    ratio = score / np.maximum(1.0 - score, np.finfo(float).tiny) * freedom
    return AdjustedScores(score, np.asarray(f_distribution.sf(ratio, 1, freedom)), explained)


def _of_classes(problem: Problem) -> AdjustedScores:
    assert problem.adjust is not None
    design = problem.shared.standardized(problem.design, problem.sample_weight)
    model = CovariateModel.fit(problem.adjust, problem.y, problem.n_classes)
    m, q = model.probability.shape[1], model.columns.shape[1]
    pairs = _pairs(model.probability, problem.adjust.root_weight**2)
    squares = np.column_stack(list(pairs.values()))
    # For each class a the products with the columns of all classes b: the rows of I_xz.
    mixed = np.concatenate([pair[:, None] * model.columns for pair in pairs.values()], axis=1)
    inverse = np.linalg.inv(model.information)
    score, explained = np.zeros(problem.n_features), np.zeros(problem.n_features, dtype=bool)
    for columns, block in design.iter_blocks():
        U = block.T @ model.residual
        whole = ((block**2).T @ squares).reshape(-1, m, m)
        cross = (block.T @ mixed).reshape(-1, m, m * q)
        V = whole - np.einsum("kai,ij,kbj->kab", cross, inverse, cross, optimize=True)
        own, before = np.einsum("kaa->ka", V), np.einsum("kaa->ka", whole)
        explained[columns] = (own <= EXPLAINED * np.maximum(before, np.finfo(float).tiny)).any(axis=1)
        V[explained[columns]] = np.eye(m)
        score[columns] = np.einsum("ka,ka->k", U, np.linalg.solve(V, U[:, :, None])[:, :, 0])
    score = np.where(explained, 0.0, np.maximum(score, 0.0))
    return AdjustedScores(score, np.asarray(chi2.sf(score, m)), explained)


def _of_times(problem: Problem) -> AdjustedScores:
    slope, variance, explained = adjusted_score_tests(problem, "efron")
    score = np.divide(slope**2, variance, out=np.zeros_like(slope), where=variance > 0.0)
    return AdjustedScores(score, np.asarray(chi2.sf(score, 1)), explained)


# By kind of target; another kind of target adds its own test.
SCORE_TESTS: dict[str, Callable[[Problem], AdjustedScores]] = {
    "binary": _of_classes,
    "multiclass": _of_classes,
    "regression": _of_real_target,
    "survival": _of_times,
}
