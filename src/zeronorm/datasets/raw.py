"""What every reader of a file format returns, before it is known which column is what, and the list of readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Texts that stand for a missing value.
MISSING_TEXTS = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "#N/A")


@dataclass(frozen=True)
class RawTable:
    """A table as it stands in a file.

    Parameters
    ----------
    names : all column names in the order of the file; names may repeat.
    values : the numeric columns, dense or sparse; NaN marks a missing value.
    positions : place in ``names`` of each column of ``values``.
    texts : the other columns by their place in ``names``; None marks a missing value.
    targets : candidate targets that the format keeps apart from the columns, by name.
    default_target : the one of ``targets`` that is used when none is asked for.
    sample_ids : names of the rows, where the format has them.
    notes : what the reader decided, in words.
    """

    names: Sequence[str]
    values: Any
    positions: NDArray[np.intp]
    texts: Mapping[int, Sequence[str | None]] = field(default_factory=dict)
    targets: dict[str, NDArray[Any]] = field(default_factory=dict)
    default_target: str | None = None
    sample_ids: Sequence[str] | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_samples(self) -> int:
        if self.texts and self.values.shape[1] == 0:
            return len(next(iter(self.texts.values())))
        return int(self.values.shape[0])

    @classmethod
    def from_matrix(cls, X: Any, names: Sequence[str] | None = None, **fields: Any) -> RawTable:
        """A table whose columns are all numeric; columns without names are called x1, x2, …"""
        columns = X.shape[1]
        if names is None:
            names = [f"x{i}" for i in range(1, columns + 1)]
        return cls(names=names, values=as_float(X), positions=np.arange(columns), **fields)

    def without(self, positions: Iterable[int]) -> RawTable:
        """The table without the columns at these places; the other columns keep their places."""
        left_out = set(positions)
        if not left_out:
            return self
        kept = ~np.isin(self.positions, list(left_out))
        values = self.values if kept.all() else self.values[:, np.flatnonzero(kept)]
        texts = {place: cells for place, cells in self.texts.items() if place not in left_out}
        return replace(self, values=values, positions=self.positions[kept], texts=texts)

    def rows(self, keep: NDArray[np.bool_]) -> RawTable:
        """The table of the marked rows."""
        index = np.flatnonzero(keep).tolist()
        texts = {place: [cells[i] for i in index] for place, cells in self.texts.items()}
        ids = None if self.sample_ids is None else [self.sample_ids[i] for i in index]
        targets = {name: target[index] for name, target in self.targets.items()}
        return replace(self, values=self.values[index], texts=texts, sample_ids=ids, targets=targets)

    def column(self, position: int) -> NDArray[Any]:
        """One column: floats, or an object array of texts."""
        if position in self.texts:
            return np.asarray(self.texts[position], dtype=object)
        place = int(np.flatnonzero(self.positions == position)[0])
        values = self.values[:, [place]]
        dense = values.toarray() if hasattr(values, "toarray") else values
        return np.asarray(dense, dtype=np.float64).ravel()

    def numeric_names(self) -> list[str]:
        """Names of the columns of ``values``."""
        return [self.names[place] for place in self.positions]


def as_float(X: Any) -> Any:
    """``X`` in float32 where that holds every value (small integers, booleans, float32), else float64."""
    if X.dtype in (np.float32, np.float64):
        return X
    exact = X.dtype.kind == "b" or (X.dtype.kind in "iu" and X.dtype.itemsize <= 2) or X.dtype == np.float16
    return X.astype(np.float32 if exact else np.float64)


# -- The readers of file formats, by the ending of the name --


@dataclass(frozen=True)
class Reader:
    """A function that reads one format, and the names of the options that it takes."""

    read: Callable[..., RawTable]
    takes: tuple[str, ...] = ()


READERS: dict[str, Reader] = {}


def reader(
    *endings: str, takes: Sequence[str] = ()
) -> Callable[[Callable[..., RawTable]], Callable[..., RawTable]]:
    """Decorator: the function reads files whose names end so. ``takes`` lists its options of ``read_raw``."""

    def enter(read: Callable[..., RawTable]) -> Callable[..., RawTable]:
        READERS.update(dict.fromkeys(endings, Reader(read, tuple(takes))))
        return read

    return enter
