"""Numbers in columns of text: thousands, decimal commas, single cells that are no number, limits of detection.

The notation is that of most cells of a column. A column in which more than four fifths of the cells are numbers is a
column of numbers; its other cells count as missing, and a note shows them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import Message, parameter, setting
from zeronorm.datasets._raw import RawTable
from zeronorm.datasets._table import DataError, counted, first_decorated, shown

CensoredChoice = Literal["error", "half", "missing"]
CENSORED_CHOICES: tuple[str, ...] = get_args(CensoredChoice)
# Missing where the other cells of a column are numbers; alone they may be labels, as in "+" and "-".
MISSING_AMONG_NUMBERS = (".", "-", "--")
NUMERIC_SHARE = 0.8  # of the cells of a column of numbers that are numbers
MOST_CODES = 20  # different values of a column of codes such as 1, 2, 3a
CELLS_IN_A_NOTE = 5
SIGNS_OF_LIMITS = ("<", ">", "≤", "≥")


# -- Notations ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Notation:
    """A way to write numbers: the decimal mark, and what separates groups of thousands (empty: nothing does)."""

    decimal: str
    groups: str = ""

    @property
    def pattern(self) -> str:
        """A regular expression of a number; without separators, a number of this notation is below 1000."""
        mark, tail = re.escape(self.decimal), f"(?:{re.escape(self.decimal)}[0-9]*)?"
        if not self.groups:
            return rf"[+-]?(?:[0-9]+{tail}|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:inf|infinity|nan)"
        return rf"[+-]?(?:[0-9]{{1,3}}|[1-9][0-9]{{0,2}}(?:[{self.groups}][0-9]{{3}})+){tail}"

    @property
    def base(self) -> Notation:
        """The notation with the same decimal mark and without groups."""
        return Notation(self.decimal)

    def value(self, cell: str) -> float:
        """The number in a cell of this notation."""
        for separator in self.groups:
            cell = cell.replace(separator, "")
        return float(cell if self.decimal == "." else cell.replace(self.decimal, "."))


PLAIN, GROUPED, DECIMAL_COMMA = Notation("."), Notation(".", ","), Notation(",")
WITH_DOT = (PLAIN, GROUPED, Notation(".", " '"))
WITH_COMMA = (DECIMAL_COMMA, Notation(",", "."), Notation(",", " '"))
FITS: dict[Notation, Callable[[str], Any]] = {
    notation: re.compile(notation.pattern, re.IGNORECASE).fullmatch for notation in (*WITH_DOT, *WITH_COMMA)
}
_DIGIT = re.compile(r"[0-9]").search
_WHOLE = re.compile(r"[+-]?[0-9]+").fullmatch
_CENSORED = re.compile(r"([<>≤≥])=?\s*(.*)").fullmatch
_CODE = re.compile(r"[0-9]+[^\W_]*").fullmatch
_MARKED = re.compile(
    r"([^\w.,]*)([0-9.,]*[0-9](?:[eE][+-]?[0-9]+)?)(\s*[^\W\d_]{0,8}(?:/\w{1,4})?\W*)"
).fullmatch


def normal_form(cell: str) -> str:
    """The cell with the digits, spaces and signs of ASCII."""
    if cell.isascii():
        return cell.strip()
    text = unicodedata.normalize("NFKC", cell).replace("\u2212", "-").replace("\u2019", "'")
    return re.sub(r"\s", " ", text).strip()


def _usual_notation(cells: Sequence[str], decimal_comma: bool) -> tuple[Notation, int]:
    """The notation of most cells, and how many have it; with a decimal comma, dots separate thousands in doubt."""
    order = (*WITH_COMMA, *WITH_DOT) if decimal_comma else (*WITH_DOT, *WITH_COMMA)
    best, most = PLAIN, -1
    for notation in order:
        fits = FITS[notation]
        others = [cell for cell in cells if not fits(cell)]
        if len(cells) - len(others) > most:
            best, most = notation, len(cells) - len(others)
        if not any(map(_DIGIT, others)):  # what is left is no number in any notation
            break
    return best, most


def has_decimal_comma(columns: Iterable[Sequence[str | None]]) -> bool:
    """Whether the cells of one of the columns are numbers only if the comma is the decimal mark."""
    for column in columns:
        cells = [normal_form(cell) for cell in column if cell is not None]
        if not any("," in cell for cell in islice(cells, 1000)):
            continue
        with_comma = max(sum(1 for cell in cells if FITS[notation](cell)) for notation in WITH_COMMA)
        with_dot = max(sum(1 for cell in cells if FITS[notation](cell)) for notation in WITH_DOT)
        if with_comma > max(with_dot, NUMERIC_SHARE * len(cells)):
            return True
    return False


# -- One column ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column of text.

    Parameters
    ----------
    values : the numbers; NaN where a cell is missing, is no number, or is a limit of detection.
    notation : the notation of most cells.
    odd : cells that are no numbers, by row.
    limits : cells such as "<0.5", by row.
    example : a cell that is not written as Python writes numbers, and its row; None where all are.
    """

    values: NDArray[np.float64]
    notation: Notation
    odd: Mapping[int, str] = field(default_factory=dict)
    limits: Mapping[int, str] = field(default_factory=dict)
    example: tuple[int, str] | None = None


def numbers_in(cells: Sequence[str | None], *, decimal_comma: bool = False) -> Numbers | None:
    """The numbers of a column in which more than four fifths of the cells are numbers; None for other text.

    Whole numbers that the format declares to be text stay text, because they are names or codes.
    """
    present = {
        row: normal_form(cell)
        for row, cell in enumerate(cells)
        if cell is not None and cell.strip() not in MISSING_AMONG_NUMBERS
    }
    limits = {row: cell for row, cell in present.items() if _limit(cell) is not None}
    rest = {row: cell for row, cell in present.items() if row not in limits}
    notation, n_numbers = _usual_notation(list(rest.values()), decimal_comma)
    if n_numbers < 1 or n_numbers + len(limits) <= NUMERIC_SHARE * len(present):
        return None
    values = np.full(len(cells), np.nan)
    odd: dict[int, str] = {}
    example: tuple[int, str] | None = None
    fits, fits_base, base = FITS[notation], FITS[notation.base], notation.base
    for row, cell in rest.items():
        if not fits(cell) and not fits_base(cell):
            odd[row] = str(cells[row])
            continue
        values[row] = (notation if fits(cell) else base).value(cell)
        if example is None and (cells[row] != cell or (notation != PLAIN and not FITS[PLAIN](cell))):
            example = row, str(cells[row])
    if not limits and (_are_codes(rest.values(), odd.values()) or any('"' in cell for cell in odd.values())):
        return None  # a quotation mark shows that the file is damaged
    return Numbers(values, notation, odd, {row: str(cells[row]) for row in limits}, example)


def _are_codes(cells: Iterable[str], odd: Iterable[str]) -> bool:
    """Whether the cells are whole numbers, or few different codes such as 1, 2, 3a."""
    different = set(cells)
    if all(map(_WHOLE, different)):
        return True
    return len(different) <= MOST_CODES and all(map(_CODE, different)) and all(map(_CODE, odd))


def _limit(cell: str) -> tuple[str, float] | None:
    """The sign and the limit of a cell such as "<0,5"; None for any other cell."""
    found = _CENSORED(cell) if cell[:1] in SIGNS_OF_LIMITS else None
    if found is None:
        return None
    notation = next((each for each in (*WITH_DOT, *WITH_COMMA) if FITS[each](found[2])), None)
    return None if notation is None else (found[1], notation.value(found[2]))


def _replaced(cell: str) -> float:
    """Half of the limit below which a value is, or the limit above which it is; NaN for any other cell."""
    sign, limit = _limit(normal_form(cell)) or ("", np.nan)
    return limit if sign in ">≥" else limit / 2


def check_not_numbers(name: str, cells: Sequence[str | None], at: Callable[[int], str]) -> None:
    """Raise an error for a text column that may hold numbers: more than half of its cells do, or they have units.

    ``at`` describes the position of a row.
    """
    present = {row: normal_form(cell) for row, cell in enumerate(cells) if cell is not None}
    different = set(present.values())
    if _are_codes(present.values(), different):
        return
    notation, n_numbers = _usual_notation(list(present.values()), decimal_comma=False)
    if 2 * n_numbers > len(present):
        row = next(row for row, cell in present.items() if not FITS[notation](cell))
        raise DataError(
            f"The column {shown(name)} holds numbers but also text, first {shown(str(cells[row]))} in {at(row)}. "
            f"Correct these cells, leave the column out ({parameter('ignore')}), or declare that it holds categories "
            f"({parameter('categorical')})."
        )
    decorated = first_decorated(list(present.values())) or _first_marked(list(present.values()))
    if len(different) > 2 and decorated is not None:
        raise DataError(
            f"The column {shown(name)} holds numbers with signs in or around them, such as {shown(decorated)}. Write "
            f"plain numbers, or leave the column out ({parameter('ignore')})."
        )


def _first_marked(cells: Sequence[str]) -> str | None:
    """The first cell of numbers with one and the same unit or sign, such as "3.2 mg"; None for other text.

    Whole numbers directly beside a letter or a sign are names.
    """
    found = [match for match in map(_MARKED, cells) if match is not None]
    marks = Counter((match[1].strip("+-"), match[3].strip()) for match in found)
    mark, count = marks.most_common(1)[0] if marks else (("", ""), 0)
    are_measured = any(sign in match[2] + match[3].strip("+-") for match in found for sign in "., ")
    if count <= NUMERIC_SHARE * len(cells) or not any(mark) or not are_measured:
        return None
    return next(match[0] for match in found if match[3].strip() == mark[1])


# -- All columns of a table ---------------------------------------------------------------------------


def with_numbers(
    raw: RawTable, positions: Iterable[int] | None = None, censored: CensoredChoice = "error"
) -> RawTable:
    """The table with the numbers of its text columns, and notes about cells that are no plain numbers.

    Parameters
    ----------
    raw : the table.
    positions : the columns that may hold numbers; None: all.
    censored : what becomes of cells such as "<0.5": an error, half of the limit, or a missing value.
    """
    comma = raw.decimal_comma
    comma = has_decimal_comma(raw.texts.values()) if comma is None else comma
    wanted = raw.texts if positions is None else [p for p in positions if p in raw.texts]
    found = {p: numbers_in(raw.texts[p], decimal_comma=comma) for p in wanted}
    numbers = {position: column for position, column in found.items() if column is not None}
    if not numbers:
        return raw
    values = {}
    for position, column in numbers.items():
        if not comma:
            _check_unambiguous(raw, position, column)
        values[position] = _without_limits(raw, position, column, censored)
    notes = (*raw.notes, *_notes(raw, numbers, censored))
    return replace(raw.without(numbers).with_columns(values), notes=notes)


def _without_limits(
    raw: RawTable, position: int, column: Numbers, censored: CensoredChoice
) -> NDArray[np.float64]:
    """The numbers of a column with its limits of detection replaced as the user chose."""
    if not column.limits:
        return column.values
    if censored == "error":
        row, cell = next(iter(column.limits.items()))
        raise DataError(
            f"The column {shown(raw.names[position])} holds limits of detection "
            f"({counted(len(column.limits), 'cell')}), first {shown(cell)} in {raw.at(row)}. Set "
            f"{setting('censored', 'half')} to use half of a lower limit, or {setting('censored', 'missing')}."
        )
    values = column.values.copy()
    if censored == "half":
        for row, cell in column.limits.items():
            values[row] = _replaced(cell)
    return values


def _check_unambiguous(raw: RawTable, position: int, column: Numbers) -> None:
    """Refuse a column whose commas may separate thousands or decimals, if the table does not tell."""
    if column.notation not in (GROUPED, DECIMAL_COMMA):
        return
    cells = [normal_form(cell) for cell in raw.texts[position] if cell is not None]
    with_comma = [cell for cell in cells if "," in cell]
    is_open = all(FITS[GROUPED](cell) and FITS[DECIMAL_COMMA](cell) for cell in with_comma)
    if not is_open or _has_fractions(raw):
        return
    raise DataError(
        f"The column {shown(raw.names[position])} holds numbers with commas, such as {shown(with_comma[0])}, which may "
        f"separate thousands or decimals. {setting('decimal_comma', True, 'Set')} if they separate decimals; otherwise "
        "write the numbers without separators of thousands."
    )


def _has_fractions(raw: RawTable) -> bool:
    """Whether a number of the table has a decimal point."""
    if isinstance(raw.values, np.ndarray):
        finite = raw.values[np.isfinite(raw.values)]
        if np.any(finite != np.round(finite)):
            return True
    cells = (normal_form(cell) for column in raw.texts.values() for cell in column if cell is not None)
    return any("." in cell and FITS[PLAIN](cell) for cell in cells)


Cells = Sequence[tuple[int, int, str]]  # column, row, text


def _notes(raw: RawTable, numbers: Mapping[int, Numbers], censored: CensoredChoice) -> list[str]:
    notes = []
    odd = [(p, row, cell) for p, column in numbers.items() for row, cell in column.odd.items()]
    limits = [(p, row, cell) for p, column in numbers.items() for row, cell in column.limits.items()]
    written = [(p, *column.example) for p, column in numbers.items() if column.example is not None]
    if written:
        position, row, cell = written[0]
        notes.append(
            f"Numbers of {counted(len(written), 'column')} are written with a decimal comma, with separators of "
            f"thousands or in other characters: {shown(cell)} in the column {shown(raw.names[position])} is read as "
            f"{numbers[position].values[row]:.15g}."
        )
    if odd:
        what = "is no number and counts" if len(odd) == 1 else "are no numbers and count"
        notes.append(
            Message(
                f"{_counted(odd)} {what} as missing: {_listed(raw, odd)}. If a column holds categories, declare it "
                f"({parameter('categorical')})."
            )
        )
    if limits:
        used = "half of it (the limit itself for values above it)" if censored == "half" else "missing"
        notes.append(
            f"{_counted(limits)} below or above a limit of detection became {used}: {_listed(raw, limits)}."
        )
    return notes


def _counted(cells: Cells) -> str:
    return f"{counted(len(cells), 'cell')} in {counted(len({p for p, _, _ in cells}), 'numeric column')}"


def _listed(raw: RawTable, cells: Cells) -> str:
    """The first cells with their columns and rows."""
    listed = "; ".join(
        f"{shown(cell)} in the column {shown(raw.names[position])}, {raw.at(row)}"
        for position, row, cell in cells[:CELLS_IN_A_NOTE]
    )
    return listed + (f"; and {len(cells) - CELLS_IN_A_NOTE} more" if len(cells) > CELLS_IN_A_NOTE else "")
