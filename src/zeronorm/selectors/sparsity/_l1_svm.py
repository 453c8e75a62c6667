"""The ℓ1 support vector machine: hinge loss under a bound on the sum of absolute weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._cost import epsilon_of, known_cost, l1_path, nearly_best_l1_costs
from zeronorm.engines._sparse_paths import entry_scores, first_copies, path_of_entries
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, warn_of_empty_selection
from zeronorm.selectors._base import WeightedSplittingSelector
from zeronorm.solvers._status import Status
from zeronorm.solvers.l1_svm._dual import l1_svm_program
from zeronorm.solvers.l1_svm._program import L1Svm

ZERO_WEIGHT = 1e-9  # relative to the largest weight; its share of a decision value, relative to the margin
NO_SLACK = 1e-7
SEPARABLE_BY = 1e9  # up to this multiple of the smallest C on the path a hard margin is looked for
BISECTIONS = 12
MANY_FEATURES = 50  # where the path beyond the chosen C ends; larger solutions take most of the time
FAR_MORE = 2  # times the features asked for; solutions with more take most of the time
SMALLEST_SHARE, FIRST_SHARE = 1 / 32, 0.25  # of a step of the path, in the logarithm


@register(
    "l1-svm",
    family="sparsity",
    tasks=("binary", "multiclass", "regression"),
    reference="Bradley & Mangasarian 1998; Bi et al. 2003; Lal et al. 2006, section 4.2",
    cost="n p for each of 10 to 20 passes over the data, and small linear programs",
    oracle="the full linear program, and its optimality conditions",
    avoid="more features than samples to be selected; keeping all of several interchangeable features",
    test_params=({"n_steps": 4}, {"task": "regression", "n_steps": 4}),
)
class L1SVM(WeightedSplittingSelector):
    r"""Select with the ℓ1 support vector machine, a linear program.

    .. math:: \min_{w, b}\ \sum_k |w_k| + C \sum_i \xi_i, \qquad \xi_i \ge 1 - y_i(w \cdot x_i + b), \quad \xi_i \ge 0

    For regression :math:`\xi_i \ge |y_i - w \cdot x_i - b| - \epsilon`. Most weights are exactly zero; C determines how
    many. The program is solved exactly along a path of growing C, from where no feature has a weight to the C asked
    for; each solution starts from the last basis. Features are brought into the program only when they can improve its
    solution (column generation), so a hundred thousand of them are no problem; there are never more weights than
    samples. Where it is faster, an interior-point method replaces the simplex method; it ends in a vertex that is
    proved optimal. In large sparse data, samples that agree in the features of the program count as one, and samples
    far from their margin are held fixed as long as that is correct, so a million samples are no problem either.

    When a number of features is asked for, a C at which the solution has that many is looked for between the steps of
    the path. Where the solution jumps from fewer to more there is none, and the larger solution is cut. Features
    are ordered by the C at which they enter; those that never do, by how close they came: :math:`|x_k \cdot (\alpha *
    y)|`, which is 1 for a feature with a weight. The weight of columns equal up to sign and shift goes to the first.

    Where several solutions are optimal, as happens with few samples of few distinct values, the vertex that is found
    may depend on the order of the columns.

    Several classes have one classifier for each class against the rest, all with the same C, or one for each pair of
    classes, trained on the samples of the two; the support is the union. The classifiers take turns in the order of the
    features: the first feature of each comes before the second of any, and so on. Otherwise the class that is easiest
    to separate would take all first positions. A given number of features is then the beginning of this order.

    Use it for a small, stable number of features when the classes overlap. Of two equally good features it
    often keeps only one.

    Parameters
    ----------
    n_features_to_select
        None: all features with a weight at ``C``.
    C
        Here: the value at the end of the path. ``numpy.inf`` is the hard margin. "auto" tries values from where
        the first feature enters up to a thousand times that, until the loss on held-out samples (three folds of at most
        300 samples) no longer decreases, and takes the smallest within one standard error of the best. The path then
        goes on until fifty features have a weight.
    n_steps
        Each is a value of C; 1 solves for ``C`` alone.
    multi_class
        With ``C="auto"`` classifiers of one class against the rest choose C.
    epsilon
        "auto" is a tenth of the scale of the target (its median absolute deviation, as a standard deviation), so that
        the unit of y does not matter.

    Attributes
    ----------
    coef_ : ndarray
        Weights of the standardised features at ``C_``, one row per model.
    intercept_ : float or ndarray
        Bias at ``C_``, one number per model.
    C_ : float
        The ``C`` that was used.
    epsilon_ : float or None
        The ``epsilon`` that was used. None in classification.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import L1SVM
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = L1SVM(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _linear_loss = "hinge"

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        C: float | Literal["auto"] = "auto",
        n_steps: int = 10,
        epsilon: float | Literal["auto"] = "auto",
        multi_class: Literal["one_vs_rest", "one_vs_one"] = "one_vs_rest",
        task: Literal["classification", "regression"] = "classification",
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.C = C
        self.n_steps = n_steps
        self.epsilon = epsilon
        self.multi_class = multi_class
        self.task = task
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _follows_target_outliers(self) -> bool:
        return False

    def _select(self, problem: Problem) -> SelectionPath:
        self.epsilon_ = epsilon_of(self, problem)
        midrange, problem = problem.target.midrange, problem.around_zero()
        n_steps = int(self.n_steps)
        asked, automatic = problem.n_features_to_select, isinstance(self.C, str)
        known = known_cost(self, problem)
        chosen = nearly_best_l1_costs(problem, self.epsilon_, n_steps)[0] if known is None else known
        costs = l1_path(problem, n_steps) if automatic else _costs(problem, chosen, n_steps)
        walk = _CostPath(problem, _tasks(problem, self.multi_class), self.epsilon_, n_steps)
        with problem.progress.task("Costs", n_steps) as advance:
            for C in costs[costs <= max(chosen, costs[0])]:
                walk.solve(C)
                advance(1)
                if walk.without_slack:
                    break
            if automatic:  # a C chosen on noise may select no feature
                walk.grow_to(1, costs)
            selected_size = walk.last_support.size
            self.coef_, self.intercept_ = walk.weights, midrange + walk.bias
            self.C_ = walk.visited[-1].C
            if automatic:
                walk.grow_to(MANY_FEATURES if asked is None else asked, costs)
        if np.isinf(chosen) and not walk.without_slack:
            raise ValueError(
                "L1SVM with C=inf needs samples that a linear model fits without errors. "
                "No linear model fits these samples without errors; use a finite C."
            )
        if selected_size == 0:
            remedy = "raise C" if self.epsilon_ is None else "raise C or lower epsilon"
            warn_of_empty_selection(self, problem, remedy)
        if len(walk.programs) > 1:
            return walk.path_in_turns(self.C_)
        if asked is not None:
            walk.look_for_size(asked)
        return walk.path(selected_size)


def _costs(problem: Problem, last: float, n_steps: int) -> FloatArray:
    """Growing values of C up to the one asked for."""
    if np.isinf(last):
        return l1_path(problem, 3 * n_steps, beyond=SEPARABLE_BY)
    return np.asarray([last]) if n_steps == 1 else l1_path(problem, n_steps, last)


def _share_of_growth(few: int, wanted: int, many: int) -> float:
    """Share of an interval at which a size is reached if its logarithm grows linearly, kept away from the ends."""
    start = np.log(max(few, 0.5))
    return float(np.clip((np.log(wanted) - start) / (np.log(many) - start), 0.1, 0.9))


def _tasks(problem: Problem, multi_class: str) -> list[tuple[IntArray | None, FloatArray]]:
    """Samples (None: all) and target of each model."""
    columns, involved = problem.target.model_columns(multi_class)
    if involved.all():
        return [(None, target) for target in np.ascontiguousarray(columns.T)]
    rows = [np.flatnonzero(inside) for inside in involved.T]
    return [(some, target[some]) for some, target in zip(rows, columns.T, strict=True)]


@dataclass(frozen=True)
class _Step:
    """The features with a weight at one C, and their absolute weights in each model."""

    C: float
    support: IntArray
    weights: FloatArray


class _CostPath:
    """Models solved for one C after the other."""

    def __init__(
        self,
        problem: Problem,
        tasks: list[tuple[IntArray | None, FloatArray]],
        epsilon: float | None,
        n_steps: int,
    ) -> None:
        self.problem, self.rows = problem, [rows for rows, _ in tasks]
        # A program could share a weight between copies in any way: only the first copy is given to it.
        self.distinct, self.position = np.unique(first_copies(problem.design), return_inverse=True)
        every = self.distinct.size == problem.n_features
        design = problem.design if every else problem.design.take(self.distinct)
        self.programs = [
            l1_svm_program(
                design if rows is None else design.take_rows(rows),
                y,
                C=self._costs(1.0, rows),
                epsilon=epsilon,
                n_steps=n_steps,
            )
            for rows, y in tasks
        ]
        self.models: list[L1Svm] = []
        self.weights = np.zeros((len(self.programs), problem.n_features))
        self.unit = max(float(np.abs(y - y.mean()).max()) for _, y in tasks) if epsilon is not None else 1.0
        self.visited: list[_Step] = []
        self.gradient = np.zeros(problem.n_features)
        self.converged = True

    def solve(self, C: float) -> int:
        """Solve for C; returns the number of features with a weight."""
        for program, rows in zip(self.programs, self.rows, strict=True):
            program.set_cost(self._costs(C, rows))
        self.models = [program.solve() for program in self.programs]
        self.converged &= all(model.converged for model in self.models)
        self.gradient = np.max([np.abs(model.gradient) for model in self.models], axis=0)[self.position]
        self.weights = np.zeros_like(self.weights)
        self.weights[:, self.distinct] = [model.weights for model in self.models]
        self._drop_rounding()
        total = np.abs(self.weights).sum(axis=0)
        support = np.flatnonzero(total)
        self.visited.append(_Step(float(C), support, np.abs(self.weights[:, support])))
        return int(support.size)

    def _costs(self, C: float, rows: IntArray | None) -> float | FloatArray:
        costs = self.problem.sample_costs(C)
        return costs if rows is None or isinstance(costs, float) else costs[rows]

    def _drop_rounding(self) -> None:
        """Set weights to zero that are rounding errors relative to the largest weight, or in the decision values."""
        total = np.abs(self.weights).sum(axis=0)
        self.weights[:, total <= ZERO_WEIGHT * total.max(initial=0.0)] = 0.0
        support = np.flatnonzero(self.weights.any(axis=0))
        if support.size:
            decided = self.problem.design.block(support) @ self.weights[:, support].T
            self.weights[np.abs(decided).max(axis=0) <= ZERO_WEIGHT * self.unit] = 0.0

    @property
    def bias(self) -> FloatArray:
        return np.asarray([model.bias for model in self.models])

    @property
    def last_support(self) -> IntArray:
        return self.visited[-1].support

    @property
    def without_slack(self) -> bool:
        """Whether all samples meet their margin, so that a larger C would change nothing."""
        return all(float(model.slack.max(initial=0.0)) <= NO_SLACK for model in self.models)

    def grow_to(self, size: int, costs: FloatArray) -> None:
        """Solve for larger C until ``size`` features have a weight, in small steps, since large solutions are slow."""
        ratio, share = float(costs[-1] / costs[-2]), FIRST_SHARE
        C = self.visited[-1].C
        while self.last_support.size < size and not self.without_slack and costs[-1] > C:
            # Most multipliers stay at C, so gradients grow about in proportion to C; those of noise pass 1 all at once.
            while (
                share > SMALLEST_SHARE
                and np.count_nonzero(self.gradient * ratio**share >= 1.0) > FAR_MORE * size
            ):
                share *= 0.5
            C = min(C * ratio**share, float(costs[-1]))
            self.solve(C)
            share = min(1.0, 2.0 * share) if self.last_support.size else FIRST_SHARE

    def look_for_size(self, size: int) -> None:
        """Shorten the interval of C in which the number of features passes ``size`` until a C gives that number.

        The number of features is assumed to grow as a power of C; every other step halves the interval.
        """
        self.visited.sort(key=lambda step: step.C)
        sizes = [step.support.size for step in self.visited]
        larger = [i for i, found in enumerate(sizes) if found > size]
        if size in sizes or not larger or larger[0] == 0:
            return
        low, high = self.visited[larger[0] - 1].C, self.visited[larger[0]].C
        few, many = sizes[larger[0] - 1], sizes[larger[0]]
        for step in range(BISECTIONS):
            share = 0.5 if step % 2 or many <= FAR_MORE * size else _share_of_growth(few, size, many)
            trial = float(low ** (1.0 - share) * high**share)
            found = self.solve(trial)
            if found == size:
                return
            if found < size:
                low, few = trial, found
            else:
                high, many = trial, found

    def path(self, selected_size: int) -> SelectionPath:
        return path_of_entries(*self._entries(), selected_size=selected_size, **self._outcome())

    def path_in_turns(self, C: float) -> SelectionPath:
        """Path on which the models take turns; features with a weight at ``C`` come before all others."""
        steps = sorted(self.visited, key=lambda step: step.C)
        own = next(step.support for step in steps if step.C == C)
        turn = _turns(steps, self.problem.n_features)
        others = np.setdiff1d(np.arange(turn.size), own)
        turn[others] += 1.0 + turn[own].max(initial=0.0)
        turns = np.unique(turn[np.isfinite(turn)])
        supports = [np.flatnonzero(turn <= last) for last in turns]
        by_entry = entry_scores(*self._entries())
        return path_of_entries(
            supports,
            1.0 / (1.0 + np.arange(turns.size)),
            self.gradient,
            [by_entry[support] for support in supports],
            selected_size=own.size,
            **self._outcome(),
        )

    def _entries(self) -> tuple[list[IntArray], list[float], FloatArray, list[FloatArray]]:
        """Supports by growing C, their levels, scores of the features in none of them, and absolute weights."""
        steps = sorted(self.visited, key=lambda step: step.C)
        abs_weights = [step.weights.sum(axis=0) for step in steps]
        return [step.support for step in steps], [1.0 / step.C for step in steps], self.gradient, abs_weights

    def _outcome(self) -> dict[str, Any]:
        return {
            "n_iter": sum(program.n_iter for program in self.programs),
            "converged": self.converged,
            "remedy": Status.FAILED.remedy + ".",
        }


def _turns(steps: list[_Step], n_features: int) -> FloatArray:
    """Number of features that enter a model before each feature, the least over models; inf if it never enters."""
    turn = np.full(n_features, np.inf)
    for model in range(len(steps[0].weights)):
        is_new, n_entered = np.ones(n_features, dtype=bool), 0
        for step in steps:
            weight = step.weights[model]
            entering = np.flatnonzero((weight > 0.0) & is_new[step.support])
            features = step.support[entering[np.argsort(-weight[entering], kind="stable")]]
            turn[features] = np.minimum(turn[features], n_entered + np.arange(features.size))
            is_new[features] = False
            n_entered += features.size
    return turn
