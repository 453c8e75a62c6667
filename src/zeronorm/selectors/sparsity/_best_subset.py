"""The best subset of each size, with a proof of how good it is."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.special import gammaln

from zeronorm._types import FloatArray, IntArray
from zeronorm.engines._cost import known_cost
from zeronorm.engines._sparse_paths import entry_scores, first_copies
from zeronorm.engines.certificates._bounds import Objective
from zeronorm.engines.certificates._branching import SubsetProof
from zeronorm.engines.certificates._certificate import Certificate, all_subsets, certificate_of
from zeronorm.engines.certificates._conjugates import dual_loss
from zeronorm.engines.certificates._gap import automatic_cost
from zeronorm.engines.certificates._proof import Limits, Proof, ProofStatus
from zeronorm.engines.certificates._refit import refit, trained
from zeronorm.engines.certificates._relaxation import Relaxation, Start
from zeronorm.engines.logistic_exchanges._splicing import best_subsets
from zeronorm.engines.logistic_exchanges._subsets import LogisticSubsets
from zeronorm.execution import one_thread_for_products
from zeronorm.registry import register
from zeronorm.selection._kinds import POSITIVE, exceptions, parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, warn_of_empty_selection
from zeronorm.selectors._base import WeightedSelector

LARGEST_SIZE = 10  # searched for, unless the user asks for more
SHARE_OF_REQUESTED = 0.6  # of the time, for the size that was asked for
NODES_OF_OTHERS = 50  # for each of the other sizes
_NOTHING = np.empty(0, dtype=np.intp)


@register(
    "best-subset",
    family="sparsity",
    tasks=("binary", "multiclass", "regression"),
    reference="Bertsimas & Van Parys 2020; Bertsimas, Pauphilet & Van Parys 2021; Hazimeh, Mazumder & Saab 2022",
    papers={
        "Bertsimas & Van Parys 2020": (
            "D. Bertsimas, B. Van Parys. Sparse high-dimensional regression: exact scalable algorithms and phase "
            "transitions. Annals of Statistics 48(1), 300–323, 2020.",
            "10.1214/18-AOS1804",
        ),
        "Bertsimas, Pauphilet & Van Parys 2021": (
            "D. Bertsimas, J. Pauphilet, B. Van Parys. Sparse classification: a scalable discrete optimization "
            "perspective. Machine Learning 110, 3177–3209, 2021.",
            "10.1007/s10994-021-06085-5",
        ),
        "Hazimeh, Mazumder & Saab 2022": (
            "H. Hazimeh, R. Mazumder, A. Saab. Sparse regression at scale: branch-and-bound rooted in first-order "
            "optimization. Mathematical Programming 196, 347–388, 2022.",
            "10.1007/s10107-021-01712-4",
        ),
    },
    cost="n p for each of 5 to 20 passes per size, and m² n for each node of the search, m columns in use",
    oracle="exhaustive search of all subsets of up to 20 features",
    avoid="a proof with few samples or a large C: the gap stays large; a list that must be stable",
    test_params=({"max_features": 3},),
)
class BestSubset(WeightedSelector):
    r"""Best subset of each size, with a lower bound that proves how far it is from the optimum.

    For every size k up to the requested one it looks for

    .. math:: \min_{w, b}\ \tfrac12 \|w\|^2 + C \sum_i s_i L(w \cdot x_i + b, y_i)
              \quad \text{subject to} \quad \|w\|_0 \le k.

    Every vector α that sums to zero gives a lower bound for all subsets at once,

    .. math:: D(\alpha) - \tfrac12 \sum_{j=1}^{k} q_{(j)}, \qquad q_j = (x_j^\top \alpha)^2,

    with the k largest :math:`q_j`. Its maximum over α is the optimum of the convex relaxation in which the indicators
    of the features are between 0 and 1. From there branch and bound continues: a feature is required in one half of the
    subsets and excluded from the other. Features that no better subset can hold are dropped (safe screening).

    The result states what is proved: "optimal" only if no subset of this size has an objective that is smaller by more
    than 10⁻⁶ of it; otherwise the gap. When the time or the number of nodes is used up, the best subset and the best
    bound so far are returned, with a warning.

    With many samples for the number of features, proofs take seconds; with few samples, or a large C, the
    relaxation is loose and the gap remains large, whatever the time. A smaller C closes it.

    Several classes have one model for each class against the rest, all with the same features; their objectives are
    summed.

    Parameters
    ----------
    n_features_to_select
        None: the size up to ``max_features`` with the smallest extended Bayesian information criterion.
    loss
        "auto": "logistic" for classes, "squared_error" for real numbers. With classes, "squared_error" is least squares
        on targets of -1 and 1.
    C
        "auto": 10 divided by the number of samples (the sum of their weights), which shrinks the weight of one feature
        by about a tenth in least squares.
    max_weight
        None: no bound. With a bound the best of the models that keep it is sought, and proved much sooner; with several
        classes it bounds the root of the sum of their squares, with feature groups that of their mean over the group.
    gap_tol
        0: the search of a size ends only at the optimum.
    time_limit
        Most of it is for the requested size; other sizes have at most 50 nodes each.
    warm_start
        Continue the searches of the last ``fit``, which must have had the same data, loss and C; ``max_nodes`` includes
        the nodes of the last one.
    max_features
        All other features follow by their single effects. None: ``n_features_to_select``, else 10.

    Attributes
    ----------
    certificates_ : dict of int to Certificate
        What is proved for each size.
    status_ : {"optimal", "gap", "limit"}
        How the search of the selected size ended.
    gap_ : float
        How much smaller the objective of another subset of the selected size can be, relative to that of this one.
    C_ : float
        The ``C`` that was used.
    interrupted_ : bool
        Whether Ctrl-C ended the search; what was found until then is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import BestSubset
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = BestSubset(2, time_limit=20).fit(X, y)
    >>> selector.get_support(indices=True).tolist(), selector.status_
    ([0, 1], 'optimal')
    """

    _parameter_exceptions = exceptions(C=(POSITIVE, "without the ridge there is no lower bound"))

    certificates_: dict[int, Certificate]
    C_: float
    interrupted_: bool

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        loss: Literal["auto", "squared_error", "hinge", "squared_hinge", "logistic"] = "auto",
        C: float | Literal["auto"] = "auto",
        max_weight: float | None = None,
        task: Literal["classification", "regression"] = "classification",
        gap_tol: float = 0.0,
        time_limit: float = 60.0,
        max_nodes: int = 100_000,
        max_features: int | None = None,
        warm_start: bool = False,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.loss = loss
        self.C = C
        self.max_weight = max_weight
        self.task = task
        self.gap_tol = gap_tol
        self.time_limit = time_limit
        self.max_nodes = max_nodes
        self.max_features = max_features
        self.warm_start = warm_start
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.verbose = verbose

    def _certified_loss(self) -> str:
        if self.loss != "auto":
            return self.loss
        return "squared_error" if self.task == "regression" else "logistic"

    @property
    def status_(self) -> str:
        """How the search of the selected size ended."""
        return self._certificate().status

    @property
    def gap_(self) -> float:
        """How much smaller the objective of another subset of the selected size can be."""
        return self._certificate().gap

    def _certificate(self) -> Certificate:
        chosen = np.flatnonzero(self._get_support_mask())
        holding = [c for c in self.certificates_.values() if np.array_equal(c.support, chosen)]
        return holding[-1]

    def _check_parameters(self) -> None:
        if self.task == "regression" and self.loss not in ("auto", "squared_error"):
            raise parameter_error(self, "loss", "'auto' or 'squared_error' with task='regression'")

    def _select(self, problem: Problem) -> SelectionPath:
        weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
        known = known_cost(self, problem)
        self.C_ = automatic_cost(float(weight.sum())) if known is None else known
        objective = Objective(
            problem.design,
            problem.around_zero().target.columns(),
            self.C_ * weight,
            dual_loss(self._certified_loss()),
            self.max_weight or np.inf,
        )
        # The matrices are small: one thread is faster than several, and gives the same rounding everywhere.
        with one_thread_for_products():
            search = _PathSearch(self, problem, objective)
            proofs = search.run(
                self.certificates_ if self.warm_start and hasattr(self, "certificates_") else {}
            )
            self.interrupted_ = any(proof.was_interrupted for proof in proofs.values())
            if problem.feature_groups is None:
                proofs = _with_first_copies(problem, search.relaxation, proofs)
            alone = objective.squared_products(objective.balanced(search.empty.alpha))
        self.certificates_ = {
            size: certificate_of(
                proof, objective, proof.best.columns, proof.best.objective, self._certified_loss(), self.C_
            )
            for size, proof in proofs.items()
        }
        return self._path(problem, objective, proofs, alone)

    def _path(
        self, problem: Problem, objective: Objective, proofs: dict[int, Proof], alone: FloatArray
    ) -> SelectionPath:
        """The subsets as a path; ``alone`` orders the other features by their single effects."""
        found = [proof for proof in proofs.values() if proof.best.columns.size]
        if not found:
            warn_of_empty_selection(self, problem, "raise C")
            return SelectionPath.from_scores(alone, selected_size=0)
        best = [proof.best for proof in found]
        supports = [fit.columns for fit in best]
        scores = entry_scores(supports, [1.0 / fit.columns.size for fit in best], alone)
        criterion = [_extended_bic(objective, proof, problem.n_features) for proof in found]
        wanted = problem.n_features_to_select
        decisive = [p for p in found if p.candidates.size == wanted] or [found[int(np.argmin(criterion))]]
        return SelectionPath.from_subsets(
            supports,
            n_features=problem.n_features,
            tie_break=scores,
            scores=scores,
            objective=np.asarray([fit.objective for fit in best]),
            selected_size=int(best[int(np.argmin(criterion))].columns.size),
            n_iter=sum(proof.n_nodes for proof in found) + 1,
            converged=decisive[0].status is not ProofStatus.LIMIT,
            remedy=f"the gap is {100.0 * decisive[0].gap:.1f} %; raise time_limit or max_nodes, or lower C.",
        )


class _PathSearch:
    """The search for all sizes of one fit: the requested size first, then the others while there is time."""

    def __init__(self, owner: BestSubset, problem: Problem, objective: Objective) -> None:
        self.owner, self.problem, self.objective = owner, problem, objective
        forced = problem.always_keep
        self.everything = all_subsets(objective, problem.feature_groups, problem.n_features, forced)
        self.relaxation = Relaxation(objective, self.everything.units)
        self.begun = time.monotonic()
        self.empty = refit(objective, _NOTHING)

    def run(self, earlier: dict[int, Certificate]) -> dict[int, Proof]:
        """The proof for each size, ascending; ``earlier`` ones are continued. After Ctrl-C, of the sizes so far."""
        sizes = self._sizes()
        wanted = self.problem.n_features_to_select
        order = sorted(sizes, key=lambda k: (k != wanted, -k))
        seeds = self._seeds(sizes[-1])
        proofs: dict[int, Proof] = {}
        with self.problem.progress.task("Best subsets", len(sizes)) as advance:
            for done, k in enumerate(order):
                near = min(proofs, key=lambda size: abs(size - k), default=None)
                proofs[k] = self._one_size(k, len(order) - done, seeds, proofs.get(near or 0), earlier.get(k))
                advance(1, f"{k} features: gap {100.0 * proofs[k].gap:.1f} %")
                if proofs[k].was_interrupted:
                    break
        return dict(sorted(proofs.items()))

    def _sizes(self) -> list[int]:
        owner, p = self.owner, self.problem.n_features
        wanted = self.problem.n_features_to_select
        largest = owner.max_features or wanted or LARGEST_SIZE
        inside = self.everything.inside
        unit_sizes = self.everything.units.sizes
        least = int(unit_sizes[inside].sum()) or int(unit_sizes.min())
        sizes = range(least, max(least, min(max(largest, wanted or 0), p)) + 1)
        return list(sizes)

    def _one_size(
        self, k: int, n_left: int, seeds: list[IntArray], near: Proof | None, earlier: Certificate | None
    ) -> Proof:
        left = self.begun + self.owner.time_limit - time.monotonic()
        share = SHARE_OF_REQUESTED if k == self.problem.n_features_to_select and n_left > 1 else 1.0 / n_left
        is_other = self.problem.n_features_to_select not in (None, k)
        nodes = min(self.owner.max_nodes, NODES_OF_OTHERS) if is_other else self.owner.max_nodes
        limits = Limits.within(max(share * left, 0.0), gap=self.owner.gap_tol, nodes=nodes)
        units = self.everything.units
        candidates = all_subsets(self.objective, self.problem.feature_groups, k, self.problem.always_keep)
        self.relaxation.begin(limits.is_over)
        search = SubsetProof(self.objective, units, candidates, limits, self.relaxation)
        state = None
        if earlier is not None:
            state = earlier.state_for(self.objective, k, self.owner._certified_loss(), self.owner.C_)
        start = (
            self.relaxation.first_start(search.candidates, self.empty.bias)
            if near is None
            else Start.at(near.root)
        )
        fitting = [np.unique(units.code[s]) for s in seeds]
        if near is not None:
            fitting.append(search.rounded(search.candidates, _first(near, units.sizes.size)))
        return search.run(start, [u for u in fitting if units.sizes[u].sum() <= k], state=state)

    def _seeds(self, largest: int) -> list[IntArray]:
        """Best subsets for the logistic loss, found by exchanges: good subsets for every loss of classes."""
        problem, weight = self.problem, self.objective.cost / self.owner.C_
        if not problem.target.has_classes or problem.feature_groups is not None:
            return []
        model = LogisticSubsets(problem.design, problem.target.columns(), weight, 1.0 / self.owner.C_)
        stats = problem.design.column_stats(sample_weight=problem.sample_weight)
        usable = ~stats.is_constant(problem.design.dtype)
        usable[problem.always_keep] = False
        variance = np.where(usable, stats.variance, 1.0)
        search = best_subsets(model, np.flatnonzero(usable), problem.always_keep, variance)
        fits, _ = search.run(largest, lambda *_: None)
        return [fit.columns for fit in fits]


def _with_first_copies(
    problem: Problem, relaxation: Relaxation, proofs: dict[int, Proof]
) -> dict[int, Proof]:
    """The same proofs, with the first of equal columns in each subset; objectives do not change."""
    first = first_copies(problem.design)
    is_copied = np.bincount(first, minlength=first.size) > 1
    changed = {}
    for size, proof in proofs.items():
        columns = proof.best.columns
        copied = np.setdiff1d(columns[is_copied[first[columns]]], problem.always_keep)
        kept = np.setdiff1d(columns, copied)
        chosen = [kept]
        for code, count in zip(*np.unique(first[copied], return_counts=True), strict=True):
            chosen.append(np.setdiff1d(np.flatnonzero(first == code), kept)[:count])
        columns = np.sort(np.concatenate(chosen))
        same = np.array_equal(columns, proof.best.columns)
        changed[size] = proof if same else replace(proof, best=trained(relaxation, columns))
    return changed


def _first(proof: Proof, n_units: int) -> FloatArray:
    """A value per unit that puts those of the best subset first."""
    value = np.zeros(n_units)
    value[proof.root.units] = proof.root.z
    value[np.unique(proof.candidates.units.code[proof.best.columns])] += 1.0
    return value


def _extended_bic(objective: Objective, proof: Proof, n_features: int) -> float:
    """Extended BIC: twice the loss, log n per weight, and twice the log number of subsets of this size."""
    fit = proof.best
    k, n_models = fit.columns.size, objective.targets.shape[1]
    total = float(len(objective.targets))
    loss = fit.objective - 0.5 * float(np.sum(fit.weights**2))
    mean = loss / float(objective.cost.sum())
    n_subsets = gammaln(n_features + 1) - gammaln(k + 1) - gammaln(n_features - k + 1)
    likelihood = total * np.log(max(mean, 1e-300)) if objective.loss.is_free else 2.0 * total * mean
    return float(likelihood + k * n_models * np.log(total) + 2.0 * n_subsets)
