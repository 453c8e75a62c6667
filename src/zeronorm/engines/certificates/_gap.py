"""How far a subset is from the best one of its size."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design, as_design
from zeronorm.engines.certificates._bounds import Objective
from zeronorm.engines.certificates._branching import SubsetProof
from zeronorm.engines.certificates._certificate import Certificate, all_subsets, certificate_of
from zeronorm.engines.certificates._conjugates import dual_loss
from zeronorm.engines.certificates._proof import Limits
from zeronorm.engines.certificates._refit import refit
from zeronorm.engines.certificates._relaxation import Relaxation
from zeronorm.execution import one_thread_for_products
from zeronorm.selection._problem import parse_always_keep, parse_feature_groups
from zeronorm.selection.target import target_for

COST_OF_ALL = 10.0  # C times the number of samples, chosen with "auto"
TASKS_OF_LOSSES = ("binary", "multiclass", "regression")


def automatic_cost(total_weight: float) -> float:
    """The C with which the weight of one standardised feature is shrunk by about a tenth in least squares."""
    return COST_OF_ALL / total_weight


def optimality_gap(
    X: Any,
    y: ArrayLike,
    support: Any,
    *,
    loss: Literal["squared_error", "hinge", "squared_hinge", "logistic"] | None = None,
    C: float | Literal["auto"] = "auto",
    max_weight: float | None = None,
    task: Literal["classification", "regression"] = "classification",
    sample_weight: ArrayLike | None = None,
    feature_groups: Any = None,
    always_keep: Any = None,
    standardize: bool = True,
    gap_tol: float = 0.01,
    time_limit: float = 10.0,
    max_nodes: int = 10_000,
    earlier: Certificate | None = None,
) -> Certificate:
    r"""Prove how much better the best subset of the same size can be.

    A subset S is compared by the objective of the linear model that is trained on it,

    .. math:: P(S) = \min_{w, b}\ \tfrac12 \|w\|^2 + C \sum_i s_i L(w \cdot x_i + b, y_i).

    The refit of the given subset is an upper bound of the best objective. A dual point gives a lower bound for all
    subsets of this size, and branch and bound raises it until the gap is closed or the time is over. The result does
    not depend on how the subset was found.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Design of shape (n_samples, n_features)
        The data.
    y : array of shape (n_samples,)
        Labels of any type, or real targets with ``task="regression"``.
    support : selector, mask or list
        A fitted selector, a mask, or a list of column positions.
    loss : {"squared_error", "hinge", "squared_hinge", "logistic"} or None, default=None
        None: the loss of the selector if it has one; else "logistic" for classes, "squared_error" for numbers.
    C : float or "auto", default='auto'
        Cost of the errors. The smaller it is, the smaller the gap. "auto": 10 divided by the sum of the sample weights.
    max_weight : float or None, default=None
        Compare only models whose weights are at most this in absolute value: with a bound little above the weights of
        the best model the gap closes much sooner, but says nothing about models with larger weights. With several
        classes it bounds the root of the sum of their squares, with feature groups that of their mean over the group.
    task : {"classification", "regression"}, default='classification'
        Whether y holds classes or real numbers; a selector knows its own.
    sample_weight : array or None, default=None
        One weight per sample.
    feature_groups : list, dict or None, default=None
        Features that enter a subset together; the size still counts features.
    always_keep : list or None, default=None
        Features that all compared subsets hold.
    standardize : bool, default=True
        Whether to scale every column to mean 0 and variance 1 first.
    gap_tol : float, default=0.01
        Relative gap at which the search ends.
    time_limit : float, default=10.0
        Seconds after which the search ends.
    max_nodes : int, default=10000
        Number of nodes of branch and bound after which it ends, with those of an earlier search.
    earlier : Certificate or None, default=None
        What an earlier search proved on the same data for the same size, loss, C and bound of the weights, for this or
        another subset: the search continues there.

    Returns
    -------
    Certificate
        Objective, bound, gap, the dual point that proves the bound, and a better subset if one was found.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import optimality_gap
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> optimality_gap(X, y, [0, 1], gap_tol=1e-6).sentence()
    'No subset of 2 features has a smaller objective (proved to one part in a million).'
    """
    task = support._task_name() if hasattr(support, "_task_name") else task
    own = support._certified_loss() if hasattr(support, "_certified_loss") else None
    used: str = loss or own or _usual_loss(task)
    design = as_design(X)
    names = design.feature_names
    weight = _weights(sample_weight, design.n_samples)
    present = np.flatnonzero(weight > 0.0)
    if present.size < weight.size:
        design, y, weight = design.take_rows(present), np.asarray(y)[present], weight[present]
    targets = target_for(np.asarray(y), task, TASKS_OF_LOSSES, "optimality_gap").columns()
    if len(targets) != design.n_samples:
        raise ValueError(f"X has {design.n_samples} rows, but y has {len(targets)}.")
    cost = automatic_cost(float(weight.sum())) if isinstance(C, str) else float(C)
    if not (0.0 < cost < np.inf):
        raise ValueError(
            f"The 'C' parameter of optimality_gap must be a finite number greater than 0, or 'auto'. Got {C} instead."
        )
    reach = np.inf if max_weight is None else float(max_weight)
    if not reach > 0.0:
        raise ValueError(
            f"The 'max_weight' parameter of optimality_gap must be a number greater than 0, or None. Got {max_weight} "
            "instead."
        )
    if standardize:
        design = design.standardized(sample_weight=None if sample_weight is None else weight)
    objective = Objective(design, targets, cost * weight, dual_loss(used), reach)
    columns = _columns(support, design)
    groups = parse_feature_groups(feature_groups, design.n_features, names)
    forced = parse_always_keep(always_keep, design.n_features, names)
    limits = Limits.within(time_limit, gap=gap_tol, nodes=max_nodes)
    with one_thread_for_products():
        return _prove(objective, groups, forced, columns, limits, used, cost, earlier)


def _prove(
    objective: Objective,
    groups: IntArray | None,
    forced: IntArray,
    columns: IntArray,
    limits: Limits,
    loss: str,
    C: float,
    earlier: Certificate | None,
) -> Certificate:
    candidates = all_subsets(objective, groups, columns.size, forced)
    units = np.unique(candidates.units.code[columns])
    whole = candidates.units.columns(units)
    if (
        whole.size != columns.size
        or candidates.inside[np.setdiff1d(np.arange(candidates.inside.size), units)].any()
    ):
        raise ValueError(
            "The subset must hold all of 'always_keep' and only whole 'feature_groups'; otherwise it is not one of the "
            "subsets with which it is compared."
        )
    state = None if earlier is None else earlier.state_for(objective, columns.size, loss, C)
    relaxation = Relaxation(objective, candidates.units, limits.is_over)
    search = SubsetProof(objective, candidates.units, candidates, limits, relaxation)
    value = search.try_units(units).objective
    start = relaxation.first_start(search.candidates, refit(objective, np.empty(0, dtype=np.intp)).bias)
    return certificate_of(search.run(start, state=state), objective, columns, value, loss, C)


def _usual_loss(task: str) -> str:
    return "squared_error" if task == "regression" else "logistic"


def _weights(sample_weight: ArrayLike | None, n_samples: int) -> FloatArray:
    weight = np.ones(n_samples) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_samples,) or not np.isfinite(weight).all() or weight.min(initial=0.0) < 0.0:
        raise ValueError(f"The 'sample_weight' must hold {n_samples} finite numbers that are not negative.")
    return weight


def _columns(support: Any, design: Design) -> IntArray:
    """The sorted positions of a subset."""
    given = support.get_support() if hasattr(support, "get_support") else np.asarray(support)
    if given.dtype == bool and given.shape == (design.n_features,):
        columns = np.flatnonzero(given)
    else:
        columns = np.unique(np.asarray(given, dtype=np.intp))
    if columns.size == 0 or columns[0] < 0 or columns[-1] >= design.n_features:
        raise ValueError(
            f"The 'support' must name at least one of the {design.n_features} columns of X, by a mask or by positions "
            f"from 0 on. Got {columns[:5].tolist()} instead."
        )
    return columns
