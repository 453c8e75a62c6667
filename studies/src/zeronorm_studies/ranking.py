"""Ranks of methods over data sets, with time, stability and probes."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from zeronorm.evaluation import nogueira_stability
from zeronorm.evaluation.significance import (
    CriticalDifference,
    adjust_p_values,
    critical_difference,
    signed_rank,
)
from zeronorm_studies.pages import PageTable, Section
from zeronorm_studies.rank_diagram import HEADER, note_on_difference
from zeronorm_studies.real_data import N_PROBES
from zeronorm_studies.results import NotMeasured, Results

METRIC = "balanced_error_rate"
CHANCE = 0.5
"""Balanced error of always predicting one class: what a method without a result is given."""


def error_table(results: Results, size: int) -> tuple[list[str], list[str], np.ndarray]:
    """Data sets that have the size, methods, and mean errors; no result counts as chance."""
    configs = [
        config.label
        for config in results.plan.configs
        if not config.keeps_all and config.label not in results.missing
    ]
    keys = set(results.keys)
    data = [d.label for d in results.plan.data if any((d.label, config, size) in keys for config in configs)]
    table = np.full((len(data), len(configs)), CHANCE)
    for i, name in enumerate(data):
        for j, config in enumerate(configs):
            if (name, config, size) in keys:
                found = [row.get(METRIC) for row in results.rows_of(name, config, size)]
                table[i, j] = np.mean([CHANCE if value is None else value for value in found])
    return data, configs, table


def rank_rows(table: np.ndarray) -> np.ndarray:
    """Ranks within each row, the smallest first; ties share the mean."""
    ranks: np.ndarray = rankdata(table, axis=1)
    return ranks


def mean_rank_of(results: Results, size: int) -> dict[str, float]:
    found = _ranks(results, size)
    return dict(zip(found.methods, map(float, found.mean_ranks), strict=True))


def _ranks(results: Results, size: int) -> CriticalDifference:
    _, configs, table = error_table(results, size)
    return critical_difference(table, configs, greater_is_better=False)


def ranking_sections(results: Results) -> list[Section]:
    """One section per size, then times, stability and probes."""
    sizes = [size for size in results.plan.sizes if size is not None]
    return [_rank_section(results, size) for size in sizes] + [_cost_section(results, sizes)]


def _rank_section(results: Results, size: int) -> Section:
    data, _, _ = error_table(results, size)
    found = _ranks(results, size)
    rows = tuple((name, f"{rank:.2f}") for name, rank in zip(found.methods, found.mean_ranks, strict=True))
    test = found.friedman
    text = (
        f"{len(data)} data sets. Friedman: χ² = {test.statistic:.2f}, p = {test.p_value:.3g}. "
        f"{note_on_difference(found.difference)}"
    )
    return Section(f"Mean ranks, {size} features", (text,), PageTable(HEADER, rows))


def _cost_section(results: Results, sizes: list[int]) -> Section:
    rows = []
    for config in results.plan.configs:
        if config.keeps_all:
            continue
        found = [row for row in results.rows if row["configuration"] == config.label]
        seconds = [row["fit_seconds"] for row in found if row.get("fit_seconds") is not None]
        late = {
            (row["data"], row["trial"]) for row in found if str(row.get("error") or "").startswith("timeout")
        }
        failed = {(row["data"], row["trial"]) for row in found if row.get("error")} - late
        rows.append(
            (
                config.label,
                f"{np.median(seconds):.3g}" if seconds else "–",
                str(len(late)),
                str(len(failed)),
                *_stability_and_probes(results, config.label, sizes),
            )
        )
    header = ("method", "median time, s", "timeouts", "failures", "stability", "probes, %")
    text = (
        f"Stability (Nogueira et al.; 1 is best, 0 is chance) and the share of the {N_PROBES} appended probes among "
        f"the selected, both at {sizes[len(sizes) // 2]} features, averaged over the data sets with results."
    )
    return Section("Time, stability and probes", (text,), PageTable(header, tuple(rows)))


def _stability_and_probes(results: Results, config: str, sizes: list[int]) -> tuple[str, str]:
    size = sizes[len(sizes) // 2]
    stable, probes = [], []
    for data in results.plan.data:
        try:
            selected = results.selections(data.label, config, size)
        except NotMeasured:
            continue
        if len(selected) > 1:
            p = int(data.draw(0).X.shape[1])
            stable.append(nogueira_stability(selected, p).estimate)
            probes.append(np.mean([np.mean(np.asarray(s) >= p - N_PROBES) for s in selected]))
    if not stable:
        return "–", "–"
    return f"{np.mean(stable):.2f}", f"{100 * np.mean(probes):.1f}"


# -- What wins where: the best methods of each data set, and which methods beat the baselines over all of them --


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
    data, configs, table = error_table(results, size)
    rows = []
    for name, errors in zip(data, table, strict=True):
        n, p = _shape(results, name)
        best = np.argsort(errors, kind="stable")[:N_SHOWN]
        shown = ", ".join(f"{configs[j]} {100 * errors[j]:.1f}" for j in best)
        rows.append((name, f"{n} × {p}", shown, _median(errors), _all_features(results, name)))
    header = ("data", "samples × features", f"lowest errors at {size} features, %", "median", "all features")
    text = "Balanced error, mean over the folds. The lowest of many noisy means is optimistic: see the tests below."
    return Section("What wins where", (text,), PageTable(header, tuple(rows)))


def _median(errors: np.ndarray) -> str:
    return f"{100 * float(np.median(errors)):.1f}"


def _all_features(results: Results, data: str) -> str:
    try:
        return f"{100 * results.mean(data, 'all features', None, METRIC):.1f}"
    except NotMeasured:
        return "–"


def _ranks_by_shape(results: Results, size: int) -> Section:
    data, configs, table = error_table(results, size)
    wide = np.asarray([n < p for n, p in (_shape(results, name) for name in data)])
    ranks = rank_rows(table)
    columns = [ranks, ranks[wide], ranks[~wide]]
    means = [part.mean(axis=0) if len(part) else np.full(len(configs), np.nan) for part in columns]
    rows = [
        (configs[j], *(f"{mean[j]:.1f}" if np.isfinite(mean[j]) else "–" for mean in means))
        for j in np.argsort(means[0], kind="stable")
    ]
    header = ("method", "all", f"wide ({int(wide.sum())} sets)", f"tall ({int((~wide).sum())} sets)")
    text = f"Mean ranks at {size} features; wide data have more features than samples."
    return Section("Mean ranks on wide and on tall data", (text,), PageTable(header, tuple(rows)))


def _against_baselines(results: Results, size: int) -> Section:
    """Signed rank tests over the data sets, corrected for the number of methods."""
    _, configs, table = error_table(results, size)
    known = [name for name in BASELINES if name in configs]
    cells: dict[str, list[str]] = {config: [] for config in configs}
    for name in known:
        base = table[:, configs.index(name)]
        others = [config for config in configs if config != name]
        tests = {config: signed_rank(table[:, configs.index(config)], base) for config in others}
        corrected = adjust_p_values([tests[config].p_value for config in others], method="holm")
        cells[name].append("")
        for config, p_value in zip(others, corrected, strict=True):
            cells[config].append(_verdict(table[:, configs.index(config)] - base, float(p_value)))
    header = ("method", *(f"against {name}" for name in known))
    rows = tuple((config, *cells[config]) for config in configs)
    text = (
        f"Mean difference of the balanced error over the data sets at {size} features, in percentage points, with the "
        f"p-value of the signed rank test, corrected for all methods (Holm); * marks those below {LEVEL}."
    )
    return Section("Against the baselines", (text,), PageTable(header, rows))


def _verdict(differences: np.ndarray, p_value: float) -> str:
    mark = " *" if p_value < LEVEL else ""
    return f"{100 * float(differences.mean()):+.1f} (p = {p_value:.2g}){mark}"
