"""What is fitted on every training part: a method with a fixed size, or with a size chosen inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zeronorm.workflow.building import build_selector
from zeronorm.workflow.errors import UsageProblem
from zeronorm.workflow.loading import kept_columns

if TYPE_CHECKING:
    from zeronorm.datasets import Table

LENGTH_OF_GRID = 12
DEFAULT_LARGEST = 128
CELLS_WORTH_A_PROCESS = 50_000_000
SCORING = {"classification": "balanced_accuracy", "regression": "neg_mean_squared_error"}


@dataclass(frozen=True)
class Wishes:
    """What the user asks of the selection; ``features`` None chooses the number by cross-validation."""

    features: int | None = None
    max_features: int | None = None
    cv: int = 5
    repeats: int = 1
    seed: int = 0
    jobs: int = 0
    keep: tuple[str, ...] = ()
    has_groups_file: bool = False
    verbose: bool = False

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Wishes:
        """The wishes in the arguments of a command."""
        names = ("max_features", "cv", "repeats", "seed", "jobs")
        return cls(
            features=parse_features(arguments["features"]),
            keep=tuple(arguments.get("keep") or ()),
            has_groups_file=arguments.get("feature_groups") is not None,
            verbose=bool(arguments.get("verbose")),
            **{name: arguments[name] for name in names},
        )


def parse_features(text: str) -> int | None:
    """A count, or None for "auto"."""
    if text == "auto":
        return None
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise UsageProblem(f"--features takes a count of at least 1, or auto. Got {text!r} instead.")
    return count


def sizes_to_try(table: Table, wishes: Wishes) -> list[int]:
    """Numbers of features at which the error is measured: few at first, then wider apart.

    They start where the forced features and the largest group fit, and end well above the number asked for.
    """
    import numpy as np

    p = table.n_features
    if wishes.features is not None and wishes.features > p:
        raise UsageProblem(f"--features asks for {wishes.features} of {p} features. Ask for at most {p}.")
    smallest = max(1, len(kept_columns(table, wishes.keep)))
    if table.feature_groups is not None:
        smallest = max(smallest, int(np.bincount(table.feature_groups).max()))
    if wishes.max_features is not None:
        largest = wishes.max_features
    elif wishes.features is not None:
        largest = max(4 * wishes.features, 16)
    else:
        largest = DEFAULT_LARGEST
    smallest = min(smallest, p)
    largest = min(max(largest, smallest, wishes.features or 1), p)
    grid = np.geomspace(smallest, largest, LENGTH_OF_GRID).round().astype(int)
    return sorted({int(size) for size in grid})


def build_procedure(
    name: str, table: Table, wishes: Wishes, sizes: list[int], parameters: tuple[str, ...] = ()
) -> Any:
    """The method with its size fixed, or wrapped so that the one-standard-error rule chooses the size."""
    keep = kept_columns(table, wishes.keep)
    required = [
        key for key, given in (("always_keep", keep), ("feature_groups", wishes.has_groups_file)) if given
    ]
    settings = {
        "n_features_to_select": wishes.features,
        "task": table.task,
        "feature_groups": table.feature_groups,
        "always_keep": keep or None,
        "random_state": wishes.seed,
    }
    selector = build_selector(name, table, settings, parameters, tuple(required))
    return selector if wishes.features is not None else with_chosen_size(selector, table, wishes, sizes)


def with_chosen_size(selector: Any, table: Table, wishes: Wishes, sizes: list[int]) -> Any:
    """The selector with its number of features chosen by inner cross-validation."""
    from zeronorm.registry import get_method

    return get_method("selector-cv").cls(
        selector,
        cv=wishes.cv,
        rule="one_se",
        sizes=sizes,
        scoring=SCORING[table.task],
        random_state=wishes.seed,
    )


def outer_splits(table: Table, wishes: Wishes) -> list[tuple[Any, Any]]:
    """Training and test rows of all repeats, each drawn with its own seed."""
    from zeronorm.resampling.splits import make_splits

    splits = [
        split
        for repeat in range(wishes.repeats)
        for split in make_splits(
            wishes.cv,
            table.y,
            table.sample_groups,
            classification=table.task == "classification",
            seed=wishes.seed + repeat,
        )
    ]
    return [(split.train, split.test) for split in splits]


def fit_procedure(procedure: Any, table: Table, wishes: Wishes) -> Any:
    """The procedure fitted on all samples, with its inner folds side by side."""
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    fitted = clone(procedure)
    if "n_jobs" in fitted.get_params(deep=False):
        fitted.set_params(n_jobs=n_processes(table, wishes))
    if table.sample_groups is not None and has_fit_parameter(fitted, "groups"):
        return fitted.fit(table.X, table.y, groups=table.sample_groups)
    return fitted.fit(table.X, table.y)


def n_processes(table: Table, wishes: Wishes) -> int:
    """Processes for the folds: starting them takes seconds, which only larger work repays."""
    if wishes.jobs != 0:
        return wishes.jobs
    n_fits = wishes.cv * wishes.repeats * (1 if wishes.features is not None else wishes.cv + 1)
    return -1 if n_fits * table.n_samples * table.n_features > CELLS_WORTH_A_PROCESS else 1


def evaluate_procedures(procedures: dict[str, Any], table: Table, wishes: Wishes, sizes: list[int]) -> Any:
    """Records of all procedures on the outer splits, at their own size and at the sizes of the curve."""
    from zeronorm.evaluation import evaluate

    return evaluate(
        procedures,
        table.X,
        table.y,
        cv=outer_splits(table, wishes),
        sizes=[None, *sizes],
        groups=table.sample_groups,
        task=table.task,
        n_jobs=n_processes(table, wishes),
        random_state=wishes.seed,
        verbose=wishes.verbose,
    )
