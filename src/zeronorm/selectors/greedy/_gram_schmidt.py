"""Gram–Schmidt forward selection with its stopping rules, on features or on their monomials."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm.engines._error_control import ProbeRisk, probe_tail
from zeronorm.engines._monomials import MonomialDesign, needed_by_leave_one_out, needed_columns
from zeronorm.engines._orthogonal import OrthogonalSearch, least_squares_search
from zeronorm.registry import register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath, order_by_score
from zeronorm.selection._problem import Problem, warn_of_empty_selection
from zeronorm.selectors._base import WeightedSelector

STOPS = ("probe", "fisher", "loo", "size")


@register(
    "gram-schmidt",
    family="greedy",
    tasks=("binary", "multiclass", "regression"),
    reference="Stoppiglia et al. 2003; Rivals & Personnaz 2003; Lal et al. 2006, section 2.2",
    cost="n p for each selected feature",
    oracle="explicit orthogonalisation, fresh fits, and simulated probes",
    avoid="nonlinear effects (a degree above 1 is feasible for tens of features only)",
    test_params=({}, {"task": "regression", "stop": "loo"}, {"degree": 2, "stop": "fisher"}),
)
class GramSchmidt(WeightedSelector):
    r"""Rank features by their angle with the target, orthogonalise, repeat; stop by a random probe.

    Each step selects the column with the largest squared cosine with the target,

    .. math:: \cos^2_j = \frac{(x_j^\top y)^2}{\|x_j\|^2 \|y\|^2},

    then projects the target and all other columns on the orthogonal complement of the selected one. A column that
    depends linearly on the selected ones becomes zero and is no longer chosen. For :math:`q` classes the target is the
    space of the :math:`q - 1` centred class indicators with the orthonormal basis :math:`B`, and :math:`\cos^2_j =
    \|B^\top x_j\|^2 / \|x_j\|^2`; the selection is then stepwise discriminant analysis by Wilks' lambda.

    When to stop, with ``n_features_to_select=None``:

    - ``stop="probe"``: the risk that a column of noise would have been selected by now exceeds ``level``. A
      probe in :math:`\nu` dimensions has :math:`P(\cos^2 \le x) = F(x) = I_x(\frac{q-1}2, \frac{\nu-q+1}2)`
      and

      .. math:: R_k = R_{k-1} + (1 - F(\cos^2_k)) (1 - R_{k-1}).

      This is the risk for *one* probe. If all of p columns are noise, something is selected with
      probability :math:`1 - (1 - \text{level})^p`; ``correction="max"`` compares with the best of as many
      probes as there are columns left and holds the level. Beyond the first step the risk is an upper
      bound.
    - ``stop="fisher"``: the first feature whose partial F test is not significant at ``level`` is refused.
      It takes no account of the search over many columns.
    - ``stop="loo"``: the first feature that does not lower the leave-one-out error of the least-squares fit
      (computed from the leverages, without refitting) is refused.
    - ``stop="size"``: no rule; half of the features.

    At least one feature is always selected; ``n_accepted_`` is the number that the rule accepted.

    ``degree=d`` makes every monomial of the features up to degree d a candidate, then removes monomials one
    by one, the least significant first, while one of them fails the F test at ``level``; with ``stop="loo"``
    the one whose removal leaves the lowest leave-one-out error, while this error does not rise. The features of
    the monomials left are selected. All monomials are tried at every step, so this is for tens or a
    few hundred features.

    Parameters
    ----------
    n_features_to_select
        None: as many as the rule ``stop`` accepts.
    stop
        "probe" uses the risk that a random column would have been chosen, "fisher" a significance test, "loo" the
        leave-one-out error; "size" has no rule.
    level
        Here: the risk or significance at which the search stops. It holds for independent samples; with
        several samples of each patient use ``ProbeSelector`` with ``groups``.
    correction
        "max": for the best of all columns (with ``stop="probe"``). None: no correction.
    degree
        Here: largest degree of the monomials; 1 means the features themselves.
    standardize
        False: the columns are fitted as they are, without an intercept.
    always_keep
        They are fitted first.

    Attributes
    ----------
    squared_cosines_ : ndarray
        Squared cosine of each selected column with the target when it was selected.
    stop_values_ : ndarray
        The risk, significance or leave-one-out error in each step; one value more than columns were selected if the
        last candidate was refused.
    n_accepted_ : int
        Number of columns (or monomials) the rule accepted.
    monomials_ : list of tuples
        Selected monomials as tuples of features, (1, 1, 4) for the square of 1 times 4.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import GramSchmidt
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = GramSchmidt(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "squared_error"

    monomials_: list[tuple[int, ...]]

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        stop: Literal["probe", "fisher", "loo", "size"] = "probe",
        level: float = 0.05,
        correction: Literal["max"] | None = None,
        degree: int = 1,
        task: Literal["classification", "regression"] = "classification",
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        adjust: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.stop = stop
        self.level = level
        self.correction = correction
        self.degree = degree
        self.task = task
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.adjust = adjust
        self.verbose = verbose

    def _check_adjusted(self) -> None:
        if self.degree > 1:
            raise parameter_error(self, "degree", "1 with 'adjust'")

    def _select(self, problem: Problem) -> SelectionPath:
        rule = self._stop_rule()
        if self.degree == 1:
            search = least_squares_search(problem, joint=True)
            errors = self._grow(search, rule, problem)
            self.monomials_ = [(j,) for j in search.selected]
            path = _path_of_features(search, rule, errors, problem.always_keep.size)
        else:
            path = self._select_monomials(problem, rule)
        if path.selected_size == 0:
            warn_of_empty_selection(self, problem, "raise level, or set n_features_to_select")
        return path

    def _select_monomials(self, problem: Problem, rule: StopRule) -> SelectionPath:
        monomials = MonomialDesign.of(problem.design, self.degree)
        design = monomials.centred(problem.sample_weight) if self.standardize else monomials
        search = least_squares_search(problem, design, joint=True)
        alone = search.scores[: problem.n_features].copy()
        self._grow(search, rule, problem, monomials)
        chosen = self._needed_monomials(search, problem.always_keep)
        self.monomials_ = [monomials.features_of(m) for m in chosen]
        return _path_of_monomials(search, chosen, monomials, alone)

    def _stop_rule(self) -> StopRule:
        if self.stop == "probe":
            return ProbeStop(self.level, self.correction)
        if self.stop == "fisher":
            return FisherStop(self.level)
        return LeaveOneOutStop() if self.stop == "loo" else SizeStop()

    def _grow(
        self,
        search: OrthogonalSearch,
        rule: StopRule,
        problem: Problem,
        monomials: MonomialDesign | None = None,
    ) -> list[float]:
        """Select columns up to the requested size or the first refusal; return the residual of each step."""
        size = problem.n_features_to_select
        if size is None and self.stop == "size":
            size = max(1, problem.n_features // 2)
        features = set(search.selected)
        cosines, errors = [], [search.residual_sum_of_squares]
        with problem.progress.task("Adding features", size) as advance:
            while search.can_grow and (size is None or len(features) < size):
                column = search.best()
                if not rule.accept(search, column) and size is None:
                    break
                cosines.append(float(search.scores[column]))
                search.add(column)
                errors.append(search.residual_sum_of_squares)
                features.update((column,) if monomials is None else monomials.features_of(column))
                advance(1)
        self.squared_cosines_ = np.asarray(cosines)
        self.stop_values_ = np.asarray(rule.values)
        self.n_accepted_ = rule.n_accepted
        return errors

    def _needed_monomials(self, search: OrthogonalSearch, forced: NDArray[np.intp]) -> list[int]:
        """The monomials left by the backward removal; forced ones are kept even if they add nothing to the fit."""
        independent = search.independent
        kept = list(forced)
        if independent:
            columns, n_forced = search.columns(independent), len(set(independent) & set(kept))
            if self.stop == "loo":
                left = needed_by_leave_one_out(
                    columns, search.scaled_targets, search.intercept_leverage, search.weight, n_forced
                )
            else:
                dimension = search.dimension + len(independent)
                left = needed_columns(columns, search.target_basis, dimension, self.level, n_forced)
            kept += [independent[i] for i in left[n_forced:]]
        return [int(column) for column in kept]


def _path_of_features(
    search: OrthogonalSearch, rule: StopRule, errors: list[float], n_forced: int
) -> SelectionPath:
    first = max(1, n_forced)
    return SelectionPath(
        order=search.order(),
        visited_sizes=np.arange(first, len(search.selected) + 1),
        objective=np.asarray(errors[first - n_forced :]),
        selected_size=None if isinstance(rule, SizeStop) else n_forced + rule.n_accepted,
        n_iter=len(errors) - 1,
    )


def _path_of_monomials(
    search: OrthogonalSearch, chosen: list[int], monomials: MonomialDesign, alone: NDArray[np.float64]
) -> SelectionPath:
    """Features in the order in which their monomials entered, then those removed, then the others.

    Features of one monomial enter together, in the order of ``alone``, their scores of degree one.
    """
    best_first = order_by_score(alone)
    position = np.empty_like(best_first)
    position[best_first] = np.arange(position.size)

    def features_of(selected: list[int]) -> list[int]:
        return [f for m in selected for f in sorted(monomials.features_of(m), key=position.__getitem__)]

    needed = features_of(chosen)
    rest = order_by_score(monomials.best_by_feature(search.scores) + alone).tolist()
    order = dict.fromkeys([*needed, *features_of(search.selected), *rest])
    sizes = [len(set(features_of(chosen[: k + 1]))) for k in range(len(chosen))]
    return SelectionPath(
        order=np.asarray(list(order), dtype=np.intp),
        visited_sizes=np.unique(np.asarray(sizes, dtype=np.intp)),
        selected_size=len(set(needed)),
        n_iter=len(search.selected),
    )


# -- Stopping rules of the forward search --


class StopRule(ABC):
    """A rule that accepts or refuses candidates in turn; ``values`` holds the number behind each decision."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.n_accepted = 0
        self.has_refused = False

    def accept(self, search: OrthogonalSearch, column: int) -> bool:
        """Whether to accept ``column``; after the first refusal every column is refused."""
        value = self._value(search, column)
        self.has_refused = self.has_refused or not self._accepts(value)
        self.values.append(value)
        self.n_accepted += not self.has_refused
        return not self.has_refused

    @abstractmethod
    def _value(self, search: OrthogonalSearch, column: int) -> float:
        """The number that decides about the next column."""

    @abstractmethod
    def _accepts(self, value: float) -> bool:
        """Whether this number means acceptance."""


class ProbeStop(StopRule):
    """Stops when the risk of having selected a random probe exceeds a level."""

    def __init__(self, level: float, correction: str | None) -> None:
        super().__init__()
        self.level = level
        self.risk = ProbeRisk(correction)

    def _value(self, search: OrthogonalSearch, column: int) -> float:
        cos_sq = float(search.scores[column])
        self.risk.value = self.risk.after(cos_sq, search.dimension, search.target_rank, search.n_candidates)
        return self.risk.value

    def _accepts(self, value: float) -> bool:
        return value <= self.level


class FisherStop(StopRule):
    """Stops at the first feature that is not significant in the partial F test at a level."""

    def __init__(self, level: float) -> None:
        super().__init__()
        self.level = level

    def _value(self, search: OrthogonalSearch, column: int) -> float:
        return float(probe_tail(search.scores[column], search.dimension, search.target_rank))

    def _accepts(self, value: float) -> bool:
        return value <= self.level


class LeaveOneOutStop(StopRule):
    """Stops at the first feature that does not lower the leave-one-out error."""

    def __init__(self) -> None:
        super().__init__()
        self.error: float | None = None

    def _value(self, search: OrthogonalSearch, column: int) -> float:
        if self.error is None:
            self.error = search.leave_one_out_error()
        return search.leave_one_out_error(column)

    def _accepts(self, value: float) -> bool:
        assert self.error is not None  # _value came first
        is_lower = value < self.error
        self.error = value
        return is_lower


class SizeStop(StopRule):
    """Accepts every feature; the value is the share of the target that the feature explains."""

    def _value(self, search: OrthogonalSearch, column: int) -> float:
        return float(search.scores[column])

    def _accepts(self, value: float) -> bool:
        return True
