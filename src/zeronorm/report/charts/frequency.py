"""How often features were selected over the outer training parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from zeronorm.report.chart import Chart, Facts, Rows, register_chart
from zeronorm.report.marks import Bar, Bars
from zeronorm.report.svg import visible

MOST_BARS = 30


@register_chart("frequency", order=40)
@dataclass(frozen=True)
class FrequencyChart(Chart):
    """Shares of the training parts in which a feature was selected, the most frequent first."""

    shares: tuple[tuple[str, float, bool], ...]
    expected: float
    n_splits: int
    n_more: int
    title = "Selection frequency"

    @classmethod
    def from_facts(cls, facts: Facts) -> Self | None:
        found = facts.frequencies.get(facts.result.chosen_method or "")
        if found is None or not found.shares:
            return None
        chosen = {feature.index for feature in facts.result.selected}
        shown = tuple((facts.result.name_of(i), share, i in chosen) for i, share in found.shares[:MOST_BARS])
        return cls(shown, found.expected, found.n_splits, len(found.shares) - len(shown))

    @property
    def caption(self) -> str:
        more = f" {self.n_more} more features were selected less often." if self.n_more else ""
        return (
            f"Share of the {self.n_splits} outer training parts in which a feature was selected; filled bars are in "
            f"the final set.{more}"
        )

    def picture(self) -> Bars:
        bars = [
            Bar(
                name,
                share,
                f"{100 * share:.0f} %",
                f"{visible(name)}: selected in {100 * share:.0f} % of the training parts",
                is_selected,
            )
            for name, share, is_selected in self.shares
        ]
        chance = (self.expected, f"by chance: {100 * self.expected:.2g} %")
        return Bars(bars, "share of the training parts", chance)

    def table(self) -> tuple[tuple[str, ...], Rows]:
        rows = [
            [name, f"{100 * share:.0f} %", "yes" if chosen else "no"] for name, share, chosen in self.shares
        ]
        return ("feature", "frequency", "in the final set"), rows
