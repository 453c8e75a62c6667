"""What a run leaves behind besides its records: plain values that go to JSON and back, never a pickle."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "zeronorm-result"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class SelectedFeature:
    """One selected feature.

    Parameters
    ----------
    rank : place in the order of the method, from 1.
    name : as in the file.
    column : its place in the file, from 0; levels of one text column share it.
    index : its column in the encoded table, from 0.
    score : the method's score, None where it has none.
    mean, scale : mean and standard deviation over all samples, for using the features elsewhere.
    frequency : share of the outer training parts in which it was selected, None without records.
    """

    rank: int
    name: str
    column: int
    index: int
    score: float | None
    mean: float
    scale: float
    frequency: float | None = None


@dataclass(frozen=True)
class RunResult:
    """Everything the report needs besides the records.

    Parameters
    ----------
    kind : "selection" or "comparison".
    data : source, target, task, n_samples, n_features, class_counts, sha256.
    methods : name, class, reference and parameters of each method.
    chosen_method : the method of the selection, None for a comparison.
    size : chosen number of features, the rule that chose it, and the sizes tried.
    selected : the selected features.
    names : names of the features that appear in figures, by index.
    notes : what was inferred or changed in the data, and statements about the result.
    warnings : what the reader should look at, in words.
    provenance : command, versions, seed, folds, start and duration.
    figures : figure data that come from the table and not from the records.
    """

    kind: str
    data: dict[str, Any]
    methods: list[dict[str, Any]]
    chosen_method: str | None = None
    size: dict[str, Any] = field(default_factory=dict)
    selected: list[SelectedFeature] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as they stand in the JSON file; values that are not finite become None."""
        content: dict[str, Any] = finite({"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)})
        return content

    def to_json(self) -> str:
        """JSON text, one field per line."""
        fields = (f"{json.dumps(key)}: {_dump(value)}" for key, value in self.to_dict().items())
        return "{\n" + ",\n".join(fields) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> RunResult:
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
        try:
            content["selected"] = [SelectedFeature(**feature) for feature in content["selected"]]
            content["names"] = {int(index): name for index, name in content["names"].items()}
            return cls(**content)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ValueError(f"The result is incomplete: {error}. Run the selection again.") from error

    @classmethod
    def read(cls, file: Path) -> RunResult:
        """The result in a file."""
        return cls.from_json(file.read_text(encoding="utf-8"))

    def name_of(self, index: int) -> str:
        """Name of a feature, or its number when the name was not kept."""
        return self.names.get(index, f"feature {index}")


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
