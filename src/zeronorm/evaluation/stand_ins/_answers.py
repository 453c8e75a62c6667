"""The answer to which other features would do as well: for each selected feature, and for the whole list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from zeronorm.evaluation._records import frame_of_rows

MOST_SIGNATURES = 10**6
Status = Literal["found", "none", "cannot be told"]


@dataclass(frozen=True)
class Substitute:
    """A feature that can stand in for a selected one.

    Parameters
    ----------
    index, name : the feature.
    correlation : with the selected feature, given the other selected ones.
    p_value : of its association with the target given the other selected features, adjusted by Holm.
    p_left : of the hypothesis that at most a fiftieth of what the selected feature adds is left once this one is given
        too, adjusted by Holm; above the level.
    p_loss : of the hypothesis that more than the accepted share is left, the largest of those of all candidates that
        are at least as correlated; at most the level.
    error : value of the metric with it in place of the selected feature, on the same folds.
    """

    index: int
    name: str
    correlation: float
    p_value: float
    p_left: float
    p_loss: float
    error: float | None


@dataclass(frozen=True)
class FeatureSubstitutes:
    """One selected feature and the features that can stand in for it.

    Parameters
    ----------
    index, name : the selected feature.
    status : "found"; "none", if no other feature is similar enough, or the samples show that something is lost with
        each of those that are; or "cannot be told".
    reason : why it cannot be told, as a clause; else empty.
    p_value : of its association with the target given the other selected features, times the number of all features,
        because it is one of the best of them.
    covered_by : names of the other selected features that hold what it would add, if it adds nothing beside them.
    substitutes : the features that can stand in, the most correlated first.
    unclear : names of features that might stand in, which these samples do not show (the first of them).
    n_tested, n_open, n_worse : number of features that were tested, that are unclear, and that passed the tests but
        predict worse.
    """

    index: int
    name: str
    status: Status
    reason: str
    p_value: float
    covered_by: tuple[str, ...]
    substitutes: tuple[Substitute, ...]
    unclear: tuple[str, ...]
    n_tested: int
    n_open: int
    n_worse: int

    def sentence(self) -> str:
        """The answer for this feature in words."""
        names = ", ".join(each.name for each in self.substitutes[:5])
        more = len(self.substitutes) - 5
        if self.status == "found":
            others = f"{names} and {more} more" if more > 0 else names
            beside = f"; of {self.n_open} more it cannot be told" if self.n_open else ""
            return f"{self.name} can be replaced by {others}{beside}."
        if self.status == "none":
            if self.n_tested == 0:
                return f"No other feature is similar enough to {self.name} to stand in for it."
            tested = (
                "The one similar feature"
                if self.n_tested == 1
                else f"None of the {self.n_tested} similar features"
            )
            return f"{tested} {'cannot' if self.n_tested == 1 else 'can'} stand in for {self.name}."
        return f"Whether others do as well as {self.name} cannot be told: {self.reason}."


@dataclass(frozen=True)
class Substitutes:
    """The features that would do as well as the selected ones.

    Parameters
    ----------
    features : one entry per selected feature.
    level : of the tests; also the largest probability of a false substitute, for each selected feature.
    largest_loss : share of what a feature adds that a substitute may lose.
    metric : name of the metric.
    error, standard_error : of the selected features on the folds.
    n_signatures : number of lists that arise if every feature is replaced by any of its substitutes, or not; at most
        ``MOST_SIGNATURES``. Single replacements were tested, not their combinations.
    best, best_error : the list with the best value of the metric among the selected one, all single replacements and
        the combination of the best of them. It is the best of many on these samples and therefore somewhat too good.
    """

    features: tuple[FeatureSubstitutes, ...]
    level: float
    largest_loss: float
    metric: str
    error: float | None
    standard_error: float | None
    n_signatures: int
    best: tuple[str, ...]
    best_error: float | None

    def __getitem__(self, name: str) -> FeatureSubstitutes:
        """The entry of a selected feature."""
        for feature in self.features:
            if feature.name == name:
                return feature
        raise KeyError(f"{name!r} is not a selected feature. Selected are {[f.name for f in self.features]}.")

    def sentence(self) -> str:
        """The result in words."""
        count = {status: sum(f.status == status for f in self.features) for status in get_args(Status)}
        n, features = len(self.features), "feature" if len(self.features) == 1 else "features"
        text = (
            f"Of {n} selected {features}, {count['found']} can be replaced by others without loss, {count['none']} "
            f"cannot, and for {count['cannot be told']} it cannot be told."
        )
        if self.n_signatures > 1:
            number = (
                f"more than {MOST_SIGNATURES:,}"
                if self.n_signatures >= MOST_SIGNATURES
                else f"up to {self.n_signatures:,}"
            )
            text += f" That makes {number} lists that the samples do not distinguish."
        return text

    def rows(self) -> list[dict[str, Any]]:
        """One row per substitute, and one for each selected feature without any."""
        blank: dict[str, Any] = dict.fromkeys(asdict(Substitute(0, "", 0.0, 0.0, 0.0, 0.0, 0.0)))
        rows = []
        for feature in self.features:
            start = {"feature": feature.name, "status": feature.status, "reason": feature.reason}
            rows += [
                {**start, "substitute": found["name"], **{name: found[name] for name in VALUES}}
                for found in [asdict(each) for each in feature.substitutes] or [blank]
            ]
        return rows

    def to_frame(self) -> Any:
        """The rows as a polars (else pandas) frame."""
        return frame_of_rows(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """All values as a dict."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Substitutes:
        """The inverse of ``to_dict``."""
        features = tuple(
            FeatureSubstitutes(
                **{
                    **each,
                    "covered_by": tuple(each["covered_by"]),
                    "unclear": tuple(each["unclear"]),
                    "substitutes": tuple(Substitute(**found) for found in each["substitutes"]),
                }
            )
            for each in content["features"]
        )
        return cls(**{**content, "features": features, "best": tuple(content["best"])})


VALUES = ("correlation", "p_value", "p_left", "p_loss", "error")
