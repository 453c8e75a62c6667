"""How the number of features was chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from zeronorm.report._chart import Chart, ReportData, Rows, Run, register_chart
from zeronorm.report._lines import Guides, Lines, Point, Series
from zeronorm.report._svg import Axes

RULES = {
    "fewest": "the smallest size whose smoothed score is within about one standard error (SE) of the best",
    "recommended": "the smallest size whose smoothed score is nearly the best",
    "all": "the size with the best smoothed score",
}


@register_chart("sizes", order=35)
@dataclass(frozen=True)
class SizesChart(Chart):
    """The inner cross-validation of ``SelectorCV``: mean score with its standard error at every size."""

    sizes: tuple[int, ...]
    means: tuple[float, ...]
    errors: tuple[float, ...]
    chosen: int
    rule: str
    scoring: str
    by_rule: tuple[int, ...] = ()  # the sizes that the rules choose, in their order
    title = "How the number of features was chosen"

    @classmethod
    def collect(cls, run: Run) -> dict[str, Any] | None:
        return size_choice(run.selector)

    @classmethod
    def from_data(cls, report_data: ReportData) -> Self | None:
        figure = report_data.result.figures.get(cls.name)
        return cls._of(figure) if figure else None

    @classmethod
    def from_selector(cls, selector: Any) -> Self:
        """The choice of a fitted ``SelectorCV``."""
        figure = size_choice(selector)
        if figure is None:
            raise ValueError(
                f"{type(selector).__name__} has no 'cv_results_' with several sizes. Give a fitted SelectorCV."
            )
        return cls._of(figure)

    @classmethod
    def _of(cls, figure: dict[str, Any]) -> Self:
        sizes, means, errors = (tuple(figure[key]) for key in ("sizes", "means", "errors"))
        by_rule = tuple(figure.get("by_rule", ()))
        return cls(sizes, means, errors, figure["chosen"], figure["rule"], figure["scoring"], by_rule)

    @property
    def caption(self) -> str:
        largest = " It is the largest size that was tried: more may be better." if self.is_largest else ""
        return (
            f"Mean score in the inner cross-validation on all samples, with one standard error; higher is better. "
            f"Chosen: {RULES[self.rule]}. These scores were used for the choice, so they are optimistic.{largest}"
        )

    @property
    def is_largest(self) -> bool:
        """Whether no larger size was tried."""
        return len(self.sizes) > 1 and self.chosen == self.sizes[-1]

    def picture(self) -> Lines:
        points = tuple(
            Point(
                size,
                mean,
                mean - error,
                mean + error,
                f"{size} features: {mean:.4g} ± {error:.2g}",
            )
            for size, mean, error in zip(self.sizes, self.means, self.errors, strict=True)
        )
        others = tuple(
            (size, f"{names}: {size}") for size, names in self._names().items() if size != self.chosen
        )
        guides = Guides((), ((self.chosen, f"chosen: {self.chosen}"), *others))
        axes = Axes("number of features", self.scoring, "{:.3g}".format)
        return Lines([Series("inner folds", points)], axes, guides)

    def _names(self) -> dict[int, str]:
        """The rules that choose each size, as text."""
        names: dict[int, list[str]] = {}
        for rule, size in zip(RULES, self.by_rule, strict=bool(self.by_rule)):
            names.setdefault(size, []).append(rule)
        return {size: ", ".join(rules) for size, rules in names.items()}

    def table(self) -> tuple[tuple[str, ...], Rows]:
        names = self._names()
        rows = [
            [
                str(size),
                f"{mean:.4g}",
                f"{error:.3g}",
                names.get(size, ""),
                "yes" if size == self.chosen else "",
            ]
            for size, mean, error in zip(self.sizes, self.means, self.errors, strict=True)
        ]
        return ("features", "mean score", "standard error", "list", "chosen"), rows


def size_choice(selector: Any) -> dict[str, Any] | None:
    """Sizes, scores and chosen size of the outermost ``SelectorCV`` in a procedure."""
    while selector is not None and not _has_choice(selector):
        selector = getattr(selector, "selector_", None)
    if selector is None or len(selector.cv_results_["size"]) < 2:
        return None
    found = selector.cv_results_
    scoring = selector.scoring
    return {
        "sizes": [int(size) for size in found["size"]],
        "means": [float(value) for value in found["mean"]],
        "errors": [float(value) for value in found["standard_error"]],
        "chosen": int(selector.get_support().sum()),
        "rule": selector.rule,
        "by_rule": [int(selector.sizes_[rule]) for rule in RULES],
        "scoring": scoring.replace("neg_", "minus ").replace("_", " ")
        if isinstance(scoring, str)
        else "score",
    }


def _has_choice(selector: Any) -> bool:
    results: Any = getattr(selector, "cv_results_", None)
    return isinstance(results, dict) and "standard_error" in results and hasattr(selector, "rule")
