"""A measured learning curve with its law and its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from zeronorm.evaluation._records import frame_of_rows
from zeronorm.resampling._metrics import as_metric

Verdict = Literal["helps", "does not help", "cannot be told"]


@dataclass(frozen=True)
class LearningPoint:
    """One size: mean number of training samples, mean of the metric, and its standard deviation over the draws."""

    n_train: float
    value: float
    deviation: float | None


@dataclass(frozen=True)
class Prediction:
    """The expected value with so many times as many samples, and an interval for what would be measured."""

    factor: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LearningCurve:
    """A learning curve with its fitted law and predictions.

    Parameters
    ----------
    metric : name of the metric.
    n_samples : number of samples.
    n_draws : number of draws of folds and nested training sets.
    points : the sizes, ascending; the last is that of the training samples of a whole fold.
    a, b, c : the law a + b (m / m_max)^−c, of the metric or, where greater is better, of its negative.
    now : value of the law at all samples.
    chance : value without any feature.
    predictions : at 2 and 4 times as many samples.
    verdict : "helps", "does not help" or "cannot be told": whether twice as many samples would improve the metric.
    at_chance : whether the procedure is not shown to be better than chance. Then nothing can be told: a selection may
        begin to work only with more samples.
    confidence : of the intervals.
    """

    metric: str
    n_samples: int
    n_draws: int
    points: tuple[LearningPoint, ...]
    a: float
    b: float
    c: float
    now: float
    chance: float
    predictions: tuple[Prediction, ...]
    verdict: Verdict
    at_chance: bool
    confidence: float

    def at(self, n_train: float) -> float:
        """The value of the fitted law with so many training samples."""
        value = float(self.a + self.b * (n_train / self.points[-1].n_train) ** -self.c)
        return -value if as_metric(self.metric).greater_is_better else value

    def sentence(self) -> str:
        """What more samples would change, in words."""
        metric, twice = as_metric(self.metric), self.predictions[0]
        found, now = metric.format(twice.value), metric.format(self.now)
        interval = f"{metric.format(twice.low)} to {metric.format(twice.high)}"
        change = "raise" if metric.greater_is_better else "lower"
        expected = (
            f"with twice as many the {metric.text} would be expected to be {found} ({interval}), and it is "
            f"{now} now"
        )
        if self.verdict == "helps":
            return (
                f"Twice as many samples would be expected to {change} the {metric.text} from {now} to {found} "
                f"({interval})."
            )
        if self.verdict == "does not help":
            return f"More samples are not expected to help: {expected}."
        if self.at_chance:
            return (
                f"Whether more samples would help cannot be told: with these {self.n_samples} the procedure is "
                f"not shown to be better than chance ({metric.text} {now}, without features "
                f"{metric.format(self.chance)}), and a selection may begin to work only with more."
            )
        return f"Whether more samples would help cannot be told from these {self.n_samples}: {expected}."

    def to_frame(self) -> Any:
        """The measured sizes and the predictions as a polars (else pandas) frame."""
        return frame_of_rows(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """One row per measured size and per prediction."""
        largest = self.points[-1].n_train
        measured = [
            {"kind": "measured", "n_train": p.n_train, "value": p.value, "low": None, "high": None}
            for p in self.points
        ]
        return measured + [
            {
                "kind": "predicted",
                "n_train": p.factor * largest,
                "value": p.value,
                "low": p.low,
                "high": p.high,
            }
            for p in self.predictions
        ]

    def to_dict(self) -> dict[str, Any]:
        """All values as a dict."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> LearningCurve:
        """The inverse of ``to_dict``."""
        points = tuple(LearningPoint(**each) for each in content["points"])
        predictions = tuple(Prediction(**each) for each in content["predictions"])
        return cls(**{**content, "points": points, "predictions": predictions})
