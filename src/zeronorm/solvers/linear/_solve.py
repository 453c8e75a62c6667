"""The solution of a linear problem; which algorithm finds it is decided in ``_ways``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.design import DenseDesign, Design, contiguous
from zeronorm.design._index import each
from zeronorm.design._joined import JoinedDesign
from zeronorm.execution import in_threads
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import _smooth
from zeronorm.solvers.linear._problem import LinearProblem, Solution, State
from zeronorm.solvers.linear._programs import solve_programs
from zeronorm.solvers.linear._ways import (
    Reuse,
    Way,
    choose,
    prefers_multipliers,
    prefers_products,
    stays_on_gram,
)
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._dual import DualSolution, run_smo
from zeronorm.solvers.svm._joint_multiclass import solve_weston_watkins
from zeronorm.solvers.svm._multipliers import solve_by_multipliers
from zeronorm.solvers.svm._tall import TallSolution, solve_linear_loss, solve_squared_loss

# Most iterations: steps of pairs of variables, Newton steps on smooth losses and on squares, interior points.
PAIR_STEPS, SMOOTH_STEPS, NEWTON_STEPS, INTERIOR_POINTS = 2_000_000, 100, 200, 100


def solve(
    problem: LinearProblem,
    design: Design,
    state: State | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    way: Way | None = None,
    reuse: Reuse = Reuse.LITTLE,
) -> Solution:
    """Solve for weights and bias of all models.

    Parameters
    ----------
    state : the solution of a similar problem; costs, targets, factors and features may have changed.
    tol : largest violation of the optimality conditions in units of the margin, or largest relative gap.
    max_iter : None: a number that hardly any problem reaches.
    way : None: chosen by shape, loss and norm.
    reuse : how near ``state`` is to the solution, from which the way is chosen too.
    """
    way = choose(problem.loss, problem.norm, design.shape, reuse) if way is None else way
    if way is Way.PROGRAM:
        if problem.covariates is not None:
            raise NotImplementedError("Linear programs have no columns without a penalty.")
        return solve_programs(problem, design, state)
    if problem.covariates is not None and way is Way.PRIMAL and not problem.joint:
        return _solve_joined(problem, design, state, tol, max_iter)
    if problem.joint:
        return _solve_joint(problem, design, state, tol)
    find = _solve_on_gram if way is Way.GRAM else _solve_in_weights
    return find(problem, design, state, tol, max_iter)


# -- With covariates --


def _solve_joined(
    problem: LinearProblem, design: Design, state: State | None, tol: float, max_iter: int | None
) -> Solution:
    """The solution in the weights of the features and of the covariates times their large factor."""
    free = problem.covariate_columns()
    p, scale = design.n_features, problem.scale
    joined = replace(
        problem,
        covariates=None,
        scale=None if scale is None else np.concatenate([scale, np.ones(free.shape[1])]),
    )
    found = _solve_in_weights(joined, JoinedDesign(design, DenseDesign(free)), state, tol, max_iter)
    return replace(
        found,
        rescaled=found.rescaled[:p],
        scale=scale,
        state=replace(
            found.state, weights=None
        ),  # the next solution starts from the coefficients of the samples
        offset=free @ found.rescaled[p:],
    )


# -- On the Gram matrix --


def _solve_on_gram(
    problem: LinearProblem, design: Design, state: State | None, tol: float, max_iter: int | None
) -> Solution:
    K = _gram(problem, design, state)
    free = problem.covariate_columns(float(np.diagonal(K).mean()))
    if free.size:
        K = K + free @ free.T
    find = _solve_dual if problem.loss.has_dual else _solve_smooth_dual
    is_wide = design.n_features >= design.n_samples
    product = partial(_product, design, problem.scale, free) if prefers_products(design) else None
    models: list[Any] = [
        find(K, problem, c, state, tol, max_iter, is_wide, product) for c in range(problem.n_models)
    ]
    dual_coef = np.column_stack([model.dual_coef for model in models])
    rescaled = np.require(design.transpose_dot(dual_coef), requirements="W")
    if problem.scale is not None:
        _multiply_rows(rescaled, problem.scale)
    after = State(
        bias=np.array([model.bias for model in models]),
        alpha=np.stack([model.alpha for model in models]) if problem.loss.has_dual else None,
        dual_coef=dual_coef,
        gram=None if state is None else state.gram,
    )
    found = _solution(problem, models, rescaled, Way.GRAM, after)
    if free.size:
        return replace(found, offset=free @ (free.T @ dual_coef))
    if problem.scale is None or stays_on_gram(design.n_samples, problem.loss, Reuse.NEAR):
        return found
    return replace(found, state=replace(after, weights=found.weights))  # for the primal, with other factors


def _gram(problem: LinearProblem, design: Design, state: State | None) -> FloatArray:
    """The Gram matrix of the rescaled features, kept from the last problem or from the data."""
    if state is not None and state.gram is not None:
        return state.gram
    return (
        design.gram()
        if problem.scale is None
        else design.gram(each(np.multiply, problem.scale, problem.scale))
    )


def _product(design: Design, scale: FloatArray | None, free: FloatArray, v: FloatArray) -> FloatArray:
    """The Gram matrix times ``v``, by products with the data."""
    found = design.transpose_dot(v)
    return design.dot(found if scale is None else scale[:, None] ** 2 * found) + free @ (free.T @ v)


def _multiply_rows(weights: FloatArray, scale: FloatArray) -> None:
    def multiply(first: int, last: int) -> None:
        weights[first:last] *= scale[first:last, None]

    in_threads(multiply, scale.size)


def _solve_dual(
    K: FloatArray,
    problem: LinearProblem,
    c: int,
    state: State | None,
    tol: float,
    max_iter: int | None,
    is_wide: bool,
    product: Any,
) -> DualSolution:
    """One piecewise linear or quadratic model, from its dual variables."""
    y, cost = problem.targets[:, c], problem.costs[:, c]
    # The bias absorbs a constant in the targets; a large one would cause rounding errors in the steps.
    shift = 0.0 if problem.loss.for_classes_only else 0.5 * float(y.min() + y.max())
    box = problem.loss.box_dual(y - shift if shift else y, np.ascontiguousarray(cost))
    start = None if state is None or state.alpha is None else state.alpha[c]
    limit = PAIR_STEPS if max_iter is None else max_iter
    found = DualSolution(*run_smo(K, box, start, tol, limit, is_wide, product))
    return replace(found, bias=found.bias + shift, shift=shift) if shift else found


def _solve_smooth_dual(
    K: FloatArray,
    problem: LinearProblem,
    c: int,
    state: State | None,
    tol: float,
    max_iter: int | None,
    is_wide: bool,
    product: Any,
) -> _smooth.SmoothSolution:
    """One model with a smooth loss, on the samples that cost something."""
    del is_wide, product
    rows = np.flatnonzero(problem.costs[:, c])
    is_all = rows.size == len(K)
    start = None
    if state is not None and state.dual_coef is not None:
        start = state.dual_coef[rows, c], float(state.bias[c])
    found = _smooth.solve_on_gram(
        K if is_all else K[np.ix_(rows, rows)],
        problem.loss,
        problem.targets[rows, c],
        problem.costs[rows, c],
        start,
        tol=tol,
        max_iter=SMOOTH_STEPS if max_iter is None else max_iter,
    )
    if is_all:
        return found
    dual_coef = np.zeros(len(K))
    dual_coef[rows] = found.dual_coef
    return replace(found, dual_coef=dual_coef)


# -- In the weights --


def _solve_in_weights(
    problem: LinearProblem, design: Design, state: State | None, tol: float, max_iter: int | None
) -> Solution:
    scale = problem.scale
    if scale is not None:
        design = design.transformed(scale=1.0 / scale)
    design = contiguous(design)
    find = _solve_primal if problem.loss.has_dual else _solve_smooth_primal
    models: list[Any] = [
        find(design, problem, c, _start(problem, design, state, c), state, tol, max_iter)
        for c in range(problem.n_models)
    ]
    rescaled = np.column_stack([model.weights for model in models])
    after = State(
        bias=np.array([model.bias for model in models]),
        alpha=np.stack([model.alpha for model in models]) if problem.loss.has_dual else None,
        dual_coef=np.column_stack([model.dual_coef for model in models]),
    )
    found = _solution(problem, models, rescaled, Way.PRIMAL, after)
    return replace(found, state=replace(after, weights=found.weights))


def _start(
    problem: LinearProblem, design: Design, state: State | None, c: int
) -> tuple[FloatArray, float] | None:
    """Weights of the rescaled features with the decision values of the last solution, or near them."""
    if state is None:
        return None
    if state.weights is not None and len(state.weights) == design.n_features:
        weights = state.weights[:, c]
        return weights if problem.scale is None else weights / problem.scale, float(state.bias[c])
    if state.dual_coef is None:
        return None
    return design.transpose_dot(state.dual_coef[:, c]), float(state.bias[c])


def _solve_primal(
    design: Design,
    problem: LinearProblem,
    c: int,
    start: tuple[FloatArray, float] | None,
    state: State | None,
    tol: float,
    max_iter: int | None,
) -> TallSolution:
    """One piecewise linear or quadratic model."""
    box = problem.loss.box_dual(problem.targets[:, c], problem.costs[:, c])
    if not problem.loss.has_kinks and not box.hard.any():
        return solve_squared_loss(design, box, start, tol=tol, max_iter=max_iter or NEWTON_STEPS)
    near = None
    if start is not None and state is not None and state.alpha is not None:
        near = (*start, state.alpha[c])
    return solve_piecewise_linear(design, box, near, tol, max_iter)


def solve_piecewise_linear(
    design: Design,
    box: BoxDual,
    start: tuple[FloatArray, float, FloatArray] | None,
    tol: float,
    max_iter: int | None = None,
) -> TallSolution:
    """The model of a loss with kinks, by multipliers where these are faster and succeed, else by interior points."""
    if prefers_multipliers(design, start is not None) and np.isfinite(box.upper).all():
        found = solve_by_multipliers(design, box, start, tol=tol)
        if found.status.converged:
            return found
    return solve_linear_loss(design, box, start, tol=tol, max_iter=max_iter or INTERIOR_POINTS)


def _solve_smooth_primal(
    design: Design,
    problem: LinearProblem,
    c: int,
    start: tuple[FloatArray, float] | None,
    state: State | None,
    tol: float,
    max_iter: int | None,
) -> _smooth.SmoothSolution:
    """One model with a smooth loss."""
    del state
    return _smooth.solve_in_weights(
        design,
        problem.loss,
        problem.targets[:, c],
        problem.costs[:, c],
        start,
        tol=tol,
        max_iter=SMOOTH_STEPS if max_iter is None else max_iter,
    )


# -- All classes in one problem --


def _solve_joint(problem: LinearProblem, design: Design, state: State | None, tol: float) -> Solution:
    K = _gram(problem, design, state)
    free = problem.covariate_columns(float(np.diagonal(K).mean()))
    found = solve_weston_watkins(
        K + free @ free.T if free.size else K,
        problem.targets.argmax(axis=1),
        problem.n_models,
        C=problem.costs[:, 0],
        loss="hinge" if problem.loss.has_kinks else "squared_hinge",
        warm_start=None if state is None else state.programs,
        tol=tol,
    )
    rescaled = np.require(design.transpose_dot(found.dual_coef), requirements="W")
    if problem.scale is not None:
        _multiply_rows(rescaled, problem.scale)
    after = State(bias=found.bias, dual_coef=found.dual_coef, programs=found)
    offset = free @ (free.T @ found.dual_coef) if free.size else None
    return Solution(
        rescaled, found.bias, found.status, found.n_iter, Way.GRAM, after, (found,), problem.scale, offset
    )


def _solution(
    problem: LinearProblem, models: list[Any], rescaled: FloatArray, way: Way, state: State
) -> Solution:
    status = max((model.status for model in models), default=Status.CONVERGED)
    n_iter = sum(model.n_iter for model in models)
    return Solution(rescaled, state.bias, status, n_iter, way, state, models, problem.scale)
