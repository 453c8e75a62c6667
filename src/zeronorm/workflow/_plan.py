"""What a run will do, before it starts: the data as they will be used, the steps in sentences, and the time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from zeronorm.datasets._table import counted
from zeronorm.workflow import _chance as chance
from zeronorm.workflow import _control as control
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._inputs import check_folds, load_data
from zeronorm.workflow._options import Caller, CompareOptions

if TYPE_CHECKING:
    from zeronorm.datasets import Table

# The estimate was 1.0 to 98 times the processor time of 30 runs: five methods on tables from 1500 × 30 to 100 × 20,000,
# one core (2026-11-19).
MINUTE_S, HOUR_S, MOST_MINUTES = 60, 3600, 100
KINDS_OF_TARGET = {"survival": "a time until an event"}  # where there are no classes; others are numbers
SHORT_S = 20  # below it, a number of seconds would promise too much


@dataclass(frozen=True)
class RunPlan:
    """The steps of a run.

    Parameters
    ----------
    steps : what will be done, in sentences.
    notes : what was inferred or changed in the data.
    seconds : estimated time on one core, without compiling.
    """

    steps: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float

    @property
    def time(self) -> str:
        """The estimated time as a rough figure."""
        return rough_time(self.seconds)


def plan(data: Any, settings: Any, caller: Caller) -> RunPlan:
    """Check the options on the data as a run does, and describe the run; raises the errors of the run.

    ``settings`` are the options of one of the kinds of run.
    """
    from zeronorm._messages import rendered

    table = load_data(data, settings)
    check_folds(table, settings.cv)
    metric = procedures.metrics_of(table, settings)[0]
    names, question = _methods(table, settings)
    sizes = procedures.sizes_to_try(table, settings)
    counts = [_n_permutations(table, settings, sizes, name) for name in names]
    seconds = _seconds_of_lists(table, settings) + sum(
        chance.estimated_seconds(table, settings, sizes, name) * (1 + count)
        for name, count in zip(names, counts, strict=True)
    )
    steps = [
        _of_data(table),
        question,
        _of_folds(table, settings, metric.text),
        _of_permutations(max(counts)),
    ]
    return RunPlan(
        tuple(step for step in steps if step),
        tuple(rendered(note, caller.naming) for note in table.notes),
        seconds,
    )


def rough_time(seconds: float) -> str:
    """A time that does not promise more than the estimate can keep, which is one for hard data."""
    if seconds < SHORT_S:
        return "less than half a minute"
    number, unit = (
        (seconds / MINUTE_S, "minute") if seconds < MOST_MINUTES * MINUTE_S else (seconds / HOUR_S, "hour")
    )
    return f"at most about {counted(max(1, round(number)), unit)}, often much less"


def _methods(table: Table, settings: Any) -> tuple[list[str], str]:
    """The methods that will be fitted, and a sentence about them."""
    if isinstance(settings, CompareOptions):
        names = procedures.named_methods(settings.methods, table)
        return [*names, "random"], (
            f"{counted(len(names), 'method')} ({', '.join(names)}), random features and a prediction without any "
            "feature are compared on the same folds."
        )
    if getattr(settings, "control", None):
        chosen = control.choose_construction(training.filled(table), settings)
        level = settings.level or control.LEVELS[settings.control]
        return [chosen.method], (
            f"Features are selected so that {control.LIMITED[settings.control]} is at most {level:g}, by the method "
            f"{chosen.method}."
        )
    name = settings.method or procedures.default_method(table)
    panel = getattr(settings, "panel", None)
    if panel is not None:
        return [name], (
            f"The list of {counted(len(panel), 'feature')} is measured, beside "
            f"{counted(_n_lists(settings), 'random list')} of the same size and a list that {name} selects inside the "
            "folds."
        )
    number = "their number is chosen too" if settings.features is None else f"{settings.features} of them"
    if name == "auto":
        methods = ", ".join(procedures.candidates(table))
        return [
            name
        ], f"The most predictive features are selected, {number}. Several methods are tried: {methods}."
    return [name], f"The most predictive features are selected by the method {name}, {number}."


def _n_lists(settings: Any) -> int:
    """The number of random lists that a given list is compared with."""
    return int(getattr(settings, "random_lists", 0))


def _seconds_of_lists(table: Table, settings: Any) -> float:
    """Estimated seconds for the random lists: the predictor alone, and one pass for the columns."""
    count = _n_lists(settings)
    if count == 0:
        return 0.0
    of_one = replace(settings, features=min(len(settings.panel), table.n_features))
    return count * chance.estimated_seconds(table, of_one, [], "fisher")


def _n_permutations(table: Table, settings: Any, sizes: list[int], name: str) -> int:
    if isinstance(settings, CompareOptions) and settings.permutations == "auto":
        return 0
    return chance.permutation_count(table, settings, sizes, name)


def _of_data(table: Table) -> str:
    classes = ", ".join(f"{count} {label}" for label, count in table.class_counts.items())
    target = f" ({classes})" if classes else f" ({KINDS_OF_TARGET.get(table.task, 'a number')})"
    groups = ""
    if table.sample_groups is not None:
        n_groups = len(set(table.sample_groups.astype(str).tolist()))
        groups = f" The samples belong to {counted(n_groups, 'group')}, which stay together."
    return (
        f"{counted(table.n_samples, 'sample')} with {counted(table.n_features, 'feature')} are used to predict "
        f"{table.target_name}{target}.{groups}"
    )


def _of_folds(table: Table, settings: Any, metric: str) -> str:
    repeats = "" if settings.repeats == 1 else f", {settings.repeats} times"
    return (
        f"To measure the {metric} on samples that were not used for selection, everything is repeated in "
        f"{settings.cv} folds{repeats}: each fold of the samples is set aside once."
    )


def _of_permutations(count: int) -> str:
    if count == 0:
        return ""
    return (
        f"The whole procedure is repeated on {count} shuffled outcomes, to see what chance alone would give."
    )
