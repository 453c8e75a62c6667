"""How alike the sets of different training parts are, against their size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from zeronorm.evaluation.summary import StabilityPoint, stabilities
from zeronorm.report.chart import Chart, Facts, Rows, register_chart
from zeronorm.report.marks import Lines, Point, Series
from zeronorm.report.svg import Axes


@register_chart("stability", order=50)
@dataclass(frozen=True)
class StabilityChart(Chart):
    """Stability of every method at every size where it is defined."""

    points: tuple[StabilityPoint, ...]
    title = "Stability of the selected set"
    caption = (
        "Agreement of the sets selected in different training parts (Nogueira et al. 2018): 1 means always the same "
        "features, 0 means no more than chance. Bars are 95 % intervals; ringed points are the whole procedure."
    )

    @classmethod
    def from_facts(cls, facts: Facts) -> Self | None:
        return cls._of(facts.stabilities)

    @classmethod
    def from_records(cls, records: Any, n_features: int) -> Self:
        """The chart of the records of ``evaluate``; they do not know how many features there were."""
        found = cls._of(stabilities(records, n_features))
        if found is None:
            raise ValueError("Stability needs at least two splits with selections. Evaluate with more folds.")
        return found

    @classmethod
    def _of(cls, points: tuple[StabilityPoint, ...]) -> Self | None:
        defined = tuple(p for p in points if p.nogueira is not None)
        return cls(defined) if defined else None

    def _by_method(self) -> dict[str, list[StabilityPoint]]:
        ordered = sorted(self.points, key=lambda p: (p.size is None, p.mean_size))
        return {
            m: [p for p in ordered if p.method == m] for m in dict.fromkeys(p.method for p in self.points)
        }

    def picture(self) -> Lines:
        series = []
        for method, points in self._by_method().items():
            line = tuple(
                Point(
                    p.mean_size,
                    p.nogueira or 0.0,
                    p.low,
                    p.high,
                    f"{method}, {p.mean_size:g} features: stability {p.nogueira:.2f}",
                    is_chosen=p.size is None,
                )
                for p in points
            )
            series.append(Series(method, line))
        return Lines(series, Axes("number of features", "stability", y_bounds=(None, 1.0)))

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [p.method, f"{p.mean_size:g}", f"{p.nogueira:.3f}", f"{p.jaccard:.3f}"]
            for points in self._by_method().values()
            for p in points
        ]
        return ("method", "features", "stability", "Jaccard index"), rows

    def keys(self) -> list[str]:
        methods = list(self._by_method())
        return methods if len(methods) > 1 else []
