"""The DATA argument and its options to a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zeronorm.workflow.errors import UsageProblem

if TYPE_CHECKING:
    from zeronorm.datasets import Table


@dataclass(frozen=True)
class DataRequest:
    """Where the data are and what the user says about them."""

    data: str
    target: str | None = None
    task: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    missing: str = "error"
    transpose: bool = False
    delimiter: str | None = None
    decimal_comma: bool = False
    sample_groups: str | None = None
    feature_groups: Path | None = None
    seed: int = 0

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> DataRequest:
        """The request in the arguments of a command."""
        given = {field.name: arguments[field.name] for field in fields(cls) if field.name in arguments}
        for name in ("ignore", "categorical"):
            given[name] = tuple(given[name] or ())
        for name in ("task", "missing"):  # choices of the parser
            given[name] = given[name] and str(given[name])
        return cls(**given)


def load_table(request: DataRequest) -> Table:
    """Read a file, or load a data set by name when there is no such file."""
    from zeronorm.datasets import known_names, load_dataset, read_feature_groups, read_table

    options: dict[str, Any] = {
        "target": request.target,
        "task": request.task,
        "ignore": request.ignore,
        "categorical": request.categorical,
        "missing": request.missing,
        "sample_groups": request.sample_groups,
    }
    path = Path(request.data)
    if not path.exists() and request.data in known_names():
        table = load_dataset(request.data, random_state=request.seed, **options)
    else:
        table = read_table(
            path,
            delimiter=request.delimiter,
            decimal_comma=request.decimal_comma,
            transpose=request.transpose,
            **options,
        )
    if request.feature_groups is not None:
        table = replace(table, feature_groups=read_feature_groups(request.feature_groups, table))
    return table


def check_folds(table: Table, n_folds: int) -> None:
    """Every fold needs every class, and every group of samples a fold."""
    import numpy as np

    if table.task == "classification":
        rarest, count = min(table.class_counts.items(), key=lambda pair: pair[1])
        if count < n_folds:
            raise UsageProblem(
                f"The class {rarest!r} has {count} samples, too few for --cv {n_folds}. Pass --cv {max(2, count)} "
                "or fewer, or add samples."
            )
    elif table.n_samples < 2 * n_folds:
        raise UsageProblem(
            f"{table.n_samples} samples are too few for --cv {n_folds}. Pass a smaller --cv or add samples."
        )
    if table.sample_groups is not None:
        n_groups = len(np.unique(table.sample_groups.astype(str)))
        if n_groups < n_folds:
            raise UsageProblem(
                f"--sample-groups has {n_groups} groups, too few for --cv {n_folds}. Pass --cv {n_groups} or fewer."
            )


def kept_columns(table: Table, names: tuple[str, ...]) -> list[int]:
    """Features that must be selected, from the names of columns (all levels of a text column)."""
    import numpy as np

    kept: list[int] = []
    for name in names:
        exact = np.flatnonzero(table.feature_names == name)
        levels = [i for i, known in enumerate(table.feature_names) if str(known).startswith(f"{name}=")]
        found = exact.tolist() or levels
        if not found:
            raise UsageProblem(f"--keep names {name!r}, which is not a feature of the table. Check the name.")
        kept.extend(found)
    return sorted(set(kept))
