"""McNemar score matrices as tables: ours alone, and side by side with published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm.evaluation.significance import ScoreMatrix, score_matrix
from zeronorm.studies.expectations import Judged
from zeronorm.studies.page import Table
from zeronorm.studies.results import NotMeasured, Results

Cell = tuple[str, int | None]
"""Label of the arm and the size asked of it."""


@dataclass(frozen=True)
class PublishedMatrix:
    """A printed matrix: method codes in their order, and the upper triangle row by row."""

    codes: tuple[str, ...]
    upper: tuple[tuple[int, ...], ...]

    def score(self, row: str, column: str) -> int:
        """Score of one method against another."""
        i, j = self.codes.index(row), self.codes.index(column)
        return self.upper[i][j - i - 1] if i < j else -self.upper[j][i - j - 1]


def measured_matrix(results: Results, data: str, cells: Mapping[str, Cell]) -> ScoreMatrix:
    """The matrix of the methods that were measured in every fold; NotMeasured with less than two."""
    truth: list[Any] = []
    predictions: dict[str, list[Any]] = {}
    for code, (arm, size) in cells.items():
        try:
            rows = results.rows_of(data, arm, size)
        except NotMeasured:
            continue
        if all(row.get("predictions") is not None for row in rows):
            truth = [row["truth"] for row in rows]
            predictions[code] = [row["predictions"] for row in rows]
    if len(predictions) < 2:
        raise NotMeasured(f"fewer than two of the methods have predictions on {data}")
    return score_matrix(truth, predictions)


def matrix_table(
    found: ScoreMatrix, order: Sequence[str] | None = None, published: PublishedMatrix | None = None
) -> Table:
    """Scores with errors in per cent on the diagonal, by error unless an order is given.

    With a published matrix each score is followed by the published one in brackets.
    """
    place = {code: i for i, code in enumerate(found.methods)}
    by_error = [found.methods[i] for i in np.argsort(found.error_rates, kind="stable")]
    codes = by_error if order is None else [code for code in order if code in place]
    lines = []
    for number, row in enumerate(codes, start=1):
        cells = [_cell(found, place, row, column, published) for column in codes]
        lines.append((f"{number}. {row}", *cells))
    return Table(("method", *(str(number) for number in range(1, len(codes) + 1))), tuple(lines))


def _cell(
    found: ScoreMatrix, place: dict[str, int], row: str, column: str, published: PublishedMatrix | None
) -> str:
    if row == column:
        return f"{100 * found.error_rates[place[row]]:.2f}"
    ours = str(found.scores[place[row], place[column]])
    return ours if published is None else f"{ours} ({published.score(row, column)})"


def same_directions(
    data: str, cells: Mapping[str, Cell], published: PublishedMatrix, share: float
) -> Callable[[Results], Judged]:
    """At most ``share`` of the pairs that differ in the paper differ in the other direction here."""

    def check(results: Results) -> Judged:
        found = measured_matrix(results, data, cells)
        place = {code: i for i, code in enumerate(found.methods)}
        same, opposite, total = 0, 0, 0
        for i, row in enumerate(found.methods):
            for column in found.methods[i + 1 :]:
                expected = published.score(row, column)
                if expected:
                    product = expected * int(found.scores[place[row], place[column]])
                    same, opposite, total = same + (product > 0), opposite + (product < 0), total + 1
        shown = f"of {total} pairs {same} in the same direction, {opposite} in the opposite one"
        return Judged(f"{shown}, {total - same - opposite} not told apart", opposite <= share * total)

    return check
