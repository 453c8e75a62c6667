"""Files whose numbers are not written as Python writes them, and workbooks in which the table must be found."""

from __future__ import annotations

import gzip
import lzma

from datasets.corpus import GENES, NAN, PLAIN, ROWS, Good, X, Y, Z, columns, table_text
from datasets.workbooks import opendocument, workbook, zipped

BIG = [8589.42, 1200.5, 950.0, 12345678.9, 0.5, 2169.72]
WHOLE = [8589.0, 1200.0, 950.0, 12345678.0, 7.0, 2169.0]
HEADER = ("big", "z", "y")


def written(values, form):
    """A table with the values in the given form."""
    return table_text(";", [(form(a), b, c) for a, (_, b, c) in zip(values, ROWS, strict=True)], HEADER)


def german(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def with_cell(cell, *, among=X):
    """A table in which the second number is replaced by a text."""
    cells = [str(value) for value in among]
    cells[1] = cell
    return table_text(";", [(a, b, c) for a, (_, b, c) in zip(cells, ROWS, strict=True)])


def good(name, content, note="", values=None, names=("big", "z"), **options):
    values = columns(BIG, Z) if values is None else values
    return Good(name, content, note, names=names, values=values, options=options)


def one_missing(content, note, **options):
    values = columns([X[0], NAN, *X[2:]], Z)
    return good("d.csv", content, note, values=values, names=("x", "z"), **options)


GERMAN_TABLE = written(BIG, german)
TRANSPOSED = (
    "gene;s1;s2;s3;s4;s5;s6\nbig;" + ";".join(map(german, BIG)) + "\nz;" + ";".join(map(german, Z)) + "\n"
)
STATES = "y;" + ";".join(Y) + "\n"
LONG_NAMES = [f"1234567890123456{i:04}" for i in range(6)]
TITLE = [("Proteins of the study",), (), ("made", "in May")]
TABLE = [("x", "z", "y"), *ROWS]
WIDE = [(*"abcdefgh", "y"), *((*(i + j + 0.5 for j in range(8)), Y[i]) for i in range(6))]
NOTES = [("key", "value"), ("author", "me"), ("year", 2026.0), ("unit", "ng")]
NUMBERS = {
    "German thousands": good("d.csv", GERMAN_TABLE, "written with a decimal comma"),
    "German thousands, said": good("d.csv", GERMAN_TABLE, "'8.589,42'", decimal_comma=True),
    "German thousands, compressed": good("d.csv.xz", lzma.compress(GERMAN_TABLE.encode()), "decimal comma"),
    "German thousands, tabs": good("d.tsv", GERMAN_TABLE.replace(";", "\t"), "is read as 8589.42"),
    "German thousands, samples in columns": good(
        "d.csv", TRANSPOSED + STATES, "decimal comma", transpose=True
    ),
    "German thousands, samples in columns, said": good(
        "d.csv", TRANSPOSED + STATES, "separators of thousands", transpose=True, decimal_comma=True
    ),
    "German whole numbers beside decimals": good(
        "d.csv",
        table_text(
            ";",
            [(f"{a:,.0f}".replace(",", "."), german(b), c) for a, (_, b, c) in zip(WHOLE, ROWS, strict=True)],
            HEADER,
        ),
        values=columns(WHOLE, Z),
    ),
    "German whole numbers below a million beside decimals": good(
        "d.csv",
        table_text(
            ";",
            [(f"{1000 + a:,.0f}".replace(",", "."), german(10_000 * b), c) for a, b, c in ROWS],
            HEADER,
        ),
        values=columns([1002, 1002, 1003, 1004, 1000, 1002], [10_000 * z for z in Z]),
    ),
    "German decimals only": Good("d.csv", table_text(";").replace(".", ","), "decimal comma"),
    "German with a missing cell": good(
        "d.csv",
        GERMAN_TABLE.replace("1.200,50", "k.A."),
        "1 cell in 1 numeric column is no number and counts as missing: 'k.A.' in the column 'big', data row 2",
        columns([BIG[0], NAN, *BIG[2:]], Z),
    ),
    "English thousands": good("d.csv", written(BIG, lambda v: f"{v:,}"), "separators of thousands"),
    "English whole thousands beside decimals": good(
        "d.csv", written(WHOLE, lambda v: f"{v:,.0f}"), values=columns(WHOLE, Z)
    ),
    "English thousands in quotation marks": good(
        "d.csv", written(BIG, lambda v: f'"{v:,}"').replace(";", ",")
    ),
    "Swiss thousands": good("d.csv", written(BIG, lambda v: f"{v:,}".replace(",", "'"))),
    "typographic apostrophes": good("d.csv", written(BIG, lambda v: f"{v:,}".replace(",", "’"))),
    "spaces between thousands": good("d.csv", written(BIG, lambda v: f"{v:,}".replace(",", "\u00a0"))),
    "French": good("d.csv", written(BIG, lambda v: german(v).replace(".", "\u202f"))),
    "full-width digits": good(
        "d.csv",
        written(BIG, lambda v: str(v).translate({48 + i: 0xFF10 + i for i in range(10)})),
        "in other characters",
    ),
    "one cell of full-width digits": Good(
        "d.csv",
        with_cell("１２"),
        "'１２' in the column 'x' is read as 12",
        values=columns([X[0], 12.0, *X[2:]], Z),
    ),
    "typographic minus": Good(
        "d.csv", with_cell("−2.5"), "is read as -2.5", values=columns([X[0], -2.5, *X[2:]], Z)
    ),
    "underscore among numbers": one_missing(with_cell("1_000"), "'1_000' in the column 'x', data row 2"),
    "unit in one cell": one_missing(with_cell("3.2 mg"), "'3.2 mg' in the column 'x', data row 2"),
    "no answer": one_missing(with_cell("k.A."), "'k.A.' in the column 'x', data row 2"),
    "not measured, as a word": one_missing(with_cell("unknown"), "declare it (parameter 'categorical')"),
    "two columns with odd cells": good(
        "d.csv",
        with_cell("n.d.").replace("7.5", "lost"),
        "2 cells in 2 numeric columns are no numbers",
        columns([X[0], NAN, *X[2:]], [*Z[:2], NAN, *Z[3:]]),
        ("x", "z"),
    ),
    "odd cell with samples in columns": one_missing(
        GENES.replace("2.0,", "k.A.,", 1) + "y," + ",".join(Y) + "\n",
        "'k.A.' in the column 'x', the sample 's2'",
        transpose=True,
    ),
    "half of a limit": Good(
        "d.csv",
        with_cell("<0.5"),
        "became half of it",
        values=columns([X[0], 0.25, *X[2:]], Z),
        options={"censored": "half"},
    ),
    "half of a German limit": good(
        "d.csv",
        GERMAN_TABLE.replace("1.200,50", "< 1.200,50"),
        "became half of it",
        columns([BIG[0], 600.25, *BIG[2:]], Z),
        censored="half",
    ),
    "an upper limit": Good(
        "d.csv",
        with_cell("≥5"),
        "the limit itself",
        values=columns([X[0], 5.0, *X[2:]], Z),
        options={"censored": "half"},
    ),
    "limits as missing": one_missing(with_cell("<0.5"), "became missing", censored="missing"),
    "a limit in a column that is left out": good(
        "d.csv", with_cell("<0.5"), "", columns(Z), ("z",), ignore=("x",)
    ),
    "a constant of 21 digits": good(
        "d.csv",
        table_text(";", [("500000000000000000000", b, c) for _, b, c in ROWS], HEADER),
        "",
        columns([5e20] * 6, Z),
    ),
    "names of 20 digits": good(
        "d.csv",
        table_text(
            rows=[(n, *r) for n, r in zip(LONG_NAMES, ROWS, strict=True)], header=("who", "x", "z", "y")
        ),
        "look like identifiers and were left out: 'who'",
        columns(X, Z),
        ("x", "z"),
    ),
    "names of 20 digits join": Good(
        "d.csv",
        table_text(
            rows=[(n, *r[:2]) for n, r in zip(LONG_NAMES, ROWS, strict=True)], header=("who", "x", "z")
        ),
        "6 samples are in both",
        samples=table_text(rows=list(zip(LONG_NAMES, Y, strict=True)), header=("id", "y")),
    ),
    "carriage return in a name": Good("d.csv", PLAIN.replace("x,z", '"x\rfirst",z'), names=("x\rfirst", "z")),
    "carriage returns in names": Good(
        "d.csv", PLAIN.replace("x,z,y", '"x\r\r1","z\r\n2",y'), names=("x\r\r1", "z\r\n2")
    ),
    "carriage return in a name, tabs": Good(
        "d.tsv.gz", gzip.compress(table_text("\t").replace("x", '"x\r1"', 1).encode()), names=("x\r1", "z")
    ),
    "carriage return in a name, zip": Good(
        "d.zip", zipped(d__csv=PLAIN.replace("x,z", 'x,"\rz"')), names=("x", "z")
    ),
    "carriage return in a name, Windows": Good(
        "d.csv", PLAIN.replace("x,z", '"x\r1",z').replace("\n", "\r\n"), names=("x\r1", "z")
    ),
    "title above, header named": Good(
        "d.csv", "A title\n\nof lines, two\n" + PLAIN, options={"header_row": 4}
    ),
    "header that begins as a comment, named": Good(
        "d.csv", "# a\n" + PLAIN.replace("x,", "#x,", 1), options={"header_row": 2}
    ),
    "excel, notes first": Good(
        "d.xlsx",
        lambda: workbook({"about": [("Our study",)], "data": TABLE}),
        "'data' was read; 'about' was not",
    ),
    "excel, keys and values first": Good(
        "d.xlsx", lambda: workbook({"about": NOTES, "data": TABLE}), "'data' was read; 'about' was not"
    ),
    "excel, titles above": Good(
        "d.xlsx", lambda: workbook({"data": [TITLE[0], (), *TABLE]}), "found in row 3 of the sheet"
    ),
    "excel, title and keys above a wide table": good(
        "d.xlsx",
        lambda: workbook({"data": [*TITLE, (), *WIDE]}),
        "found in row 5",
        columns(*([i + j + 0.5 for i in range(6)] for j in range(8))),
        tuple("abcdefgh"),
    ),
    "excel, sheet by name": Good(
        "d.xlsx", lambda: workbook({"other": WIDE, "data": TABLE}), options={"sheet": "data"}
    ),
    "excel, sheet by number": Good(
        "d.xlsx", lambda: workbook({"other": WIDE, "data": TABLE}), options={"sheet": "2"}
    ),
    "excel, header by row": Good(
        "d.xlsx",
        lambda: workbook({"data": [("p", "q", "r"), ("in", "the", "lab"), *TABLE]}),
        options={"header_row": 3},
    ),
    "excel, German texts": good(
        "d.xlsx",
        lambda: workbook(
            {"d": [HEADER, *((german(a), b, c) for a, (_, b, c) in zip(BIG, ROWS, strict=True))]}
        ),
        "separators of thousands",
    ),
    "excel, decimal comma said": Good(
        "d.xlsx", lambda: workbook({"data": TABLE}), options={"decimal_comma": True}
    ),
    "excel, odd cell": Good(
        "d.xlsx",
        lambda: workbook({"data": [("x", "z", "y"), ROWS[0], ("k.A.", *ROWS[1][1:]), *ROWS[2:]]}),
        "data row 2",
        values=columns([X[0], NAN, *X[2:]], Z),
    ),
    "open document, title above": Good("d.ods", lambda: opendocument([("Title",), *TABLE]), "found in row 2"),
}
BAD_NUMBERS = {
    "limit of detection": (
        "d.csv",
        with_cell("<0,5"),
        "first '<0,5' in data row 2. Set censored='half'",
    ),
    "German limit of detection": (
        "d.csv",
        GERMAN_TABLE.replace("1.200,50", "<0,5"),
        "The column 'big' holds limits of detection (1 cell), first '<0,5' in data row 2",
    ),
    "thousands or decimals": (
        "d.csv",
        written([1000 * (i + 1) for i in range(6)], lambda v: f"{v:,}")
        .replace(".0;", ";")
        .replace("7.5", "7"),
        "such as '1,000', which may separate thousands or decimals. Set decimal_comma=True",
    ),
    "a third of the cells are words": (
        "d.csv",
        with_cell("k.A.").replace("4.5;", "k.A.;"),
        "holds numbers but also text, first 'k.A.' in data row 2",
    ),
    "a unit in each cell": (
        "d.csv",
        written(BIG, lambda v: f"{v} mg"),
        "signs in or around them, such as '8589.42 mg'",
    ),
    "no such sheet": (
        "d.xlsx",
        lambda: workbook({"data": [("only",), ("one",)], "more": [("x",)]}),
        "No sheet of the file 'd.xlsx' holds a table with a header, a row and at least two columns. Its sheets are "
        "'data', 'more'",
    ),
    "text target with an odd cell": (
        "d.csv",
        table_text(rows=[(i, 2 * i, f"{i + 0.25}" if i != 3 else "k.A.") for i in range(30)]),
        "The target 'y' holds numbers but also text, first 'k.A.' in data row 4",
    ),
}
