"""The result of a run: features, records, choice, notes and provenance, to look at, to draw and to save.

Records and the raw cells of figures go to Parquet and back, everything else to JSON, nothing to a pickle.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from zeronorm._lazy import service

FORMAT = "zeronorm-result"
FORMAT_VERSION = 2
SCHEMA_FILE = Path(__file__).with_name("result.schema.json")
FEATURES_IN_REPR = 10
BESIDE = ("records", "model", "figures")  # in files of their own


@dataclass(frozen=True)
class SelectedFeature:
    """One selected feature.

    Parameters
    ----------
    rank : place in the order of the method, from 1.
    name : as in the file.
    column : its place in the file, from 0; levels of one text column share it.
    index : its column in the encoded table, from 0.
    score : the method's score, bigger is better; None where it has none.
    mean, scale : mean and standard deviation over all samples, for using the feature elsewhere.
    frequency : share of the outer training parts in which it was selected.
    class_means : mean per class (the share of ones for a column of zeros and ones); None for regression.
    direction : where the feature is high, in words.
    effect, effect_kind : Cohen's d ("cohens_d"), "eta_squared" with more than two classes, or the
        "correlation" with the target in regression. None for a feature with one value in each class, whose Cohen's d
        has no bound.
    fold_change : ratio of the class means, where all values are positive and there are two classes.
    p_value, q_value : of the feature alone, and adjusted for the false discovery rate over all features. They
        come after selection on the same samples: orientation, not evidence.
    coefficient : weight in the linear predictor on the standardised selected features; None where there is none.
    """

    rank: int
    name: str
    column: int
    index: int
    score: float | None
    mean: float
    scale: float
    frequency: float | None = None
    class_means: dict[str, float] | None = None
    direction: str = ""
    effect: float | None = None
    effect_kind: str = ""
    fold_change: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    coefficient: float | None = None


@dataclass(frozen=True, repr=False)
class Result:
    """What ``select`` and ``compare`` return.

    Parameters
    ----------
    kind : {"selection", "comparison"}
        What was run.
    data : dict
        Source, target, task, n_samples, n_features, class_counts and sha256 of the data.
    methods : list of dict
        Name, class, reference and parameters of each method.
    chosen_method : str or None, default=None
        The method of the selection. None for a comparison.
    size : dict, default={}
        The chosen number of features, the rule that chose it and the numbers that were tried.
    procedure : dict, default={}
        The whole procedure on the outer folds: metric, value with interval (for the models fitted on the training
        parts), chance, p-value, stability and the number of features in each fold. Empty for a comparison.
    table : list of dict, default=[]
        The same for each method of a comparison.
    selected : list of SelectedFeature, default=[]
        The selected features.
    names : dict, default={}
        Names of the features that appear in figures, by position.
    notes : list of str, default=[]
        What was inferred or changed in the data, and statements about the result.
    warnings : list of str, default=[]
        What the reader should look at.
    provenance : dict, default={}
        Command, versions, seeds, folds, start and duration.
    figures : dict, default={}
        Numbers of figures that come from the data and not from the records.
    records : DataFrame or None, default=None
        The frame of ``evaluate``: one row per split, method and size.
    model : LinearModel or None, default=None
        The predictor on the selected features. None for a comparison.

    Examples
    --------
    >>> import zeronorm
    >>> result = zeronorm.select("linear-toy", method="fisher", features=2, permutations=0)
    >>> result.kind, result.chosen_method, len(result.selected)
    ('selection', 'fisher', 2)
    """

    kind: str
    data: dict[str, Any]
    methods: list[dict[str, Any]]
    chosen_method: str | None = None
    size: dict[str, Any] = field(default_factory=dict)
    procedure: dict[str, Any] = field(default_factory=dict)
    table: list[dict[str, Any]] = field(default_factory=list)
    selected: list[SelectedFeature] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    records: Any = field(default=None, compare=False, repr=False)
    model: Any = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        """What was run and found, in a few lines; everything else is in the attributes."""
        from zeronorm.workflow.measured import error_sentence

        n_samples, n_features = self.data.get("n_samples"), self.data.get("n_features")
        lines = [f"Result of a {self.kind} on {n_samples} samples and {n_features} features", self.headline]
        if self.kind == "selection":
            shown = ", ".join(self.features[:FEATURES_IN_REPR])
            more = len(self.features) - FEATURES_IN_REPR
            lines += [error_sentence(self.procedure), shown + (f" and {more} more" if more > 0 else "")]
        return "\n".join(line for line in lines if line)

    @property
    def features(self) -> list[str]:
        """Names of the selected features, best first."""
        return [feature.name for feature in self.selected]

    @property
    def choice(self) -> dict[str, Any]:
        """What was chosen, and how: the method, the number of features, the rule, the sizes tried."""
        return {"method": self.chosen_method, **self.size}

    @property
    def chance(self) -> float | None:
        """The metric of a predictor that sees no feature, on the same folds."""
        rows = [self.procedure] if self.procedure else self.table
        return rows[0].get("chance") if rows else None

    @property
    def headline(self) -> str:
        """What was found, in one line."""
        from zeronorm.workflow.measured import headline

        return headline(self)

    def name_of(self, index: int) -> str:
        """Name of a feature, or its number when the name was not kept."""
        return self.names.get(index, f"feature {index}")

    # -- tables and figures ----------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """The selected features, or the methods of a comparison, as a polars (else pandas) frame."""
        from zeronorm.evaluation.records import frame_of_rows
        from zeronorm.workflow.files import feature_rows, method_rows

        rows = feature_rows(self.selected) if self.kind == "selection" else method_rows(self.table)
        if not rows:
            raise ValueError(
                "Nothing was selected, so there is no table. See 'records' for what was measured."
            )
        return frame_of_rows(rows)

    def plot_errors(self, ax: Any = None) -> Any:
        """Error against the number of features, as a matplotlib figure."""
        return self.plot("error", ax)

    def plot_stability(self, ax: Any = None) -> Any:
        """Stability of the selected sets against their size, as a matplotlib figure."""
        return self.plot("stability", ax)

    def plot_path(self, ax: Any = None) -> Any:
        """Which features are in the subset of each size, as a matplotlib figure."""
        return self.plot("path", ax)

    def plot(self, chart: str, ax: Any = None) -> Any:
        """Any chart of the report by name, on ``ax`` or as a new matplotlib figure."""
        return service("figure")(chart, self.records, self, ax=ax)

    def _repr_html_(self) -> str:
        """The headline, the error and the first features, for notebooks."""
        from zeronorm.workflow.files import feature_rows, method_rows
        from zeronorm.workflow.measured import error_sentence

        rows = feature_rows(self.selected) if self.kind == "selection" else method_rows(self.table)
        shown = {
            "rank",
            "name",
            "score",
            "frequency",
            "direction",
            "effect",
            "method",
            "value",
            "features",
            "chance",
        }
        heads = [name for name in (rows[0] if rows else {}) if name in shown]
        cells = [[_cell(row[name]) for name in heads] for row in rows[:20]]
        parts = [f"<p><strong>{html.escape(self.headline)}</strong></p>"]
        if self.procedure:
            parts.append(f"<p>{html.escape(error_sentence(self.procedure))}</p>")
        parts.append(
            "<table><thead><tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr></thead><tbody>"
        )
        parts += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells]
        parts.append("</tbody></table>")
        parts += [f"<p>{html.escape(warning)}</p>" for warning in self.warnings]
        return "\n".join(parts)

    # -- files -----------------------------------------------------------------------------------------

    def report(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the HTML report to a file, or as report.html into a folder."""
        from zeronorm.workflow.files import write_report

        return write_report(self, Path(path), force=force)

    def save(self, folder: str | os.PathLike[str], *, model: bool = False, force: bool = False) -> Path:
        """Write result.json, records.parquet, report.html and, for a selection, selected.csv and figures.parquet.

        With ``model`` also the predictor on the selected features, as model.json.
        """
        from zeronorm.workflow.files import save

        return save(self, Path(folder), with_model=model, force=force)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """The result that ``save`` wrote to a folder; a records.parquet alone will do."""
        from zeronorm.workflow.files import load

        return load(cls, Path(folder))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as they stand in the JSON file; values that are not finite become None.

        Records, model and the raw cells of figures are not among them: they have files of their own.
        """
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in BESIDE}
        kept["selected"] = [asdict(feature) for feature in self.selected]
        content: dict[str, Any] = finite(
            {"format": FORMAT, "format_version": FORMAT_VERSION, "headline": self.headline, **kept}
        )
        return content

    def to_json(self) -> str:
        """JSON text, one field per line."""
        items = (f"{json.dumps(key)}: {_dump(value)}" for key, value in self.to_dict().items())
        return "{\n" + ",\n".join(items) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The result in a JSON text; a ValueError when it is not one."""
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"The result is not valid JSON: {error}. Run the selection again.") from error
        if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
            raise ValueError("The JSON file is not a result of zeronorm. Give the result.json of a run.")
        version = content.pop("format_version", None)
        if version != FORMAT_VERSION:
            raise ValueError(
                f"The result has format version {version!r}, but this program reads {FORMAT_VERSION}. Run it again."
            )
        content.pop("headline", None)
        try:
            content["selected"] = [SelectedFeature(**feature) for feature in content["selected"]]
            content["names"] = {int(index): name for index, name in content["names"].items()}
            return cls(**content)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ValueError(f"The result is incomplete: {error}. Run the selection again.") from error

    @classmethod
    def read(cls, file: Path) -> Self:
        """The result in a JSON file, without its records."""
        return cls.from_json(file.read_text(encoding="utf-8"))


def schema() -> dict[str, Any]:
    """The JSON schema of result.json."""
    content: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return content


# -- The raw cells of figures as a table --------------------------------------------------------------


PLACES = ("i", "j", "k")
KINDS = {"bool": bool, "int": int, "float": float, "str": str}


def figure_cells(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Columns of a table with one row per cell: figure, part, place in the part, kind, and number or text."""
    cells: dict[str, list[Any]] = {name: [] for name in ("figure", "part", *PLACES, "kind", "number", "text")}
    for figure, parts in finite(figures).items():
        for part, content in parts.items():
            for place, value in _leaves(content):
                padded = (*place, *[None] * (len(PLACES) - len(place)))
                is_number = isinstance(value, (bool, int, float))
                row = (
                    *(figure, part, *padded, type(value).__name__),
                    float(value) if is_number else None,
                    value if isinstance(value, str) else None,
                )
                for column, cell in zip(cells.values(), row, strict=True):
                    column.append(cell)
    return cells


def _leaves(content: Any, place: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every value with its place; an empty list is a value."""
    if not isinstance(content, list) or not content:
        yield place, content
        return
    for number, item in enumerate(content):
        yield from _leaves(item, (*place, number))


def figures_from(cells: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The figures again, from the rows of the table of their cells."""
    figures: dict[str, dict[str, Any]] = {}
    for row in cells:
        parts = figures.setdefault(row["figure"], {})
        kind = row["kind"]
        value: Any = [] if kind == "list" else None
        if kind in KINDS:
            value = KINDS[kind](row["text"] if kind == "str" else row["number"])
        place = [row[name] for name in PLACES if row[name] is not None]
        if not place:
            parts[row["part"]] = value
            continue
        target = parts.setdefault(row["part"], [])
        for number in place[:-1]:
            if len(target) == number:
                target.append([])
            target = target[number]
        target.append(value)
    return figures


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "–" if value is None else html.escape(str(value))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def finite(value: Any) -> Any:
    """The same value with NaN and infinities as None, arrays as lists, numbers as Python numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {_key(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _key(key: Any) -> str | int:
    return key if isinstance(key, (str, int)) else str(key)
