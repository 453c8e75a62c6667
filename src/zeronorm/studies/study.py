"""What a study is: a table of data × methods × sizes, a protocol, and what was published about it."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from zeronorm._types import IntArray

if TYPE_CHECKING:
    from zeronorm.studies.expectations import Expectation
    from zeronorm.studies.pages import Section
    from zeronorm.studies.results import Results


class StudyError(ValueError):
    """A study that cannot be run as it is declared."""


@dataclass(frozen=True)
class Trial:
    """The data of one trial with its training and test rows."""

    X: Any
    y: NDArray[Any]
    train: IntArray
    test: IntArray


@dataclass(frozen=True)
class Data:
    """One data set of a study.

    Parameters
    ----------
    label : name on the result page.
    draw : the trial of a given number; the same number gives the same trial.
    n_trials : how many trials.
    independent : whether trials are independent draws; otherwise they are resplits of one sample.
    version : changes when ``draw`` changes its meaning, so that old journals are not used.
    """

    label: str
    draw: Callable[[int], Trial]
    n_trials: int
    independent: bool = False
    version: int = 1


@dataclass(frozen=True)
class Arm:
    """One method with its settings and the predictor that judges its subsets.

    Parameters
    ----------
    label : name on the result page.
    method : name in the registry; None keeps all features.
    params : parameters of the method; ``"method:NAME"`` values are replaced by instances of that method.
    estimator : predictor, or the name of a registered model; None takes the study's.
    factory : makes a selector that is not in the registry, instead of ``method``.
    sizes : sizes of this arm; None takes the study's.
    only : labels of the data sets this arm runs on; None means all.
    metrics : measures of this arm, when it has some that others cannot have; None takes the plan's.
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
    """What is computed: every arm on every trial of every data set.

    Parameters
    ----------
    cap_s : largest time of one cell; a cell that exceeds it ends as a timeout.
    one_timeout_is_enough : after a timeout, the further trials of this arm on this data set count as timeouts
        too and are not tried.
    """

    data: tuple[Data, ...]
    arms: tuple[Arm, ...]
    sizes: tuple[int | None, ...]
    estimator: Any = None
    metrics: tuple[Any, ...] = ("error_rate",)
    cap_s: float = 60.0
    one_timeout_is_enough: bool = False


@dataclass(frozen=True)
class Study:
    """A reproduction.

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
)


# Studies that share a file, which is otherwise named after the study.
TOGETHER = {
    "weston2003-colon": ("weston2003_microarray", "COLON"),
    "weston2003-lymphoma": ("weston2003_microarray", "LYMPHOMA"),
}


def get_study(name: str) -> Study:
    """The study declared under ``name``."""
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, n=3)
        hint = f"Did you mean {', '.join(close)}?" if close else "`zeronorm study --list` lists them."
        raise StudyError(f"There is no study named {name!r}. {hint}")
    file, variable = TOGETHER.get(name, (name.replace("-", "_"), "STUDY"))
    study = getattr(importlib.import_module(f"zeronorm.studies.declared.{file}"), variable)
    assert isinstance(study, Study)
    return study


def all_studies() -> list[Study]:
    """All studies, in the order of the catalogue."""
    return [get_study(name) for name in NAMES]
