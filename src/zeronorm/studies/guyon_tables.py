"""Tables 2 and 3 of Guyon et al. (2003) and their counterparts on the data at hand."""

from __future__ import annotations

from dataclasses import dataclass

from zeronorm.studies.page import Section
from zeronorm.studies.results import NotMeasured, Results
from zeronorm.studies.score_tables import Cell, PublishedMatrix, matrix_table, measured_matrix

PEAKS, BINNED = "peaks", "binned spectra"


@dataclass(frozen=True)
class PublishedTable:
    """Code, our cell and published error of each method, best first, with the scores."""

    name: str
    rows: tuple[tuple[str, Cell, float], ...]
    upper: tuple[tuple[int, ...], ...]

    @property
    def cells(self) -> dict[str, Cell]:
        return {code: cell for code, cell, _ in self.rows}

    @property
    def matrix(self) -> PublishedMatrix:
        return PublishedMatrix(tuple(self.cells), self.upper)


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
                found = measured_matrix(results, data, table.cells)
            except NotMeasured:
                continue
            shown = matrix_table(found, tuple(table.cells), table.matrix)
            sections.append(Section(f"McNemar matrix, {data}: {table.name}", (text,), shown))
        sections += _others(results, data)
    return sections


def _others(results: Results, data: str) -> list[Section]:
    """The codes of section 2.4 that the published tables leave out."""
    printed = {cell for table in TABLES for cell in table.cells.values()}
    keys = [(arm, size) for where, arm, size in results.keys if where == data]
    cells = {code_of(arm, size): (arm, size) for arm, size in keys if (arm, size) not in printed}
    try:
        found = measured_matrix(results, data, cells)
    except NotMeasured:
        return []
    text = "Methods that the paper names and does not show. Scores as above, by test error, which is on the diagonal."
    return [Section(f"McNemar matrix, {data}: other methods", (text,), matrix_table(found))]


def code_of(arm: str, size: int | None) -> str:
    """The code of a method with its number of features."""
    return arm.replace("#", "" if size is None else str(size))
