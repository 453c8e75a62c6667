"""A corpus of files as users have them, each with the expected table or the expected message."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import lzma
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from datasets.workbooks import opendocument, workbook, zipped, zstd

NAN = float("nan")
X, Z, Y = [1.5, 2.0, 3.0, 4.5, 0.5, 2.5], [9.0, 8.0, 7.5, 6.0, 5.0, 1.0], list("ababab")
ROWS = [*zip(X, Z, Y, strict=True)]
FOREIGN = ("polars", "pandas", "traceback", "schema", "dtype", "computeerror", "rust", "calamine")


def table_text(sep=",", rows=ROWS, header=("x", "z", "y"), end="\n"):
    return "".join(sep.join(map(str, row)) + end for row in [header, *rows])


PLAIN = table_text()
GENES = "gene,s1,s2,s3,s4,s5,s6\nx," + ",".join(map(str, X)) + "\nz," + ",".join(map(str, Z)) + "\n"
PHENOTYPES = "sample,y,age\n" + "".join(f"s{i + 1},{label},{30 + i * i}\n" for i, label in enumerate(Y))


@dataclass
class Good:
    """A file and the table it should give; by default that of PLAIN."""

    name: str
    content: Any
    note: str = ""
    names: tuple[str, ...] = ("x", "z")
    values: Any = field(default_factory=lambda: np.column_stack([X, Z]))
    labels: list[str] = field(default_factory=lambda: Y)
    options: dict[str, Any] = field(default_factory=dict)
    samples: str | bytes | None = None


def columns(*given):
    return np.column_stack(given)


R_TABLE = '"x" "z" "y"\n' + "".join(f'"r{i}" {a} {b} "{c}"\n' for i, (a, b, c) in enumerate(ROWS))
R_TABS = "x\tz\ty\n" + "".join(f"r{i}\t{a}\t{b}\t{c}\n" for i, (a, b, c) in enumerate(ROWS))
ALIGNED = "  x    z   y\n" + "".join(f"{a:4}  {b:4}  {c}\n" for a, b, c in ROWS)
GERMAN = table_text(";", [(str(a).replace(".", ","), str(b).replace(".", ","), c) for a, b, c in ROWS])
PATIENTS = [f"p{i // 2}" for i in range(12)]
LONG_ROWS = [(X[i % 6] + i, PATIENTS[i], "ab"[i // 6]) for i in range(12)]
NAMED_ROWS = [(f"s{i + 1}", *row) for i, row in enumerate(ROWS)]
GCT = "#1.2\n2\t6\nNAME\tDescription\t" + "\t".join(f"s{i}" for i in range(1, 7)) + "\n"
GCT += "x\tfirst gene\t" + "\t".join(map(str, X)) + "\nz\tsecond gene\t" + "\t".join(map(str, Z)) + "\n"
GEO = '!Series_title\t"a study"\n!series_matrix_table_begin\n"ID_REF"\t' + "\t".join(
    f'"s{i}"' for i in range(1, 7)
)
GEO += (
    '\n"x"\t' + "\t".join(map(str, X)) + '\n"z"\t' + "\t".join(map(str, Z)) + "\n!series_matrix_table_end\n"
)
DESCRIBED = (
    GENES.replace("gene,", "gene,description,")
    .replace("\nx,", "\nx,a kinase,")
    .replace("\nz,", "\nz,a toll,")
)
COUNTS = GENES.replace("gene,", "Geneid,Chr,Start,Length,").replace("\nx,", "\nx,7,100,900,")
COUNTS = COUNTS.replace("\nz,", "\nz,X,500,77,")
NUMBERED = [(i + 1, *row) for i, row in enumerate(ROWS)]
GAPS = [1.5, NAN, 3.0, 4.5, 0.5, NAN]
RARE = [*ROWS, (1.0, 2.0, "c")]
TALL = [(i * 0.37 % 1, i + 0.5) for i in range(30)]
GOOD = {
    "plain": Good("d.csv", PLAIN),
    "capital ending": Good("D.CSV", PLAIN),
    "gzip": Good("d.csv.gz", gzip.compress(PLAIN.encode())),
    "bzip2": Good("d.csv.bz2", bz2.compress(PLAIN.encode())),
    "xz": Good("d.csv.xz", lzma.compress(PLAIN.encode())),
    "zip": Good("d.zip", zipped(d__csv=PLAIN)),
    "zip made on a Mac": Good("d.csv.zip", zipped(**{"d__csv": PLAIN, "__MACOSX/._d__csv": "x"})),
    "zstandard": Good("d.csv.zst", lambda: zstd(PLAIN)),
    "gzip without saying so": Good("d.csv", gzip.compress(PLAIN.encode())),
    "gzip in a zip": Good("d.zip", zipped(d__csv__gz=gzip.compress(PLAIN.encode()))),
    "parquet called csv": Good("d.csv", lambda: parquet()),
    "gzipped parquet": Good("d.parquet.gz", lambda: gzip.compress(parquet())),
    "no ending": Good("table", PLAIN),
    "no ending and tabs": Good("table", table_text("\t"), "separated by tabs"),
    "excel": Good("d.xlsx", lambda: workbook({"data": [("x", "z", "y"), *ROWS]})),
    "excel called csv": Good("d.csv", lambda: workbook({"data": [("x", "z", "y"), *ROWS]})),
    "excel with several sheets": Good(
        "d.xlsx",
        lambda: workbook({"data": [("x", "z", "y"), *ROWS], "about": [("me",)]}),
        "'data' was read; 'about'",
    ),
    "excel that starts further down": Good(
        "d.xlsx",
        lambda: workbook(
            {"empty": [], "data": [(None,) * 4, (None, "x", "z", "y"), *((None, *r) for r in ROWS)]}
        ),
    ),
    "open document": Good("d.ods", lambda: opendocument([("x", "z", "y"), *ROWS])),
    "semicolons": Good("d.csv", table_text(";"), "separated by ';'"),
    "tabs called csv": Good("d.csv", table_text("\t"), "separated by tabs"),
    "commas called txt": Good("d.txt", PLAIN, "separated by ','"),
    "bars": Good("d.txt", table_text("|"), "separated by '|'"),
    "single spaces": Good("d.dat", table_text(" "), "separated by spaces"),
    "aligned columns": Good("d.txt", ALIGNED, "separated by spaces"),
    "tab by name": Good("d.csv", table_text("\t"), options={"delimiter": "tab"}),
    "decimal comma": Good("d.csv", GERMAN, options={"decimal_comma": True}),
    "windows line ends": Good("d.csv", table_text(end="\r\n").encode()),
    "old Mac line ends": Good("d.csv", table_text(end="\r").encode()),
    "no last line end": Good("d.csv", PLAIN.rstrip("\n")),
    "empty lines": Good("d.csv", "\n" + PLAIN.replace("\n3.0", "\n\n   \n3.0") + "\n\n"),
    "comments above": Good("d.csv", "# made by a machine\n# 12 May, noon\n" + PLAIN),
    "comments between": Good("d.csv", PLAIN.replace("\n3.0", "\n# half\n3.0") + "# the end\n"),
    "header in a comment": Good("d.csv", "#a remark\n#" + PLAIN),
    "spreadsheet error at the start of a row": Good(
        "d.csv", PLAIN.replace("\n3.0", "\n#N/A"), values=columns([1.5, 2.0, NAN, 4.5, 0.5, 2.5], Z)
    ),
    "R, spaces and quotation marks": Good("d.txt", R_TABLE, "one name fewer"),
    "R, tabs": Good("d.tsv", R_TABS, "one name fewer"),
    "byte order mark": Good("d.csv", b"\xef\xbb\xbf" + PLAIN.encode()),
    "utf-16 of Excel": Good("d.txt", table_text("\t").encode("utf-16"), "UTF-16"),
    "utf-16 without a mark": Good("d.csv", PLAIN.encode("utf-16-le"), "UTF-16-LE"),
    "utf-16, big end first": Good("d.csv", PLAIN.encode("utf-16-be"), "UTF-16-BE"),
    "utf-32": Good("d.csv", PLAIN.encode("utf-32"), "UTF-32"),
    "latin-1": Good(
        "d.csv", PLAIN.replace("x,", "größe,").encode("latin-1"), "Windows-1252", names=("größe", "z")
    ),
    "windows-1252": Good("d.csv", PLAIN.replace("x,", "€,").encode("cp1252"), "1252", names=("€", "z")),
    "Windows-1250, named": Good(
        "d.csv",
        PLAIN.replace("x,", "věk,").encode("cp1250"),
        names=("věk", "z"),
        options={"encoding": "cp1250"},
    ),
    "Chinese, named": Good(
        "d.csv.gz",
        gzip.compress(PLAIN.replace("x,", "年龄,").encode("gb18030")),
        names=("年龄", "z"),
        options={"encoding": "gb18030"},
    ),
    "UTF-8 with a mark, named": Good(
        "d.csv", b"\xef\xbb\xbf" + PLAIN.encode(), options={"encoding": "utf-8"}
    ),
    "phenotypes in another encoding, named": Good(
        "d.csv",
        GENES,
        samples=PHENOTYPES.replace("age", "年龄").encode("gb18030"),
        names=("x", "z", "年龄"),
        values=columns(X, Z, [30.0 + i * i for i in range(6)]),
        options={"transpose": True, "with_columns": ("年龄",), "encoding": "gb18030"},
    ),
    "spaces around names and cells": Good("d.csv", PLAIN.replace(",", " , ")),
    "repeated names": Good("d.csv", PLAIN.replace("x,z,y", "x,x,y"), "renamed", names=("x", "x (2)")),
    "repeated names, one taken": Good(
        "d.csv",
        table_text(header=("x", "x", "x (2)", "y"), rows=[(a, b, i, c) for i, (a, b, c) in enumerate(ROWS)]),
        names=("x", "x (3)", "x (2)"),
        values=columns(X, Z, range(6)),
    ),
    "index of pandas": Good(
        "d.csv", table_text(rows=[(i, *r) for i, r in enumerate(ROWS)], header=("", "x", "z", "y"))
    ),
    "row names": Good("d.csv", table_text(rows=NAMED_ROWS, header=("", "x", "z", "y")), "identifiers"),
    "comma at the end of lines": Good("d.csv", table_text(end=",\n"), "no values at all"),
    "gaps": Good(
        "d.csv",
        PLAIN.replace("2.0,8.0", ",8.0").replace("2.5,1.0", "NA,1.0"),
        "training samples",
        values=columns(GAPS, Z),
    ),
    "dots and dashes among numbers": Good(
        "d.csv", PLAIN.replace("2.0,8.0", ".,8.0").replace("2.5,1.0", "-,1.0"), values=columns(GAPS, Z)
    ),
    "plus and minus are labels": Good(
        "d.csv",
        table_text(rows=[(a, "+-"[i % 2], c) for i, (a, b, c) in enumerate(ROWS)], header=("x", "er", "y")),
        names=("x", "er=-"),
        values=columns(X, [0, 1] * 3),
    ),
    "inches": Good(
        "d.csv",
        PLAIN.replace("x,z", 'the "x",z'),
        names=('the "x"', "z"),
    ),
    "one quotation mark": Good("d.tsv", table_text("\t").replace("x\t", 'x 5"\t'), names=('x 5"', "z")),
    "quoted separators": Good("d.csv", PLAIN.replace("x,z", '"x, first",z'), names=("x, first", "z")),
    "line break in a name": Good("d.csv", PLAIN.replace("x,z", '"x\nfirst",z'), names=("x\nfirst", "z")),
    "patterns": Good("d.csv", PLAIN, options={"ignore": ("z*",)}, names=("x",), values=columns(X)),
    "regular expressions": Good(
        "d.csv", PLAIN, options={"only": ("re:^[z]$",)}, names=("z",), values=columns(Z)
    ),
    "only some columns": Good(
        "d.csv",
        table_text(rows=NAMED_ROWS, header=("id", "x", "z", "y")),
        options={"only": ("x",)},
        names=("x",),
        values=columns(X),
    ),
    "rare classes": Good("d.csv", table_text(rows=RARE), "'c' (1)", options={"min_class_size": 2}),
    "samples without a label": Good(
        "d.csv", PLAIN + "7,7,\n", "without a value in the target", options={"drop_unlabelled": True}
    ),
    "labels in two cases": Good(
        "d.csv",
        table_text(rows=[(*r[:2], "no" if i > 3 else ("Yes", "yes")[i % 2]) for i, r in enumerate(ROWS)]),
        "upper and lower case",
        labels=["Yes", "yes", "Yes", "yes", "no", "no"],
    ),
    "patients": Good(
        "d.csv",
        table_text(rows=LONG_ROWS, header=("x", "patient", "y")),
        "categorical='patient'",
        names=("x",),
        values=columns([row[0] for row in LONG_ROWS]),
        labels=[row[2] for row in LONG_ROWS],
    ),
    "samples in columns": Good("d.csv", GENES + "y," + ",".join(Y) + "\n", options={"transpose": True}),
    "two tables": Good(
        "d.csv",
        GENES,
        "6 samples are in both",
        options={"transpose": True, "id": "sample"},
        samples=PHENOTYPES,
    ),
    "two tables, both with semicolons": Good(
        "d.csv",
        GENES.replace(",", ";"),
        "separated by ';'",
        options={"transpose": True},
        samples=PHENOTYPES.replace(",", ";"),
    ),
    "two tables, column found": Good("d.csv", GENES, options={"transpose": True}, samples=PHENOTYPES),
    "two tables, samples in rows": Good(
        "d.csv",
        table_text(rows=[r[:3] for r in NAMED_ROWS], header=("sample", "x", "z")),
        options={"id": "sample"},
        samples=PHENOTYPES,
    ),
    "two tables in another order, some without": Good(
        "d.csv",
        GENES,
        "1 measured sample without",
        options={"transpose": True},
        labels=Y[:5],
        values=columns(X[:5], Z[:5]),
        samples="\n".join([PHENOTYPES.splitlines()[0], *PHENOTYPES.splitlines()[5:0:-1], "s99,a,3"]) + "\n",
    ),
    "two tables, names changed by R": Good(
        "d.csv",
        GENES.replace("s1,", "X1.a,"),
        "spelt differently",
        options={"transpose": True},
        samples=PHENOTYPES.replace("s1,", "1-a,").replace("\ns", "\nS"),
    ),
    "two tables and a column of both": Good(
        "d.csv",
        GENES,
        options={"transpose": True, "with_columns": ("age",)},
        samples=PHENOTYPES,
        names=("x", "z", "age"),
        values=columns(X, Z, [30, 31, 34, 39, 46, 55]),
    ),
    "numbers as names of samples": Good(
        "d.csv",
        table_text(rows=[r[:3] for r in NUMBERED], header=("n", "x", "z")),
        options={"id": "n"},
        samples=PHENOTYPES.replace("sample", "n").replace("\ns", "\n"),
    ),
    "descriptions beside the names": Good(
        "d.csv", DESCRIBED + "y,," + ",".join(Y) + "\n", "describe the features", options={"transpose": True}
    ),
    "featureCounts": Good("d.csv", COUNTS, "'Length'", options={"transpose": True}, samples=PHENOTYPES),
    "gct": Good("d.gct", GCT, "describe the features", samples=PHENOTYPES),
    "series matrix": Good(
        "d.txt.gz", gzip.compress(GEO.encode()), options={"transpose": True}, samples=PHENOTYPES
    ),
}


def parquet():
    buffer = io.BytesIO()
    pl.DataFrame({"x": X, "z": Z, "y": Y}).write_parquet(buffer)
    return buffer.getvalue()


def write(file, content):
    content = content() if callable(content) else content
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


BAD = {
    "cut gzip": ("d.csv.gz", gzip.compress(PLAIN.encode() * 50)[:-30], "cannot be decompressed"),
    "text called gzip": ("d.csv.gz", PLAIN, "cannot be decompressed"),
    "text called zip": ("d.zip", PLAIN, "cannot be decompressed"),
    "damaged zstandard": ("d.csv.zst", lambda: zstd(PLAIN)[:-9], "cannot be decompressed"),
    "several files in a zip": (
        "d.zip",
        zipped(a__csv=PLAIN, b__csv=PLAIN),
        "holds 2 files ('a.csv', 'b.csv')",
    ),
    "nothing in a zip": ("d.zip", zipped(a__csv=""), "holds an empty file"),
    "text called excel": ("d.xlsx", PLAIN, "not a workbook"),
    "empty workbook": ("d.xlsx", lambda: workbook({"one": []}), "no sheet with cells"),
    "short row": (
        "d.csv",
        PLAIN + "1.0,2.0\n",
        "Line 8 of the file 'd.csv' has 2 cells, but the header has 3",
    ),
    "long row": ("d.csv", PLAIN + "1,2,a,4\n", "Line 8 of the file 'd.csv' has 4 cells"),
    "open quotation mark": ("d.csv", PLAIN + '1,"2,a\n', "first '\"2' in data row 7"),
    "only comments": ("d.csv", "# one\n# two\n", "only comments"),
    "cut utf-16": ("d.csv", PLAIN.encode("utf-16")[:-1], "damaged or cut off"),
    "image called csv": ("d.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(64)) * 4, "binary data"),
    "old binary called text": ("d.txt", bytes(range(1, 30)) * 20, "binary data"),
    "percent": (
        "d.csv",
        table_text(header=("x", "share", "y"), rows=[(a, f"{b}%", i % 2) for i, (a, b) in enumerate(TALL)]),
        "signs in or around them, such as",
    ),
    "thousands": (
        "d.csv",
        table_text(
            ";", [(a, f"1,{100 + i},5", "ab"[i % 2]) for i, (a, _) in enumerate(TALL)], ("x", "big", "y")
        ),
        "signs in or around them",
    ),
    "below the limit of detection": (
        "d.csv",
        table_text(rows=[(i, f"{i}.5" if i % 5 else "<0.5", "ab"[i % 2]) for i in range(40)]),
        "first '<0.5' in data row 1",
    ),
    "target twice": ("d.csv", PLAIN.replace("x,z", "y,z"), "the name of 2 columns"),
    "class of one": ("d.csv", table_text(rows=RARE), "min_class_size=2"),
    "label missing": ("d.csv", PLAIN + "7,7,\n", "drop_unlabelled=True"),
    "dates only": (
        "d.csv",
        table_text(
            rows=[(datetime.date(2020, 1, i + 1), "ab"[i % 2]) for i in range(6)], header=("day", "y")
        ),
        "No feature is left",
    ),
}
JOINS = {
    "no column of this name": (PHENOTYPES, {"id": "sampel", "transpose": True}, "Did you mean 'sample'"),
    "nothing in common": (
        PHENOTYPES.replace("\ns", "\nT"),
        {"id": "sample", "transpose": True},
        "no sample in common",
    ),
    "a sample twice": (PHENOTYPES + "s1,b,9\n", {"transpose": True}, "first 's1'"),
    "samples are in columns": (PHENOTYPES, {"id": "sample"}, "transpose=True"),
    "target in neither": (
        PHENOTYPES.replace("y,", "state,"),
        {"transpose": True},
        "the columns to predict are 'state', 'age'",
    ),
}


def text(content):
    return lambda file: file.write_bytes(content if isinstance(content, bytes) else content.encode())


def truncated_parquet(file):
    pl.DataFrame({"x": list(range(1000)), "y": [0, 1] * 500}).write_parquet(file)
    file.write_bytes(file.read_bytes()[:-200])


def pickled_npz(file):
    np.savez(file, X=np.asarray([{"a": 1}, {"b": 2}], dtype=object), y=np.arange(2))


TWO_COLUMNS = "x,y\n1,a\n2,b\n3,a\n4,b\n"
DAMAGED = {
    "missing file": ("none.csv", None, "There is no file"),
    "directory": (".", None, "is a directory"),
    "empty": ("d.csv", text(""), "is empty"),
    "only a header": ("d.csv", text("x,y\n"), "no rows"),
    "one row": ("d.csv", text("x,y\n1,a\n"), "1 sample"),
    "one column": ("d.csv", text("y\na\nb\n"), "only one column"),
    "target absent": ("d.csv", text(TWO_COLUMNS.replace("y", "yy")), "Did you mean 'yy'"),
    "no header": ("d.csv", text("1,2\n3,4\n5,6\n"), "Add a header line"),
    "ragged": ("d.csv", text("x,y\n1,a\n2,b,c\n3,a\n"), "Line 3 of the file"),
    "target constant": ("d.csv", text("x,y\n1,a\n2,a\n"), "constant"),
    "numeric target constant": ("d.csv", text("x,y\n1,2.5\n2,2.5\n"), "constant"),
    "labels missing": ("d.csv", text("x,y\n1,a\n2,\n3,b\n4,a\n"), "has no value in 1 of 4 samples"),
    "label seen once": ("d.csv", text("x,y\n1,a\n2,b\n3,a\n4,b\n5,c\n"), "only one sample"),
    "target all unique": ("d.csv", text("x,y\n1,a\n2,b\n3,c\n4,d\n"), "identifier"),
    "whole numbers all unique": ("d.csv", text("x,y\n1,5\n2,6\n3,7\n4,9\n"), "identifier"),
    "infinite": ("d.csv", text("x,y\n1,a\ninf,b\n3,a\n4,b\n"), "infinite"),
    "truncated parquet": ("d.parquet", truncated_parquet, "damaged"),
    "text as parquet": ("d.parquet", text(TWO_COLUMNS), "damaged"),
    "text as arrow": ("d.arrow", text(TWO_COLUMNS), "damaged"),
    "text as npz": ("d.npz", text(TWO_COLUMNS), "NumPy archive"),
    "pickle in npz": ("d.npz", pickled_npz, "NumPy archive"),
    "text as mat": ("d.mat", text(TWO_COLUMNS), "MATLAB"),
    "csv as libsvm": ("d.libsvm", text(TWO_COLUMNS), "LIBSVM"),
    "csv as arff": ("d.arff", text(TWO_COLUMNS), "@data"),
    "unknown ending": ("d.xyz", text(TWO_COLUMNS), "known format"),
    "binary as csv": ("d.csv", text(b"\x00\x01\x02,\x07\n"), "binary"),
}
