"""Forward selection for least squares, the classical greedy method."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from zeronorm.engines._orthogonal import least_squares_search
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import WeightedSelector


@register(
    "forward-least-squares",
    family="greedy",
    tasks=("binary", "regression"),
    reference="Lal et al. 2006, section 2.2",
    cost="n p for each selected feature",
    oracle="OrthogonalMatchingPursuit, and a fresh fit for every candidate",
    avoid="problems where early choices must be undone: nothing is ever removed; several classes",
    misprints="The chapter prints the projection for columns written as rows.",
    test_params=({}, {"gain": "joint", "task": "regression"}),
)
class ForwardLeastSquares(WeightedSelector):
    r"""Add one feature at a time to a least-squares fit.

    With :math:`S` the features selected so far and :math:`P_S` the projection on the orthogonal complement of
    their columns, the residual is :math:`r = P_S y` and the next feature is

    .. math:: \arg\max_j \frac{(x_j^\top r)^2}{\|x_j\|^2} \quad\text{(residual)}, \qquad
              \arg\max_j \frac{(x_j^\top r)^2}{\|P_S x_j\|^2} \quad\text{(joint)}.

    ``gain="residual"`` adds the column that alone explains most of the residual, then refits all
    weights: orthogonal matching pursuit. ``gain="joint"`` adds the column with the largest decrease of
    the residual *after* refitting; it is Gram–Schmidt selection without its stopping rules. The two agree
    on uncorrelated columns; on correlated ones "joint" finds columns that help only together.

    No candidate is fitted on its own: one product with the transposed data per feature updates all
    scores. Class labels are coded ±1. The chapter prints :math:`P_S = I - X_S^\top (X_S X_S^\top)^{-1} X_S` for
    columns written as rows.

    Use it for a regression target or two classes with little noise and few relevant features. It never
    removes a feature, and it has no stopping rule: see `GramSchmidt` for those.

    Parameters
    ----------
    n_features_to_select
        None: half of the features.
    gain
        "residual": the gain of the feature alone. "joint": the gain after refitting all selected features.
    standardize
        False: the columns are fitted as they are, without an intercept.
    always_keep
        They are fitted first.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import ForwardLeastSquares
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = ForwardLeastSquares(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "squared_error"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        gain: Literal["residual", "joint"] = "residual",
        task: Literal["classification", "regression"] = "classification",
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.gain = gain
        self.task = task
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        search = least_squares_search(problem, joint=self.gain == "joint")
        n_forced = len(search.selected)
        size = problem.n_features_to_select or max(1, problem.n_features // 2)
        errors = [search.residual_sum_of_squares]
        with problem.progress.task("Adding features", size) as advance:
            while len(search.selected) < size and search.can_grow:
                search.add(search.best())
                errors.append(search.residual_sum_of_squares)
                advance(1)
        first = max(1, n_forced)
        return SelectionPath(
            order=search.order(),
            visited_sizes=np.arange(first, len(search.selected) + 1),
            objective=np.asarray(errors[first - n_forced :]),
            n_iter=len(errors) - 1,
        )
