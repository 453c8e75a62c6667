"""Selection of features that rank ahead of random columns (probes)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.design import DenseDesign, Design
from zeronorm.design._joined import JoinedDesign
from zeronorm.engines._error_control import adjust_p_values
from zeronorm.registry import Registered, get_method, register
from zeronorm.selection._covariates import Covariates
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selection._sample_groups import group_codes, sizes_alike
from zeronorm.selectors._wrapping import ErrorControlSelector

MOST_DRAWS = 1000  # largest number of fits unless ``n_repeats`` is set
CORRECTIONS = {"rate": None, "fdr": "benjamini-hochberg", "fwer": "holm"}


@register(
    "probe-selector",
    kind="meta",
    family="meta",
    tasks=("binary", "multiclass", "regression", "survival"),
    reference="Stoppiglia et al. 2003; Guyon et al. 2004",
    cost="a fit of the selector on features and probes for each draw",
    oracle="its level and its p-values in simulations",
    avoid="correlated neighbours of a relevant feature that must count as false: use knockoffs",
    test_params=({}, {"selector": Registered("fisher"), "level": 0.9, "n_probes": 15, "random_state": 0}),
)
class ProbeSelector(ErrorControlSelector):
    r"""Keep the features that rank ahead of random probes.

    m columns of noise are appended to the data and the wrapped selector ranks all columns together.
    With :math:`b_j` probes ahead of feature j,

    .. math:: p_j = \frac{1 + b_j}{1 + m}

    is the probability that a column without any relation to the target does as well: such a column is
    exchangeable with the probes. Several draws of probes are pooled. A feature is kept when

    - ``control="rate"``: :math:`p_j \le` level, so that an irrelevant feature is kept with at most this
      probability (the false-selection rate),
    - ``control="fdr"``: the same for p-values adjusted by Benjamini and Hochberg,
    - ``control="fwer"``: the same for p-values adjusted by Holm.

    With ``groups`` in ``fit`` (several samples of each patient) an irrelevant feature has similar values within a
    group. A probe then has the values of a column with whole groups exchanged, and the samples within each group
    shuffled, so that it is as dependent as the column; groups exchange with those of similar size.

    It can happen that no feature passes; ``support_`` is then empty. The probes never enter ``path_``.

    Parameters
    ----------
    selector
        It must not have ``feature_groups`` or ``always_keep``. None: ``FisherScore()``, which needs no parameters; give
        ``FisherScore(task="regression")`` for a real target.
    n_features_to_select
        None: as many as ``level`` allows.
    level
        Here: the rate of false selections.
    probes
        "permuted": columns of X with their rows shuffled. "gaussian": normal noise with the mean and standard
        deviation of a column of X; not with ``groups``, since its samples are independent.
    control
        "rate" is the false-selection rate of each feature, "fdr" the false discovery rate, "fwer" the family-wise error
        rate.
    n_probes
        It refers to one draw. None: as many as there are features.
    n_repeats
        None: as many as the level needs: with m probes drawn r times no p-value is below 1/(1 + m r), and "fdr" and
        "fwer" compare it with the level divided by the number of features.
    random_state
        It also determines every ``random_state`` of the wrapped selector that is not set.

    Attributes
    ----------
    p_values_ : ndarray of shape (n_features_in_,)
        :math:`p_j` for every feature.
    n_repeats_ : int
        Number of draws of probes.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import FisherScore, ProbeSelector
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(1).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = ProbeSelector(FisherScore(), random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        selector: Any = None,
        *,
        n_features_to_select: int | float | None = None,
        level: float = 0.05,
        probes: Literal["permuted", "gaussian"] = "permuted",
        control: Literal["rate", "fdr", "fwer"] = "rate",
        n_probes: int | None = None,
        n_repeats: int | None = None,
        estimator: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.selector = selector
        self.n_features_to_select = n_features_to_select
        self.level = level
        self.probes = probes
        self.control = control
        self.n_probes = n_probes
        self.n_repeats = n_repeats
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _wrapped(self) -> Any:
        return get_method("fisher").cls() if self.selector is None else self.selector

    def _select(self, problem: Problem) -> SelectionPath:
        n_probes, n_repeats = self._draws_of_probes(problem.n_features)
        groups = problem.sample_groups
        if groups is not None and self.probes == "gaussian":
            raise parameter_error(
                self, "probes", "'permuted' with 'groups': Gaussian probes ignore the groups"
            )
        target = problem.target.labels()
        parallel = Parallel(n_jobs=self.n_jobs, return_as="generator")
        draws = (
            delayed(self._one_draw)(problem.design, target, groups, n_probes, rng, problem.adjust)
            for rng in problem.rng.spawn(n_repeats)
        )
        ahead, position = np.zeros(problem.n_features), np.zeros(problem.n_features)
        converged = True
        with problem.progress.task("Probing", n_repeats) as advance:
            for path, draw_ahead, draw_position in parallel(draws):
                ahead, position = ahead + draw_ahead, position + draw_position
                converged = converged and path.converged
                advance(1)
        self.p_values_ = (1 + ahead) / (1 + n_probes * n_repeats)
        self.n_repeats_ = n_repeats
        correction = CORRECTIONS[self.control]
        adjusted = self.p_values_ if correction is None else adjust_p_values(self.p_values_, correction)
        return SelectionPath(
            order=np.lexsort((position, self.p_values_)),
            scores=1 - self.p_values_,
            selected_size=int(np.sum(adjusted <= self.level)),
            converged=converged,
            remedy="give the wrapped selector more iterations or a looser tol.",
        )

    def _check_parameters(self) -> None:
        self._refuse_column_settings()

    def _draws_of_probes(self, n_features: int) -> tuple[int, int]:
        n_probes = n_features if self.n_probes is None else self.n_probes
        tests = 1 if CORRECTIONS[self.control] is None else n_features
        needed = int(np.ceil(tests / self.level)) - 1
        n_repeats = max(1, -(-needed // int(n_probes))) if self.n_repeats is None else self.n_repeats
        if self.n_repeats is None and n_repeats > MOST_DRAWS:
            raise ValueError(
                f"The level {self.level} with control={self.control!r} and {n_features} features needs {n_repeats} "
                f"draws of {n_probes} probes. Raise 'level' or 'n_probes', or set 'n_repeats' to allow that many fits."
            )
        if self.n_features_to_select is None and n_probes * n_repeats < needed:
            raise ValueError(
                f"{n_probes} probes drawn {n_repeats} times are too few for the level {self.level} with "
                f"control={self.control!r} and {n_features} features: no feature could pass. Use at least {needed} "
                "probes in all ('n_probes' times 'n_repeats'), or n_repeats=None."
            )
        return int(n_probes), int(n_repeats)

    def _one_draw(
        self,
        design: Design,
        target: NDArray[Any],
        groups: NDArray[Any] | None,
        n_probes: int,
        rng: np.random.Generator,
        adjust: Covariates | None,
    ) -> tuple[SelectionPath, FloatArray, FloatArray]:
        """The path on data and probes; per feature, the number of probes ahead and the position among the features."""
        p = design.n_features
        noise = draw_probes(design, n_probes, self.probes, rng, groups)
        joined = JoinedDesign(design, DenseDesign(noise))
        path, _, position = self._fit_shuffled(joined, target, rng, groups, adjust)
        ahead = np.searchsorted(np.sort(position[p:]), position[:p])
        return path, ahead.astype(np.float64), (position[:p] - ahead).astype(np.float64)


def draw_probes(
    design: Design, n_probes: int, kind: str, rng: np.random.Generator, groups: NDArray[Any] | None = None
) -> FloatArray:
    """Columns of noise that look like columns of the data; all columns are used equally often."""
    p = design.n_features
    sources = np.sort(np.concatenate([rng.permutation(p) for _ in range(-(-n_probes // p))])[:n_probes])
    noise = np.empty((design.n_samples, n_probes), order="F")
    if kind == "permuted":
        for start in range(0, n_probes, 512):
            part = sources[start : start + 512]
            values = design.block(part)
            noise[:, start : start + part.size] = (
                rng.permuted(values, axis=0) if groups is None else exchanged_groups(values, groups, rng)
            )
        return noise
    stats = design.column_stats()
    noise[...] = rng.standard_normal((design.n_samples, n_probes))
    noise *= np.sqrt(stats.variance[sources])
    noise += stats.mean[sources]
    return noise


def exchanged_groups(values: FloatArray, groups: NDArray[Any], rng: np.random.Generator) -> FloatArray:
    """Columns whose groups take the values of random groups of similar size, in random order; each column anew.

    A group takes as many values of the other group as it has samples; if that one is smaller, some of them twice.
    """
    codes = group_codes(groups)
    sizes = np.bincount(codes)
    n_groups, n_columns = len(sizes), values.shape[1]
    starts = np.cumsum(sizes) - sizes
    rows = np.argsort(codes, kind="stable")
    position = np.arange(len(codes)) - np.repeat(starts, sizes)
    # Groups sorted by class, then at random, are the donors of the groups sorted by class alone.
    alike = sizes_alike(sizes)
    shuffled = np.argsort(alike[:, None] + rng.random((n_groups, n_columns)), axis=0)
    donors = np.empty_like(shuffled)
    donors[np.argsort(alike, kind="stable")] = shuffled
    donor = np.repeat(donors, sizes, axis=0)
    within = np.argsort(
        codes[:, None] + rng.random(values.shape), axis=0
    )  # rows of each group in random order
    chosen = np.where(
        position[:, None] < sizes[donor],
        position[:, None],
        (rng.random(values.shape) * sizes[donor]).astype(np.intp),
    )
    found = np.empty_like(values)
    source = np.take_along_axis(within, starts[donor] + chosen, axis=0)
    found[rows] = np.take_along_axis(values, source, axis=0)
    return found
