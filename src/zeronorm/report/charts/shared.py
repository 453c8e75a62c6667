"""Features that several methods agree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from zeronorm.report.chart import Chart, Facts, Rows, register_chart
from zeronorm.report.marks import Grid

MOST_FEATURES = 30


@register_chart("shared", order=60)
@dataclass(frozen=True)
class SharedChart(Chart):
    """Selection frequencies (features by methods) of the features that are selected most often overall."""

    features: tuple[str, ...]
    methods: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]
    title = "Features that the methods agree on"
    caption = "How often each method selected the features that are selected most often overall."

    @classmethod
    def from_facts(cls, facts: Facts) -> Self | None:
        found = {label: dict(frequencies.shares) for label, frequencies in facts.frequencies.items()}
        totals: dict[int, float] = {}
        for by_feature in found.values():
            for index, share in by_feature.items():
                totals[index] = totals.get(index, 0.0) + share
        leading = sorted(totals, key=lambda index: (-totals[index], index))[:MOST_FEATURES]
        if not leading or len(found) < 2:
            return None
        shares = tuple(tuple(by.get(index, 0.0) for by in found.values()) for index in leading)
        return cls(tuple(facts.result.name_of(i) for i in leading), tuple(found), shares)

    def picture(self) -> Grid:
        return Grid(
            rows=list(self.features),
            columns=list(self.methods),
            levels=[[round(share, 2) for share in row] for row in self.shares],
            palette="p",
            cells=[
                [f"selected in {100 * share:.0f} % of the training parts" for share in row]
                for row in self.shares
            ],
            column_ticks=list(enumerate(self.methods)),
        )

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [name, *(f"{100 * s:.0f} %" for s in row)]
            for name, row in zip(self.features, self.shares, strict=True)
        ]
        return ("feature", *self.methods), rows

    def legend(self) -> list[tuple[str, str]]:
        return [("scale-share", "never to always")]
