"""Tables 2 and 3 of Guyon et al. (2003) and their counterparts on the data at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm.evaluation.significance import ScoreMatrix, score_matrix
from zeronorm_studies.pages import PageTable, Section
from zeronorm_studies.results import ClaimCheck, NotMeasured, Results

PEAKS, BINNED = "peaks", "binned spectra"


@dataclass(frozen=True)
class PublishedTable:
    """Code, our configuration and published error of each method, best first, with the scores."""

    name: str
    rows: tuple[tuple[str, SizedConfiguration, float], ...]
    upper: tuple[tuple[int, ...], ...]

    @property
    def configurations(self) -> dict[str, SizedConfiguration]:
        return {code: sized for code, sized, _ in self.rows}

    @property
    def matrix(self) -> PublishedMatrix:
        return PublishedMatrix(tuple(self.configurations), self.upper)


TABLES = (
    PublishedTable(
        "Table 2, 100 features",
        (
            ("R100_RBF", ("R#_RBF", 100), 5.25),
            ("R100_K4_RBF", ("R#_K4_RBF", 100), 5.25),
            ("GS100_RBF", ("GS#_RBF", 100), 6.17),
            ("NLMU100_OM", ("NLMU#_OM", 100), 6.48),
            ("GS100_OM", ("GS#_OM", 100), 7.41),
            ("NLMU100_RBF", ("NLMU#_RBF", 100), 7.72),
            ("OMMU100_RBF", ("OMMU#_RBF", 100), 8.02),
            ("SC100_RBF", ("SC#_RBF", 100), 8.64),
            ("OMMU100_OM", ("OMMU#_OM", 100), 9.57),
            ("R100_OM", ("R#_OM", 100), 10.49),
            ("R100_K4_OM", ("R#_K4_OM", 100), 10.80),
            ("SC100_OM", ("SC#_OM", 100), 12.65),
            ("INTER100_RBF", ("INTER#_RBF", 100), 19.75),
            ("INTER100_OM", ("INTER#_OM", 100), 20.06),
        ),
        (
            (0, 0, 0, 2, 1, 1, 1, 1, 2, 2, 3, 3, 3),
            (0, 0, 1, 0, 1, 1, 2, 3, 2, 3, 3, 3),
            (0, 0, 0, 0, 0, 1, 0, 0, 1, 3, 3),
            (1, 1, 1, 1, 1, 1, 1, 2, 3, 3),
            (0, 1, 1, 1, 1, 0, 1, 3, 3),
            (0, 0, 0, 0, 0, 1, 3, 3),
            (0, 0, 0, 1, 1, 3, 3),
            (0, 0, 0, 0, 3, 3),
            (0, 1, 0, 3, 3),
            (0, 0, 2, 2),
            (1, 2, 2),
            (1, 1),
            (0,),
        ),
    ),
    PublishedTable(
        "Table 3, 7 features",
        (
            ("INTER2373_GSR7_K4_RBF", ("INTERCV_GSR#_K4_RBF", 7), 8.02),
            ("GSR7_K4_RBF", ("GSR#_K4_RBF", 7), 8.95),
            ("NLMU7_RBF", ("NLMU#_RBF", 7), 12.35),
            ("R7_K4_RBF", ("R#_K4_RBF", 7), 13.58),
            ("R7_RBF", ("R#_RBF", 7), 13.89),
            ("SC7_RBF", ("SC#_RBF", 7), 17.28),
            ("GS7_RBF", ("GS#_RBF", 7), 17.90),
            ("NLMU7_OM", ("NLMU#_OM", 7), 22.53),
            ("GS7_OM", ("GS#_OM", 7), 23.46),
            ("OMMU7_RBF", ("OMMU#_RBF", 7), 23.46),
            ("OMMU7_OM", ("OMMU#_OM", 7), 25.62),
            ("SC7_OM", ("SC#_OM", 7), 29.01),
        ),
        (
            (0, 1, 1, 1, 3, 2, 3, 3, 3, 3, 3),
            (0, 1, 1, 3, 2, 3, 3, 3, 3, 3),
            (0, 0, 0, 0, 3, 2, 2, 2, 3),
            (0, 1, 0, 2, 2, 2, 3, 3),
            (1, 0, 1, 2, 2, 3, 3),
            (0, 0, 2, 2, 2, 3),
            (0, 1, 0, 1, 3),
            (0, 0, 0, 0),
            (0, 0, 1),
            (0, 1),
            (1,),
        ),
    ),
)


def matrix_sections(results: Results) -> list[Section]:
    """One section per data set and published table, and one with all other methods."""
    sections = []
    for data in (PEAKS, BINNED):
        for table in TABLES:
            text = (
                "Sum over the three folds of +1 (row significantly better than column), 0 and −1 by McNemar's "
                "test at 5 %, the published score in brackets; our test error in per cent on the diagonal. "
                "Methods in the published order."
            )
            try:
                found = measured_matrix(results, data, table.configurations)
            except NotMeasured:
                continue
            shown = matrix_table(found, tuple(table.configurations), table.matrix)
            sections.append(Section(f"McNemar matrix, {data}: {table.name}", (text,), shown))
        sections += _others(results, data)
    return sections


def _others(results: Results, data: str) -> list[Section]:
    """The codes of section 2.4 that the published tables leave out."""
    printed = {sized for table in TABLES for sized in table.configurations.values()}
    keys = [(config, size) for where, config, size in results.keys if where == data]
    configurations = {
        code_of(config, size): (config, size) for config, size in keys if (config, size) not in printed
    }
    try:
        found = measured_matrix(results, data, configurations)
    except NotMeasured:
        return []
    text = "Methods that the paper names and does not show. Scores as above, by test error, which is on the diagonal."
    return [Section(f"McNemar matrix, {data}: other methods", (text,), matrix_table(found))]


def code_of(config: str, size: int | None) -> str:
    """The code of a method with its number of features."""
    return config.replace("#", "" if size is None else str(size))


# -- McNemar score matrices as tables: ours alone, and side by side with published ones --


SizedConfiguration = tuple[str, int | None]
"""Label of the configuration and its size."""


@dataclass(frozen=True)
class PublishedMatrix:
    """A printed matrix: method codes in their order, and the upper triangle row by row."""

    codes: tuple[str, ...]
    upper: tuple[tuple[int, ...], ...]

    def score(self, row: str, column: str) -> int:
        """Score of one method against another."""
        i, j = self.codes.index(row), self.codes.index(column)
        return self.upper[i][j - i - 1] if i < j else -self.upper[j][i - j - 1]


def measured_matrix(
    results: Results, data: str, configurations: Mapping[str, SizedConfiguration]
) -> ScoreMatrix:
    """The matrix of the methods that were measured in every fold; NotMeasured with less than two."""
    truth: list[Any] = []
    predictions: dict[str, list[Any]] = {}
    for code, (config, size) in configurations.items():
        try:
            rows = results.rows_of(data, config, size)
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
) -> PageTable:
    """Scores with errors in per cent on the diagonal, by error unless an order is given.

    With a published matrix each score is followed by the published one in brackets.
    """
    index = {code: i for i, code in enumerate(found.methods)}
    by_error = [found.methods[i] for i in np.argsort(found.error_rates, kind="stable")]
    codes = by_error if order is None else [code for code in order if code in index]
    lines = []
    for number, row in enumerate(codes, start=1):
        cells = [_cell(found, index, row, column, published) for column in codes]
        lines.append((f"{number}. {row}", *cells))
    return PageTable(("method", *(str(number) for number in range(1, len(codes) + 1))), tuple(lines))


def _cell(
    found: ScoreMatrix, index: dict[str, int], row: str, column: str, published: PublishedMatrix | None
) -> str:
    if row == column:
        return f"{100 * found.error_rates[index[row]]:.2f}"
    ours = str(found.scores[index[row], index[column]])
    return ours if published is None else f"{ours} ({published.score(row, column)})"


def same_directions(
    data: str, configurations: Mapping[str, SizedConfiguration], published: PublishedMatrix, share: float
) -> Callable[[Results], ClaimCheck]:
    """At most ``share`` of the pairs that differ in the paper differ in the other direction here."""

    def check(results: Results) -> ClaimCheck:
        found = measured_matrix(results, data, configurations)
        index = {code: i for i, code in enumerate(found.methods)}
        same, opposite, total = 0, 0, 0
        for i, row in enumerate(found.methods):
            for column in found.methods[i + 1 :]:
                expected = published.score(row, column)
                if expected:
                    product = expected * int(found.scores[index[row], index[column]])
                    same, opposite, total = same + (product > 0), opposite + (product < 0), total + 1
        shown = f"of {total} pairs {same} in the same direction, {opposite} in the opposite one"
        return ClaimCheck(f"{shown}, {total - same - opposite} not told apart", opposite <= share * total)

    return check
