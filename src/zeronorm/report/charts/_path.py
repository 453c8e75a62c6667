"""The features in the subset of each size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from zeronorm.report._cells import Grid
from zeronorm.report._chart import Chart, ReportData, Rows, Run, register_chart
from zeronorm.selection._path import SelectionPath

MOST_FEATURES = 40
MOST_SIZES = 40
LARGEST_PATH = 128


@register_chart("path", order=90)
@dataclass(frozen=True)
class PathChart(Chart):
    """Membership of the leading features over the sizes of the path; the chosen size has a border."""

    sizes: tuple[int, ...]
    names: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]
    is_nested: bool
    chosen: int | None
    title = "Path of the selection"

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        return path_figure(run.path, max(run.sizes[-1], len(run.columns)), chosen=len(run.columns))

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        figure = report_data.result.figures.get(cls.name)
        if not figure:
            return None
        names = [report_data.result.name_of(i) for i in figure["features"]]
        return cls._of(figure, names, len(report_data.result.selected) or None)

    @classmethod
    def from_path(
        cls, path: SelectionPath, *, names: Sequence[str] | None = None, largest: int = LARGEST_PATH
    ) -> Self:
        """The path of a fitted selector (``selector.path_``) up to ``largest`` features."""
        figure = path_figure(path, largest)
        if figure is None:
            raise ValueError("The path has fewer than two sizes, so there is nothing to draw.")
        shown = [str(i) if names is None else str(names[i]) for i in figure["features"]]
        return cls._of(figure, shown, None)

    @classmethod
    def _of(cls, figure: dict[str, Any], names: list[str], chosen: int | None) -> Self:
        members = tuple(tuple(row) for row in figure["members"])
        return cls(tuple(figure["sizes"]), tuple(names), members, figure["is_nested"], chosen)

    @property
    def caption(self) -> str:
        nested = (
            "Every subset contains the smaller ones."
            if self.is_nested
            else "The path is not nested: a larger subset may lack features of a smaller one."
        )
        chosen = f" The border marks the chosen size, {self.chosen}." if self.chosen in self.sizes else ""
        start = "The leading features of the method, and the sizes at which they are in the subset."
        return f"{start} {nested}{chosen}"

    def picture(self) -> Grid:
        marked = self.sizes.index(self.chosen) if self.chosen in self.sizes else None
        step = max(1, len(self.sizes) // 10)
        ticks = set(range(0, len(self.sizes), step))
        if marked is not None:
            ticks = {i for i in ticks if abs(i - marked) >= step} | {marked}
        return Grid(
            rows=list(self.names),
            columns=[f"{size} features" for size in self.sizes],
            levels=[
                [2 * m if size == self.chosen else m for m, size in zip(row, self.sizes, strict=True)]
                for row in self.members
            ],
            palette="m",
            texts=["not in the subset", "in the subset", "in the final set"],
            column_ticks=[(i, str(self.sizes[i])) for i in sorted(ticks)],
            x_label="number of features",
            marked=marked,
        )

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = []
        for name, row in zip(self.names, self.members, strict=True):
            first = next((size for member, size in zip(row, self.sizes, strict=True) if member), "–")
            rows.append([name, str(first)])
        return ("feature", "smallest size with this feature"), rows

    def legend(self) -> list[tuple[str, str]]:
        return [("m1", "in the subset"), ("m2", "at the chosen size")]


def path_figure(path: SelectionPath, largest: int, chosen: int | None = None) -> dict[str, Any] | None:
    """Membership of the leading features over the sizes up to ``largest``, the chosen size among them."""
    sizes = _sizes(path, largest, chosen)
    if len(sizes) < 2:
        return None
    subsets = {size: set(path.support(size).tolist()) for size in sizes}
    ever = set().union(*subsets.values())
    features = [int(index) for index in path.order if index in ever][:MOST_FEATURES]
    return {
        "sizes": sizes,
        "features": features,
        "members": [[int(index in subsets[size]) for size in sizes] for index in features],
        "is_nested": path.is_nested,
    }


def _sizes(path: SelectionPath, largest: int, chosen: int | None) -> list[int]:
    """Up to 40 sizes of the path, evenly spaced on a logarithmic scale, and the chosen one."""
    smallest = int(path.sizes[0]) if path.sizes.size and path.groups is not None else 1
    smallest = max(smallest, int(path.always_keep.size), 1)
    largest = min(max(largest, smallest), path.n_features)
    if largest - smallest < MOST_SIZES:
        grid = np.arange(smallest, largest + 1)
    else:
        grid = np.geomspace(smallest, largest, MOST_SIZES).round().astype(int)
    extra = {chosen} if chosen is not None and smallest <= chosen <= largest else set()
    return sorted({int(size) for size in grid} | extra)
