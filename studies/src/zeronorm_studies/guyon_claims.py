"""What Guyon et al. (2003) observe about their tables, as rules for the data at hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zeronorm_studies.guyon_tables import PEAKS, TABLES, same_directions
from zeronorm_studies.results import Claim, ClaimCheck, NotMeasured, Results

Check = Callable[[Results], ClaimCheck]

RELIEF = ("R#", "R#_K4")
LINEAR = ("GS#", "OMMU#", "SC#")
AT_100 = (*RELIEF, *LINEAR, "NLMU#", "INTER#")
AT_7 = ("GSR#_K4", *RELIEF, *LINEAR, "NLMU#")
COMBINED = "INTERCV_GSR#_K4"
OPPOSITE_SHARE = 0.1


def _errors(results: Results, data: str, names: tuple[str, ...], model: str, size: int) -> dict[str, float]:
    return {name: results.mean(data, f"{name}_{model}", size) for name in names}


def _shown(errors: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in errors.items())


def _nonlinear_beats_linear(data: str, size: int) -> Check:
    """Over all selections that were scored by both SVMs, except random selection."""

    def check(results: Results) -> ClaimCheck:
        wins, total = 0, 0
        for where, config, asked in results.keys:
            if where == data and asked == size and config.endswith("_OM") and not config.startswith("rand"):
                try:
                    nonlinear = results.mean(data, config.replace("_OM", "_RBF"), size)
                except NotMeasured:
                    continue
                wins, total = wins + (nonlinear < results.mean(data, config, size)), total + 1
        return ClaimCheck(f"RBF better for {wins} of {total} selections", wins > total / 2)

    return check


def _interval_is_poor(data: str) -> Check:
    def check(results: Results) -> ClaimCheck:
        errors = _errors(results, data, AT_100, "RBF", 100)
        return ClaimCheck(_shown(errors), max(errors, key=lambda name: errors[name]) == "INTER#")

    return check


def _best_is(data: str, names: tuple[str, ...], size: int, among: tuple[str, ...]) -> Check:
    """The lowest error with the Gaussian SVM belongs to one of ``names``."""

    def check(results: Results) -> ClaimCheck:
        errors = _errors(results, data, among, "RBF", size)
        best = min(errors.values())
        winners = {name for name, error in errors.items() if error == best}
        return ClaimCheck(_shown(errors), bool(winners & set(names)))

    return check


def _relief_needs_a_nonlinear_model(data: str) -> Check:
    def check(results: Results) -> ClaimCheck:
        names = (*RELIEF, "NLMU#")
        flat, nonlinear = (_errors(results, data, names, model, 100) for model in ("OM", "RBF"))
        loss = {name: flat[name] - nonlinear[name] for name in names}
        return ClaimCheck(
            "OM − RBF: " + _shown(loss), min(loss[name] for name in RELIEF) > max(0.0, loss["NLMU#"])
        )

    return check


def _linear_features_nonlinear_model(data: str) -> Check:
    def check(results: Results) -> ClaimCheck:
        flat, nonlinear = (_errors(results, data, LINEAR, model, 100) for model in ("OM", "RBF"))
        gain = {name: flat[name] - nonlinear[name] for name in LINEAR}
        return ClaimCheck("OM − RBF: " + _shown(gain), min(gain.values()) > 0.0)

    return check


def _updates_prefer_nonlinear(data: str) -> Check:
    def check(results: Results) -> ClaimCheck:
        flat, nonlinear = (results.mean(data, f"NLMU#_{model}", 7) for model in ("OM", "RBF"))
        return ClaimCheck(f"OM {flat:.4f}, RBF {nonlinear:.4f}", nonlinear < flat)

    return check


def _trend(data: str, size: int) -> Check:
    """Nonlinear multivariate before linear multivariate before univariate, in mean error of the groups."""

    def check(results: Results) -> ClaimCheck:
        groups = {
            "nonlinear multivariate": _errors(results, data, (*RELIEF, "NLMU#"), "RBF", size),
            "linear multivariate": _errors(results, data, ("GS#", "OMMU#"), "OM", size),
            "univariate": _errors(results, data, ("SC#",), "OM", size),
        }
        means = {name: float(np.mean(list(errors.values()))) for name, errors in groups.items()}
        first, second, third = means.values()
        return ClaimCheck(_shown(means), first < second < third)

    return check


NONLINEAR = "lower error for more than half of the selection methods"
GROUPS = "mean errors: Relief and NLMU with RBF < GS and OMMU with OM < SC with OM"
TREND = "nonlinear > linear > univariate"


def statements(data: str) -> tuple[Claim, ...]:
    """Observations of sections 3.1 and 3.2 on one data set; the quick version has a stand-in for the peaks."""
    found = (*_with_100(data), *_with_7(data))
    claims = [
        Claim(f"{what}, {data}", published, rule, check, in_quick=False)
        for what, published, rule, check in found
    ]
    nonlinear = Claim(
        f"RBF still outperforms OM (7), {data}",
        "RBF still outperforms OM",
        NONLINEAR,
        _nonlinear_beats_linear(data, 7),
        in_quick=data == PEAKS,
    )
    baseline = Claim(
        f"Relief features beat random features (7), {data}",
        "random sets are the paper's baseline, without figures",
        "lower error with RBF",
        _beats_random(data),
        origin="expected here",
        in_quick=data == PEAKS,
    )
    return (*claims, nonlinear, baseline)


def _with_100(data: str) -> tuple[tuple[str, str, str, Check], ...]:
    """What, as published, rule and check of section 3.1."""
    return (
        (
            "interval selection is poor (100)",
            "it performs poorly",
            "highest error with RBF",
            _interval_is_poor(data),
        ),
        ("RBF outperforms OM (100)", "RBF outperforms OM", NONLINEAR, _nonlinear_beats_linear(data, 100)),
        (
            "Relief features lose with the linear SVM, those of multiplicative updates do not (100)",
            "nonlinear features may perform poorly with a linear classifier",
            "OM − RBF is positive for both Relief selections, and larger than for NLMU",
            _relief_needs_a_nonlinear_model(data),
        ),
        (
            "features of linear methods do better with RBF (100)",
            "true for GS, SC and OMMU",
            "lower error with RBF for all three",
            _linear_features_nonlinear_model(data),
        ),
        (
            "Relief is best (100)",
            "the best method is Relief",
            "R or R_K4 has the lowest error with RBF",
            _best_is(data, RELIEF, 100, AT_100),
        ),
        ("the trend of the methods (100)", TREND, GROUPS, _trend(data, 100)),
    )


def _with_7(data: str) -> tuple[tuple[str, str, str, Check], ...]:
    """What, as published, rule and check of section 3.2."""
    among = (COMBINED, *AT_7)
    return (
        (
            "NLMU does better with RBF (7)",
            "contrary to 100 features",
            "lower error",
            _updates_prefer_nonlinear(data),
        ),
        (
            "Relief features are best (7)",
            "the best features are Relief features",
            "R, R_K4 or Gram–Schmidt Relief has the lowest error with RBF",
            _best_is(data, (*RELIEF, "GSR#_K4", COMBINED), 7, among),
        ),
        (
            "interval, then Gram–Schmidt Relief is the very best (7)",
            "the very best is the combined method",
            "lowest error with RBF",
            _best_is(data, (COMBINED,), 7, among),
        ),
        ("the trend of the methods (7)", TREND, GROUPS, _trend(data, 7)),
    )


def _beats_random(data: str) -> Check:
    def check(results: Results) -> ClaimCheck:
        errors = _errors(results, data, ("R#_K4", "rand#"), "RBF", 7)
        return ClaimCheck(_shown(errors), errors["R#_K4"] < errors["rand#"])

    return check


def matrix_claims(data: str) -> tuple[Claim, ...]:
    """The printed scores have the directions found here."""
    return tuple(
        Claim(
            f"McNemar scores of {table.name}, {data}",
            "the printed matrix",
            f"at most {OPPOSITE_SHARE:.0%} of the pairs that differ in the paper differ in the other direction here",
            same_directions(data, table.configurations, table.matrix, OPPOSITE_SHARE),
            origin="figure",
            in_quick=False,
        )
        for table in TABLES
    )
