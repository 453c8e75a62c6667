"""Method cards, generated from the registry: one page per method, and tables of all methods."""

from __future__ import annotations

import csv
import inspect
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

from toy_pictures import picture

from zeronorm.registry import PACKAGE_OF_KIND, MethodInfo, all_methods, parameters_of

HERE = Path(__file__).parent
SYSTEMATIC = HERE / "studies" / "systematic.md"
DEFAULTS = HERE / "studies" / "defaults.md"
FRESH = HERE / "studies" / "defaults-fresh.md"
TESTS = HERE.parent / "tests"
# Other ways to write the authors of a reference.
SAME_AUTHORS = {
    "Weston, Elisseeff, Schölkopf & Tipping 2003": "Weston et al. 2003",
    "Huang, King & Lyu 2008": "Huang et al. 2008",
    "splicing: Zhu et al. 2020": "Zhu et al. 2020",
    "Hochreiter & Obermayer 2004, 2006": "Hochreiter & Obermayer 2004; Hochreiter & Obermayer 2006",
}
# Every selector accepts these backends; tests/test_docs.py checks that it selects the same features with each.
BACKENDS = "NumPy, data frames, sparse matrices, files on disk, Dask, arrays on a GPU (torch, CuPy)"
# Text for methods where it depends on an option, measured with the default and with another value.
GPU_TEXTS = {"rfe": "read 2 times, column by column; with a step above 1 data stay there"}
# Errors that the stopping rule or filter of a method bounds; the pages of the methods state the assumptions.
ERROR_CONTROL = {
    "dummy-selector": "false discovery rate",
    "knockoff-selector": "false discovery rate",
    "probe-selector": "false-selection rate, FDR or FWER against probes",
    "stability-selection": "expected number of false selections",
    "consensus": "expected number of false selections (with halves)",
    "gram-schmidt": "risk of one random probe",
    "gram-schmidt-relief": "risk of one random probe",
}


def write_cards(folder: Path) -> None:
    """Write one page per method, an index, and tables of abilities and measured ranks."""
    folder.mkdir(exist_ok=True)
    methods = all_methods()
    for method in methods:
        (folder / f"{method.name}.rst").write_text(card(method), encoding="utf-8")
    (folder / "index.rst").write_text(index(methods), encoding="utf-8")
    (folder / "abilities.inc").write_text(abilities(methods), encoding="utf-8")
    (folder / "gains.inc").write_text(gains(), encoding="utf-8")
    (folder / "shapes.inc").write_text(shapes(), encoding="utf-8")
    (folder / "fresh-ranks.inc").write_text(fresh_ranks(), encoding="utf-8")


@cache
def measured_ranks() -> dict[str, tuple[str, str, str]]:
    """Mean ranks at 20 features over all, wide and tall data, from the page of the systematic study."""
    _, _, section = SYSTEMATIC.read_text(encoding="utf-8").partition("## Mean ranks on wide and on tall data")
    rows = re.findall(
        r"^\| ([\w-]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", section.partition("\n## ")[0], re.M
    )
    return {name: (overall, wide, tall) for name, overall, wide, tall in rows}


@cache
def gains_of_defaults(page: Path = FRESH) -> dict[str, tuple[str, str, str]]:
    """Number of data sets, mean gain over the Fisher score in points and p-value of each method."""
    _, _, section = page.read_text(encoding="utf-8").partition("## Against the Fisher score")
    rows = re.findall(
        r"^\| ([\w-]+) \| (\d+) \| ([-+][\d.]+) \| [-+\d.]+ \| ([\d.e-]+) \|",
        section.partition("\n## ")[0],
        re.M,
    )
    return {name: (sets, gain, p) for name, sets, gain, p in rows}


UNFAIR = "| scikit-learn RFE |"  # run with a step of a tenth of all features in these studies, see docs/comparison.rst


def gains() -> str:
    """The table of gains over the Fisher score, from the page of the study of defaults."""
    return _table_of(DEFAULTS, "## Against the Fisher score")


def fresh_ranks() -> str:
    """Mean ranks on the data that were not used before."""
    return _table_of(FRESH, "## Mean ranks")


def _table_of(page: Path, title: str) -> str:
    """The table under a title of the page of a study."""
    _, _, section = page.read_text(encoding="utf-8").partition(title)
    lines = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    lines = [line for line in lines if not line.startswith(UNFAIR)]
    cells = [[re.sub(r"^-(?=\d)", "−", cell.strip()) for cell in line.split("|")[1:-1]] for line in lines]
    return "\n".join(table(cells[0], cells[2:]))


# Methods of each family in the table of the page on the comparison; the page of the study has all.
SHOWN_RANKS = (
    *("optimal-brain-damage", "l1-svm", "lasso", "kernel-multiplicative-update", "fsv", "zeronorm-logistic"),
    *("perceptron-rfe", "potential-svm", "logistic-lasso", "arom", "zeronorm-svm", "rfe", "ard", "golub"),
    *("shrunken-centroids", "fisher", "relief", "random"),
)


def shapes() -> str:
    """Mean ranks on wide and on tall data, the best on wide data first."""
    ranks = measured_ranks()
    order = sorted(SHOWN_RANKS, key=lambda name: float(ranks[name][1]))
    rows = [[name, *ranks[name][1:]] for name in order]
    return "\n".join(table(["method", "wide, 7 sets (p > n)", "tall, 7 sets (n > p)"], rows))


@cache
def references() -> dict[str, tuple[str, str]]:
    """Full text and link (a DOI or an address) of every reference by its authors and year.

    Papers that several methods share are in references.csv; a method may bring its own where it is registered.
    """
    with (HERE / "references.csv").open(encoding="utf-8") as stream:
        shared = {row["key"]: (row["text"], row["link"]) for row in csv.DictReader(stream)}
    own = {key: paper for method in all_methods() for key, paper in method.papers.items()}
    return dict(sorted((own | shared).items()))


@cache
def gpu_readings() -> dict[str, float]:
    """How often each selector copies data from a GPU to the host, from docs/gpu.csv (see docs/measure_gpu.py)."""
    with (HERE / "gpu.csv").open(encoding="utf-8") as stream:
        return {row["method"]: float(row["readings"]) for row in csv.DictReader(stream)}


def on_gpu(readings: float | None) -> str:
    """A text for how often data are copied from a GPU to the host."""
    if readings is None:
        return "not measured yet"
    if readings < 0.1:
        return "data stay there"
    if readings < 1.5:
        return "read once"
    return f"read {readings:.0f} times" if readings <= 20 else "read many times"


def cited(reference: str) -> list[str]:
    """Keys of the references that a registered method names."""
    for written, key in SAME_AUTHORS.items():
        reference = reference.replace(written, key)
    return [key for part in reference.split(";") for key in references() if part.strip().startswith(key)]


def full_reference(key: str) -> str:
    """One reference with its link."""
    text, link = references()[key]
    text = f"\\ {text}"  # or initials would start a numbered list
    if not link:
        return text
    shown = link if link.startswith("http") else f"doi:{link}"
    shown = re.sub(r"([<>])", r"\\\1", shown)  # some identifiers hold them
    address = link if link.startswith("http") else f"https://doi.org/{quote(link, safe='/:;()')}"
    return f"{text} `{shown} <{address}>`__"


def plain(text: str) -> str:
    """Registered text with the markup of reStructuredText escaped, such as |w|."""
    return re.sub(r"([*|_`\\])", r"\\\1", text)


def card(method: MethodInfo) -> str:
    """The page of one method."""
    title = method.cls.__name__
    lines = [title, "=" * len(title), ""]
    lines += [f":{name}: {value}" for name, value in properties(method).items()] + [""]
    for heading, body in sections(method).items():
        lines += [heading, "-" * len(heading), "", *body, ""]
    return "\n".join(lines)


def sections(method: MethodInfo) -> dict[str, list[str]]:
    """The sections of a page by heading."""
    is_ours = method.cls.__module__.startswith("zeronorm.")
    backend = PACKAGE_OF_KIND[method.kind] if is_ours else method.cls.__module__  # of another package
    doc = inspect.getdoc(method.cls) or ""
    found = {"What it does": doc.partition("\nParameters\n----------")[0].splitlines()}
    if shown := picture(method.name):
        found["On the toy problem"] = shown
    elif is_ours and method.kind != "transformer":
        found["On the toy problem"] = [
            f"Not measured yet: ``python docs/toy/measure.py {method.name}`` draws it."
        ]
    if method.avoid:
        found["When not to use it"] = [f"Not for: {plain(method.avoid)}."]
    found |= {
        "Measured rank": [measured(method)],
        "References": [
            *(f"- {full_reference(key)}" for key in cited(method.reference)),
            *([] if cited(method.reference) else [method.reference]),
            "",
            f"Misprints corrected: {plain(method.misprints) or 'none is known.'}",
        ],
        "Tested against": [tested(method)],
        "Options and defaults": [
            *([f"On the command line: ``zeronorm methods {method.name}``.", ""] if _selects(method) else []),
            *table(["option", "default"], options(method)),
        ],
        "Reference": [f".. autoclass:: {backend}.{method.cls.__name__}"],
    }
    return found


def measured(method: MethodInfo) -> str:
    """A text with the results of a method in the two studies."""
    results = []
    if method.name in measured_ranks():
        overall, wide, tall = measured_ranks()[method.name]
        results.append(
            f"Mean rank {overall} of {len(measured_ranks())} methods over 14 data sets at 20 features (wide {wide}, "
            f"tall {tall}; ``zeronorm study systematic``, 2026-11-15, defaults of that time); differences below 16 "
            "are not significant."
        )
    if method.name in gains_of_defaults():
        sets, gain, p = gains_of_defaults()[method.name]
        results.append(
            f"Mean gain over the Fisher score {gain.replace('-', '−')} points of balanced error on {sets} data sets "
            f"that were not used to choose defaults (p = {p}; ``zeronorm study defaults-fresh``, 2026-11-17)."
        )
    if not results:
        reason = "it is no selector" if not _selects(method) else "it wraps a selector or was not a candidate"
        return f"Not in the studies: {reason}. :doc:`/comparison` has those that are."
    return " ".join([*results, "See :doc:`/comparison`."])


def tested(method: MethodInfo) -> str:
    """A text with the independent check of a method and the files of its tests."""
    stem = Path(inspect.getfile(method.cls)).stem.lstrip("_")
    files = sorted(TESTS.glob(f"*/**/test_{stem}.py")) or [
        file
        for file in sorted(TESTS.glob("selectors/*/test_*.py"))
        if method.cls.__name__ in file.read_text(encoding="utf-8").partition("\n\n\n")[0]
    ]
    paths = ", ".join(f"``{file.relative_to(TESTS.parent).as_posix()}``" for file in files)
    oracle = plain(method.oracle[:1].upper() + method.oracle[1:]) if method.oracle else "Its own tests"
    return f"{oracle}." + (f" See {paths}." if paths else "")


def _selects(method: MethodInfo) -> bool:
    return method.kind in ("selector", "meta")


def options(method: MethodInfo) -> list[list[str]]:
    """Name and default of each parameter."""
    return [[f"``{row['name']}``", f"``{row['default']}``"] for row in parameters_of(method.cls)]


def properties(method: MethodInfo) -> dict[str, str]:
    """Properties of a method by heading."""
    found = {"Name": f"``{method.name}``", "Family": method.family, "Tasks": ", ".join(method.tasks) or "any"}
    if method.cost:
        found["Cost"] = plain(method.cost) + " (n samples, p features)"
    if not _selects(method):
        return found | {"Backends": "NumPy arrays and data frames"}
    able = can(method)
    found |= {
        "Backends": able["backends"],
        "Data on a GPU": GPU_TEXTS.get(method.name, able["GPU"]),
        "Groups": able["groups"],
        "Sample weights": able["weights"],
        "Missing values": able["NaN"],
    }
    if able["error control"]:
        found["Error control"] = able["error control"]
    return found


def can(method: MethodInfo) -> dict[str, str]:
    """What a selector can do, read from its class."""
    parameters = inspect.signature(method.cls).parameters
    of_wrapped = "as the wrapped" if "selector" in parameters else ""
    return {
        "tasks": ", ".join(method.tasks),
        "groups": "yes" if "feature_groups" in parameters else of_wrapped or "no",
        "weights": "yes" if "sample_weight" in inspect.signature(method.cls.fit).parameters else "no",
        "sparse": _ability(method, "_accepts_sparse"),
        "GPU": of_wrapped or "as the combined"
        if method.kind == "meta"
        else on_gpu(gpu_readings().get(method.name)),
        "cost": plain(method.cost),
        "backends": BACKENDS
        if _ability(method, "_accepts_sparse") != "no"
        else BACKENDS.replace("sparse matrices, ", ""),
        "NaN": _ability(method, "_allow_nan"),
        "error control": ERROR_CONTROL.get(method.name, ""),
    }


def _ability(method: MethodInfo, name: str) -> str:
    """Whether a class has an ability; a property means that it depends on the wrapped selector."""
    found = getattr(method.cls, name, False)
    return "as the wrapped" if isinstance(found, property) else "yes" if found else "no"


def abilities(methods: list[MethodInfo]) -> str:
    """Table of what each selector can do."""
    selectors = [m for m in methods if m.kind in ("selector", "meta")]
    heads = ["tasks", "groups", "weights", "sparse", "GPU", "NaN", "cost", "error control"]
    rows = [
        [f":doc:`{m.cls.__name__} </methods/{m.name}>`", m.family, *(can(m)[head] for head in heads)]
        for m in selectors
    ]
    note = (
        "*GPU*: whether data on a GPU stay there while features are selected, or how often all data are copied to the "
        "host (``python docs/measure_gpu.py``, default settings)."
    )
    return "\n".join([note, "", ".. rst-class:: abilities", "", *table(["method", "family", *heads], rows)])


def index(methods: list[MethodInfo]) -> str:
    """Table of all methods with their first lines."""
    lines = ["Methods", "=======", ""]
    titles = {
        "selector": "Selectors",
        "meta": "Around any selector",
        "model": "Models that do not select input features",
        "transformer": "Transformers",
    }
    for kind, title in titles.items():
        rows = [
            [f":doc:`{m.cls.__name__} <{m.name}>` ``{m.name}``", m.family, m.summary]
            for m in methods
            if m.kind == kind
        ]
        lines += [title, "-" * len(title), "", *table(["class and name", "family", "what it does"], rows)]
    lines += [".. toctree::", "   :hidden:", ""] + [f"   {m.name}" for m in methods] + [""]
    return "\n".join(lines)


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """A table of reStructuredText, as lines; cells must be one line each."""
    if not rows:
        return []
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in [heads, *rows]:
        for column, cell in enumerate(row):
            lines.append(f"   {'* -' if column == 0 else '  -'} {cell}".rstrip())
    return [*lines, ""]
