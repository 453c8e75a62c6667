"""Rules that several studies use."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from zeronorm.studies.expectations import Judged
from zeronorm.studies.results import Results

Check = Callable[[Results], Judged]
LEVEL = 0.05


def lower_mean(
    data: str, better: Iterable[str], worse: Iterable[str], size: int | None, metric: str = "error_rate"
) -> Check:
    """Every one of ``better`` has a lower mean than every one of ``worse``."""
    better, worse = tuple(better), tuple(worse)

    def check(results: Results) -> Judged:
        left = {arm: results.mean(data, arm, size, metric) for arm in better}
        right = {arm: results.mean(data, arm, _size(results, arm, size), metric) for arm in worse}
        shown = ", ".join(f"{arm} {value:.4g}" for arm, value in {**left, **right}.items())
        return Judged(shown, max(left.values()) < min(right.values()))

    return check


def significantly_lower(data: str, better: str, worse: Iterable[str], size: int | None) -> Check:
    """``better`` has a lower error than each of ``worse``, p < 0.05 on the same trials."""
    worse = tuple(worse)

    def check(results: Results) -> Judged:
        found = {
            arm: results.difference(data, better, arm, size, b_size=_size(results, arm, size))
            for arm in worse
        }
        shown = "; ".join(f"{better} − {arm}: {difference}" for arm, difference in found.items())
        return Judged(shown, all(d.mean < 0 and d.p_value < LEVEL for d in found.values()))

    return check


def indistinguishable(data: str, arms: Iterable[str], size: int | None) -> Check:
    """No pair of arms differs, p ≥ 0.05 divided by the number of pairs (Bonferroni)."""
    arms = tuple(arms)

    def check(results: Results) -> Judged:
        pairs = [(a, b) for i, a in enumerate(arms) for b in arms[i + 1 :]]
        found = [(a, b, results.difference(data, a, b, size)) for a, b in pairs]
        shown = "; ".join(f"{a} − {b}: {difference}" for a, b, difference in found)
        return Judged(shown, all(d.p_value >= LEVEL / len(pairs) for _, _, d in found))

    return check


def within(data: str, a: str, b: str, size: int | None, margin: float) -> Check:
    """The means of two arms are within ``margin`` of each other."""

    def check(results: Results) -> Judged:
        left, right = results.mean(data, a, size), results.mean(data, b, size)
        return Judged(f"{a} {left:.4g}, {b} {right:.4g}", abs(left - right) <= margin)

    return check


def _size(results: Results, arm: str, size: int | None) -> int | None:
    """Arms that keep all features have no size to ask for."""
    return None if next(a.keeps_all for a in results.plan.arms if a.label == arm) else size
