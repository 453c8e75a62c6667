"""The result of a run: features, records, choice, notes and provenance.

Records and the values of figures are stored as Parquet, everything else as JSON, nothing as a pickle.
"""

from __future__ import annotations

import html
import json
import math
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from zeronorm.evaluation._records import frame_of_rows
from zeronorm.result._files import feature_rows, load, method_rows
from zeronorm.result._lists import ListedFeature, features_by_list
from zeronorm.result._plain import finite
from zeronorm.result._schema import Mismatch, check, described, parsed
from zeronorm.result._sentences import error_sentence, headline

FORMAT = "zeronorm-result"
FORMAT_VERSION = 2
FEATURES_IN_REPR = 10
BESIDE = ("records", "model", "figures", "run")  # in files of their own, or in memory only
ANSWERS = ("substitutes", "learning_curve")  # fields whose names in Python begin with "stored_"


@dataclass(frozen=True)
class SelectedFeature:
    """One selected feature.

    Parameters
    ----------
    rank : position in the order of the method, from 1.
    name : name of the column in the file.
    column : index of the column in the file, from 0; the levels of a text column have the same one.
    index : index of the feature in the encoded table, from 0.
    score : score of the method, greater is better; None where it has none.
    mean, scale : mean and standard deviation over all samples.
    frequency : share of the outer folds in which it was selected.
    class_means : mean per class (the share of ones for a column of zeros and ones); None for regression.
    direction : the class in which the feature is higher, or whether it rises with the target, as text.
    effect, effect_kind : Cohen's d ("cohens_d"), "eta_squared" with more than two classes, or the
        "correlation" with the target in regression. None for a feature that is constant within each class, whose
        Cohen's d is infinite.
    fold_change : ratio of the class means, where no value is negative and there are two classes.
    p_value, q_value : p-value of the feature alone, and adjusted for the false discovery rate over all features.
        They come from the samples that were used to select it: use them for orientation, not as evidence.
    selection_q_value : the smallest false discovery rate at which the method selects it; None for methods without one.
    annotation : descriptions of the feature in the data, such as the title of a gene, by heading; None without any.
    coefficient : weight in the linear predictor on the standardised selected features; None where there is none.
    smallest_list : the smallest list that has it: "fewest", "recommended" or "all"; empty where there are no lists, or
        where the procedure does not predict better than chance.
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
    selection_q_value: float | None = None
    coefficient: float | None = None
    annotation: dict[str, str] | None = None
    smallest_list: str = ""

    @property
    def log2_fold_change(self) -> float | None:
        """The logarithm of the ratio, which is symmetric: 1 for twice and -1 for half the value."""
        return None if self.fold_change is None else math.log2(self.fold_change)


@dataclass(frozen=True, repr=False)
class ResultData:
    """The result of a run as plain values, with its records and its model; see ``zeronorm.Result``."""

    kind: str
    data: dict[str, Any]
    methods: list[dict[str, Any]]
    chosen_method: str | None = None
    size: dict[str, Any] = field(default_factory=dict)
    procedure: dict[str, Any] = field(default_factory=dict)
    proof: dict[str, Any] = field(default_factory=dict)
    panel: dict[str, Any] = field(default_factory=dict)
    stored_substitutes: dict[str, Any] = field(default_factory=dict)
    stored_learning_curve: dict[str, Any] = field(default_factory=dict)
    table: list[dict[str, Any]] = field(default_factory=list)
    selected: list[SelectedFeature] = field(default_factory=list)
    listed: list[ListedFeature] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    records: Any = field(default=None, compare=False, repr=False)
    model: Any = field(default=None, compare=False, repr=False)
    run: Any = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        """A summary of the result in a few lines."""
        n_samples, n_features = self.data.get("n_samples"), self.data.get("n_features")
        kind = "test of a list" if self.panel else self.kind
        lines = [f"Result of a {kind} on {n_samples} samples and {n_features} features", self.headline]
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
    def lists(self) -> dict[str, list[str]]:
        """The names of the features in three nested lists: "fewest", "recommended" and "all".

        Empty where no number of features was chosen inside the folds. The lists are empty where the procedure does not
        predict better than chance: then nothing is recommended.
        """
        return {name: [feature.name for feature in found] for name, found in features_by_list(self).items()}

    @property
    def choice(self) -> dict[str, Any]:
        """The chosen method and number of features, the rule that chose it, and the sizes that were tried."""
        return {"method": self.chosen_method, **self.size}

    @property
    def chance(self) -> float | None:
        """The metric of a predictor without features, on the same folds."""
        rows = [self.procedure] if self.procedure else self.table
        return rows[0].get("chance") if rows else None

    @property
    def headline(self) -> str:
        """The main finding in one line."""
        return headline(self)

    def name_of(self, index: int) -> str:
        """Name of a feature, or its number when the name was not kept."""
        return self.names.get(index, f"feature {index}")

    # -- tables ----------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """The selected features, or the methods of a comparison, as a polars (else pandas) frame."""
        rows = feature_rows(self.selected) if self.kind == "selection" else method_rows(self.table)
        if not rows:
            raise ValueError(
                "Nothing was selected, so there is no table. See 'records' for what was measured."
            )
        return frame_of_rows(rows)

    def _repr_html_(self) -> str:
        """The headline, the error and the first features, for notebooks."""
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

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """The result that ``save`` wrote to a folder; a folder with records.parquet alone is enough."""
        return load(cls, Path(folder))

    def to_dict(self) -> dict[str, Any]:
        """The values of the JSON file as a dict; values that are not finite become None.

        Records, model and the values of figures are left out: they have their own files.
        """
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in BESIDE}
        kept["selected"] = [asdict(feature) for feature in self.selected]
        kept["listed"] = [asdict(feature) for feature in self.listed]
        kept |= {name: kept.pop(f"stored_{name}") for name in ANSWERS}
        content: dict[str, Any] = finite(
            {"format": FORMAT, "format_version": FORMAT_VERSION, "headline": self.headline, **kept}
        )
        return content

    def to_json(self) -> str:
        """The result as JSON text, one field per line."""
        items = (f"{json.dumps(key)}: {_dump(value)}" for key, value in self.to_dict().items())
        return "{\n" + ",\n".join(items) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The result from JSON text; ValueError for any other text."""
        try:
            content = parsed(text)
        except Mismatch as error:
            raise ValueError(f"The result cannot be read: {error}. Run the selection again.") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError("The JSON file is not a result of zeronorm. Give the result.json of a run.")
        version = content.get("format_version")
        if version != FORMAT_VERSION:
            raise ValueError(
                f"The result has format version {version!r}, but this program reads {FORMAT_VERSION}. Run it again."
            )
        try:
            check(content, schema())
        except Mismatch as error:
            raise ValueError(
                f"The result is incomplete or damaged: {error}. Run the selection again."
            ) from error
        for name in ("format", "format_version", "headline"):
            del content[name]
        content["selected"] = [SelectedFeature(**feature) for feature in content["selected"]]
        content["listed"] = [ListedFeature(**feature) for feature in content.get("listed", ())]
        content["names"] = {int(index): name for index, name in content["names"].items()}
        content |= {f"stored_{name}": content.pop(name, {}) for name in ANSWERS}
        return cls(**content)

    @classmethod
    def read(cls, file: Path) -> Self:
        """The result in a JSON file, without its records."""
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"The file {str(file)!r} is damaged: it is not UTF-8. Run the selection again."
            ) from error
        return cls.from_json(text)


def schema() -> dict[str, Any]:
    """The JSON schema of result.json."""
    return described("result")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "–" if value is None else html.escape(str(value))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
