"""Two results side by side: their settings, their errors, and the features that both have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zeronorm.app._fields import label_of
from zeronorm.app._runs import RunError, WatchedRun
from zeronorm.result._sentences import error_sentence
from zeronorm.workflow._result import Result


@dataclass(frozen=True)
class SideBySide:
    """Rows of a table with two results, and features that both or one of them selected.

    Parameters
    ----------
    rows : heading and the text of each result.
    both, only_first, only_second : names of features.
    same_data : whether both used the same file.
    """

    rows: list[tuple[str, str, str]]
    both: list[str]
    only_first: list[str]
    only_second: list[str]
    same_data: bool


def side_by_side(first: WatchedRun, second: WatchedRun) -> SideBySide:
    """Compare two finished runs."""
    a, b = _result(first), _result(second)
    rows = [(title, left, right) for (title, left), (_, right) in zip(_rows(a), _rows(b), strict=True)]
    names = sorted({*_options(first), *_options(second)})
    rows += [
        (label_of(name), _options(first).get(name, "as usual"), _options(second).get(name, "as usual"))
        for name in names
        if _options(first).get(name) != _options(second).get(name)
    ]
    of_b, of_a = set(b.features), set(a.features)
    return SideBySide(
        [row for row in rows if row[1] or row[2]],
        [name for name in a.features if name in of_b],
        [name for name in a.features if name not in of_b],
        [name for name in b.features if name not in of_a],
        a.data.get("sha256") == b.data.get("sha256") and a.data.get("source") == b.data.get("source"),
    )


def _result(run: WatchedRun) -> Result:
    file = run.file("result.json")
    if file is None:
        raise RunError(f"The run {run.name!r} has no result yet. Choose two finished runs.")
    return Result.read(file)


def _options(run: WatchedRun) -> dict[str, str]:
    return {name: str(value) for name, value in run.arguments.items() if name != "data"}


def _rows(result: Result) -> list[tuple[str, str]]:
    data, found = result.data, result.procedure
    stability = found.get("stability") or {}
    return [
        ("Result", result.headline),
        ("Outcome", str(data.get("target", ""))),
        ("Samples", str(data.get("n_samples", ""))),
        ("Features in the table", str(data.get("n_features", ""))),
        ("Method", _method(result)),
        ("Error", error_sentence(found) if found else _errors(result)),
        ("Stability", _number(stability.get("value"))),
        ("Selected features", str(len(result.features)) if result.kind == "selection" else ""),
        ("Warnings", str(len(result.warnings))),
    ]


def _method(result: Result) -> str:
    return result.chosen_method or ", ".join(method["name"] for method in result.methods)


def _errors(result: Result) -> str:
    return "; ".join(f"{row['method']}: {_number(row['value'])}" for row in result.table)


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else ""
