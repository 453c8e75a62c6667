"""What wins where: the best methods of each data set, and which methods beat the baselines over all of them."""

from __future__ import annotations

import numpy as np

from zeronorm.evaluation.significance import adjust_p_values, signed_rank
from zeronorm.studies.page import Section, Table
from zeronorm.studies.ranking import METRIC, error_table, rank_rows
from zeronorm.studies.results import NotMeasured, Results

N_SHOWN = 4
BASELINES = ("random", "fisher")
LEVEL = 0.05


def winner_sections(results: Results, size: int) -> list[Section]:
    """Winners of each data set, ranks on wide and tall data, and tests against the baselines."""
    return [
        _winners(results, size),
        _ranks_by_shape(results, size),
        _against_baselines(results, size),
    ]


def _shape(results: Results, label: str) -> tuple[int, int]:
    """Samples and features of a data set, the probes included."""
    data = next(d for d in results.plan.data if d.label == label)
    n, p = data.draw(0).X.shape
    return int(n), int(p)


def _winners(results: Results, size: int) -> Section:
    data, arms, table = error_table(results, size)
    rows = []
    for name, errors in zip(data, table, strict=True):
        n, p = _shape(results, name)
        best = np.argsort(errors, kind="stable")[:N_SHOWN]
        shown = ", ".join(f"{arms[j]} {100 * errors[j]:.1f}" for j in best)
        rows.append((name, f"{n} × {p}", shown, _median(errors), _all_features(results, name)))
    header = ("data", "samples × features", f"lowest errors at {size} features, %", "median", "all features")
    text = "Balanced error, mean over the folds. The lowest of many noisy means is optimistic: see the tests below."
    return Section("What wins where", (text,), Table(header, tuple(rows)))


def _median(errors: np.ndarray) -> str:
    return f"{100 * float(np.median(errors)):.1f}"


def _all_features(results: Results, data: str) -> str:
    try:
        return f"{100 * results.mean(data, 'all features', None, METRIC):.1f}"
    except NotMeasured:
        return "–"


def _ranks_by_shape(results: Results, size: int) -> Section:
    data, arms, table = error_table(results, size)
    wide = np.asarray([n < p for n, p in (_shape(results, name) for name in data)])
    ranks = rank_rows(table)
    columns = [ranks, ranks[wide], ranks[~wide]]
    means = [part.mean(axis=0) if len(part) else np.full(len(arms), np.nan) for part in columns]
    rows = [
        (arms[j], *(f"{mean[j]:.1f}" if np.isfinite(mean[j]) else "–" for mean in means))
        for j in np.argsort(means[0], kind="stable")
    ]
    header = ("method", "all", f"wide ({int(wide.sum())} sets)", f"tall ({int((~wide).sum())} sets)")
    text = f"Mean ranks at {size} features; wide data have more features than samples."
    return Section("Mean ranks on wide and on tall data", (text,), Table(header, tuple(rows)))


def _against_baselines(results: Results, size: int) -> Section:
    """Signed rank tests over the data sets, corrected for the number of methods."""
    _, arms, table = error_table(results, size)
    known = [name for name in BASELINES if name in arms]
    cells: dict[str, list[str]] = {arm: [] for arm in arms}
    for name in known:
        base = table[:, arms.index(name)]
        others = [arm for arm in arms if arm != name]
        tests = {arm: signed_rank(table[:, arms.index(arm)], base) for arm in others}
        corrected = adjust_p_values([tests[arm].p_value for arm in others], method="holm")
        cells[name].append("")
        for arm, p_value in zip(others, corrected, strict=True):
            cells[arm].append(_verdict(table[:, arms.index(arm)] - base, float(p_value)))
    header = ("method", *(f"against {name}" for name in known))
    rows = tuple((arm, *cells[arm]) for arm in arms)
    text = (
        f"Mean difference of the balanced error over the data sets at {size} features, in percentage points, with the "
        f"p-value of the signed rank test, corrected for all methods (Holm); * marks those below {LEVEL}."
    )
    return Section("Against the baselines", (text,), Table(header, rows))


def _verdict(differences: np.ndarray, p_value: float) -> str:
    mark = " *" if p_value < LEVEL else ""
    return f"{100 * float(differences.mean()):+.1f} (p = {p_value:.2g}){mark}"
