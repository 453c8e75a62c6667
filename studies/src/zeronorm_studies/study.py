"""The parts of a study: a table of data × methods × sizes, a protocol, and the published results."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold, train_test_split

from zeronorm.datasets._catalogue import find_local, load_dataset

if TYPE_CHECKING:
    from zeronorm_studies.pages import Section
    from zeronorm_studies.results import Expectation, Results

FloatArray: TypeAlias = NDArray[np.float64]


class StudyError(ValueError):
    """The error of a study that cannot be run as declared."""


@dataclass(frozen=True)
class Trial:
    """The data of one trial with its training and test rows."""

    X: Any
    y: NDArray[Any]
    train: NDArray[np.intp]
    test: NDArray[np.intp]


@dataclass(frozen=True)
class Data:
    """One data set of a study.

    Parameters
    ----------
    label : name on the result page.
    draw : the trial of a given number; the same number gives the same trial.
    n_trials : how many trials.
    independent : whether trials are independent draws; otherwise they are resplits of one sample.
    version : number to increase when ``draw`` changes, so that old journals are not used.
    """

    label: str
    draw: Callable[[int], Trial]
    n_trials: int
    independent: bool = False
    version: int = 1


@dataclass(frozen=True)
class Configuration:
    """One method with its settings and the predictor that scores its subsets.

    Parameters
    ----------
    label : name on the result page.
    method : name in the registry; None keeps all features.
    params : parameters of the method; ``"method:NAME"`` values are replaced by instances of that method.
    estimator : predictor, or the name of a registered model; None takes the study's.
    factory : makes a selector that is not in the registry, instead of ``method``.
    sizes : sizes of this configuration; None takes those of the study.
    only : labels of the data sets that this configuration runs on; None means all.
    metrics : metrics of this configuration, where it has some that others cannot have; None takes those of the plan.
    """

    label: str
    method: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    estimator: Any = None
    factory: Callable[[], Any] | None = None
    sizes: tuple[int | None, ...] | None = None
    only: tuple[str, ...] | None = None
    metrics: tuple[Any, ...] | None = None

    @property
    def keeps_all(self) -> bool:
        return self.method is None and self.factory is None


@dataclass(frozen=True)
class Plan:
    """What is computed: every configuration on every trial of every data set.

    Parameters
    ----------
    cap_s : time limit of one task in seconds; a task that exceeds it ends as a timeout.
    one_timeout_is_enough : whether, after a timeout, the further trials of this configuration on this data set count
        as timeouts too and are not computed.
    """

    data: tuple[Data, ...]
    configs: tuple[Configuration, ...]
    sizes: tuple[int | None, ...]
    estimator: Any = None
    metrics: tuple[Any, ...] = ("error_rate",)
    cap_s: float = 60.0
    one_timeout_is_enough: bool = False


@dataclass(frozen=True)
class Study:
    """A reproduction of published experiments.

    Parameters
    ----------
    source : the paper.
    about : what is reproduced, what is not known of the original, and what was chosen here.
    cost : how long the full version takes.
    full, quick : functions that make the plans; nothing is loaded before they are called.
    expectations : what was published, each with a rule that says whether it was found again.
    sections : further parts of the result page.
    """

    name: str
    title: str
    source: str
    about: str
    cost: str
    full: Callable[[], Plan]
    quick: Callable[[], Plan]
    expectations: tuple[Expectation, ...] = ()
    sections: Callable[[Results], list[Section]] | None = None


# -- The studies by name; a study is imported only when it is asked for --


NAMES: tuple[str, ...] = (
    "weston2003-linear",
    "weston2000-nonlinear",
    "huang2008-accuracy",
    "huang2008-time",
    "huang2008-dual",
    "weston2003-colon",
    "weston2003-lymphoma",
    "weston2003-yeast",
    "weston2003-polynomial",
    "lal2006-claims",
    "gadat2007-iris",
    "gadat2007-synthetic",
    "gadat2007-spam",
    "gadat2007-leukemia",
    "gadat2007-challenge",
    "gadat2007-usps",
    "gadat2007-faces",
    "guyon2003-spectra",
    "systematic",
    "defaults",
    "defaults-regression",
    "defaults-fresh",
    "defaults-fresh-regression",
    "answer",
    "answer-regression",
    "zero-norm-gap",
    "challenge-resplits",
)
# Declared, but without a page yet: a run writes it, and the name then moves up.
NOT_RUN: tuple[str, ...] = ()


# Studies that share a file, which is otherwise named after the study.
TOGETHER = {
    "weston2003-colon": ("weston2003_microarray", "COLON"),
    "weston2003-lymphoma": ("weston2003_microarray", "LYMPHOMA"),
    "defaults-regression": ("defaults", "REGRESSION"),
    "defaults-fresh": ("defaults", "FRESH_DATA"),
    "defaults-fresh-regression": ("defaults", "FRESH_REGRESSION_DATA"),
    "answer-regression": ("answer", "REGRESSION"),
}


def get_study(name: str) -> Study:
    """The study declared under ``name``."""
    if name not in (*NAMES, *NOT_RUN):
        close = difflib.get_close_matches(name, NAMES, n=3)
        hint = f"Did you mean {', '.join(close)}?" if close else "`zeronorm study --list` lists them."
        raise StudyError(f"There is no study named {name!r}. {hint}")
    file, variable = TOGETHER.get(name, (name.replace("-", "_"), "STUDY"))
    study = getattr(importlib.import_module(f"zeronorm_studies.declared.{file}"), variable)
    assert isinstance(study, Study)
    return study


def all_studies() -> list[Study]:
    """All studies, in the order of the catalogue."""
    return [get_study(name) for name in NAMES]


# -- Sources of trials: generators, resplits of one sample, folds, and published splits --


Transform = Callable[[Any], Any]
Sample = tuple[Any, NDArray[Any]]


def generated(
    label: str, make: Callable[..., Any], *, n_train: int, n_test: int, n_trials: int, **settings: Any
) -> Data:
    """Independent draws of a synthetic problem; nothing is standardised across training and test set."""

    def draw(trial: int) -> Trial:
        seed = np.random.SeedSequence([n_train, trial])
        X, y, _ = make(n_train + n_test, random_state=np.random.default_rng(seed), **settings)
        rows = np.arange(n_train + n_test)
        if np.unique(y[:n_train]).size < 2:  # a tiny training set of one class cannot be learned from
            other = n_train + int(np.flatnonzero(y[n_train:] != y[0])[0])
            rows[[0, other]] = rows[[other, 0]]
        return Trial(X[rows], y[rows], np.arange(n_train), np.arange(n_train, n_train + n_test))

    return Data(label, draw, n_trials, independent=True)


@cache
def sample_of(name: str, target: str | None = None) -> Sample:
    """Features and labels of a known data set; missing values stay NaN."""
    if find_local(name) is None:
        load_dataset(name, download=False)  # explains what to do
    path = find_local(name)
    assert path is not None
    if path.suffix != ".npz":
        table = load_dataset(name)
        return table.X, table.y
    return _archived(path, "", target)


@cache
def second_part_of(name: str) -> Sample:
    """The published validation or test set."""
    path = find_local(name)
    if path is None:
        raise StudyError(f"The data set {name!r} is not on this machine; set ZERONORM_DATA to its folder.")
    return _archived(path, "_valid", None)


def _archived(path: Any, ending: str, target: str | None) -> Sample:
    import scipy.sparse as sp

    with np.load(path, allow_pickle=False) as archive:
        if "X" in archive.files:
            X: Any = archive[f"X{ending}"].astype(np.float64)
        else:
            parts = [archive[f"{key}{ending}"] for key in ("data", "indices", "indptr", "shape")]
            X = sp.csr_matrix((parts[0].astype(np.float64), parts[1], parts[2]), shape=tuple(parts[3]))
        return X, archive[f"{target or 'y'}{ending}"]


def resplits(
    label: str,
    load: Callable[[], Sample],
    *,
    n_trials: int,
    test_size: float | int,
    stratify: bool = False,
    seed: int = 0,
) -> Data:
    """Random divisions of one sample into training and test set."""

    def draw(trial: int) -> Trial:
        X, y = load()
        train, test = train_test_split(
            np.arange(len(y)),
            test_size=test_size,
            stratify=y if stratify else None,
            random_state=seed + trial,
        )
        return filled(Trial(X, y, train, test))

    return Data(label, draw, n_trials)


def folds(
    label: str,
    load: Callable[[], Sample],
    *,
    n_folds: int,
    groups: Any = None,
    repeats: int = 1,
    seed: int = 0,
    stratified: bool = True,
) -> Data:
    """Folds, drawn anew in every repetition and stratified by class if asked; sample groups stay together."""

    def draw(trial: int) -> Trial:
        X, y = load()
        repeat, fold = divmod(trial, n_folds)
        kind = StratifiedGroupKFold if groups is not None else StratifiedKFold if stratified else KFold
        splitter = kind(n_folds, shuffle=True, random_state=seed + repeat)
        together = None if groups is None else groups()
        train, test = list(splitter.split(np.zeros(len(y)), y, together))[fold]
        return filled(Trial(X, y, train, test))

    return Data(label, draw, n_folds * repeats)


def published_split(label: str, first: Callable[[], Sample], second: Callable[[], Sample]) -> Data:
    """Training on the published training set, test on the published test set."""

    def draw(trial: int) -> Trial:
        import scipy.sparse as sp

        (X, y), (X_second, y_second) = first(), second()
        stacked = sp.vstack([X, X_second]).tocsr() if sp.issparse(X) else np.vstack([X, X_second])
        n = len(y)
        return Trial(stacked, np.concatenate([y, y_second]), np.arange(n), np.arange(n, n + len(y_second)))

    return Data(label, draw, 1)


def filled(trial: Trial) -> Trial:
    """Missing values replaced by the median of the training set."""
    X = trial.X
    if not isinstance(X, np.ndarray) or not np.isnan(X).any():
        return trial
    median = np.nanmedian(X[trial.train], axis=0)
    median = np.where(np.isnan(median), 0.0, median)
    return Trial(np.where(np.isnan(X), median, X), trial.y, trial.train, trial.test)
