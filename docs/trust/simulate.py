"""Simulations for the page on trust: how often printed intervals, tests and verdicts are right.

Run ``python docs/trust/simulate.py`` for all tables, ``python docs/trust/simulate.py coverage size`` for some; each
is written to ``docs/trust/<name>.csv``, which the page shows. Each setting has its own seed, so that ``--jobs 16``
gives the same tables faster. To add a table, write a function that yields rows (dictionaries with the same keys) and
decorate it with ``@table``.

Features are selected on the training samples of every fold, then a linear rule is fitted. The data are
Gaussian, so that the true error of every fitted model is known in closed form and no test set is needed.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import special, stats

from zeronorm import Consensus, FisherScore, KnockoffSelector, LassoSelector, ProbeSelector, select
from zeronorm.datasets import load_dataset
from zeronorm.evaluation import nogueira_stability
from zeronorm.evaluation._summary import compare
from zeronorm.evaluation.significance import corrected_resampled_t, metric_interval, paired_test
from zeronorm.resampling._metrics import METRICS, Metric, as_metric, target_variance
from zeronorm.resampling.predictors._default import gaussian_estimator
from zeronorm.selection.target import Binary

FOLDER = Path(__file__).parent
Table = Callable[..., Iterator[dict[str, Any]]]
Job = tuple[
    Table, tuple[Any, ...], tuple[Any, ...]
]  # a function, a setting that ends with folds and repeats, further arguments
TABLES: dict[str, Table] = {}
N_FEATURES, N_KEPT, N_INFORMATIVE = 20, 5, 3
CLASS_METRICS, TARGET_METRICS = ("error_rate", "balanced_error_rate", "auc"), ("mse", "mae", "r2")
LEVEL = 0.05
MOSTLY = 0.5  # a row counts as refused if a smaller share of the data sets has an interval
FITTED, EXPECTED = "covers the value of the fitted models", "covers the expected value"
INDEPENDENT = "Wilson, independent samples"
WANTED = (0.93, 0.97)


def table(function: Table) -> Table:
    """Register a function that yields the rows of a table."""
    TABLES[function.__name__] = function
    return function


# -- Data sets, all of one setting at once --


@dataclass(frozen=True)
class Runs:
    """Cross-validated runs of one procedure on many data sets.

    ``records[b]`` are the rows of data set b as ``evaluate`` gives them; ``truth[name][b]`` is the mean true value
    of the metric over the models that were fitted in its folds.
    """

    records: list[list[dict[str, Any]]]
    truth: dict[str, np.ndarray]


def stratified_folds(y: np.ndarray, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """Stratified fold numbers of all samples of all data sets."""
    order = np.argsort(rng.random(y.shape) + 10 * y, axis=1)
    position = np.empty_like(order)
    np.put_along_axis(position, order, np.broadcast_to(np.arange(y.shape[1]), y.shape), axis=1)
    return position % n_folds


def fit_classifier(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, n_kept: int = N_KEPT
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and offsets of diagonal discriminant analysis on the features with the largest t statistics."""
    one, zero = (((y == label) & train).astype(float) for label in (1, 0))
    n_one, n_zero = one.sum(axis=1)[:, None], zero.sum(axis=1)[:, None]
    mean_one = np.einsum("bn,bnp->bp", one, X) / n_one
    mean_zero = np.einsum("bn,bnp->bp", zero, X) / n_zero
    squares = np.einsum("bn,bnp->bp", one + zero, X * X)
    variance = (squares - n_one * mean_one**2 - n_zero * mean_zero**2) / (n_one + n_zero - 2)
    gap = mean_one - mean_zero
    t = np.abs(gap) / np.sqrt(variance)
    smallest = np.partition(t, -n_kept, axis=1)[:, -n_kept][:, None]
    weights = np.where(t >= smallest, gap / variance, 0.0)
    return weights, -np.sum(weights * (mean_one + mean_zero) / 2, axis=1)


def classification_runs(
    *, n: int, bayes: float, share: float, folds: int, repeats: int, sets: int, rng: np.random.Generator,
    X: np.ndarray | None = None, splits: list[np.ndarray] | None = None,
) -> Runs:  # fmt: skip
    """Two Gaussian classes; ``bayes`` is the error of the best rule, ``share`` that of the smaller class."""
    y = np.zeros((sets, n), dtype=int)
    y[:, : round(share * n)] = 1
    center = class_center(bayes)
    if X is None:
        X = rng.normal(size=(sets, n, N_FEATURES)) + (2 * y - 1)[:, :, None] * center
    records: list[list[dict[str, Any]]] = [[] for _ in range(sets)]
    truth: dict[str, list[np.ndarray]] = {"error_rate": [], "balanced_error_rate": [], "auc": []}
    for repeat in range(repeats):
        fold = stratified_folds(y, folds, rng) if splits is None else splits[repeat]
        for j in range(folds):
            test = fold == j
            weights, offset = fit_classifier(X, y, ~test)
            decision = np.einsum("bnp,bp->bn", X, weights) + offset[:, None]
            for b in range(sets):
                row = _classified(y[b], decision[b], np.flatnonzero(test[b]), len(records[b]), n)
                records[b].append({**row, "selected": np.flatnonzero(weights[b])})
            for name, found in true_values(weights, offset, center, share).items():
                truth[name].append(found)
    return Runs(records, {name: np.mean(found, axis=0) for name, found in truth.items()})


def true_values(
    weights: np.ndarray, offset: np.ndarray, center: np.ndarray, share: float
) -> dict[str, np.ndarray]:
    """Errors and area of linear rules on new samples, of which class 1 has this share."""
    missed, false, norm, signal = _rates(weights, offset, center)
    return {
        "error_rate": share * missed + (1 - share) * false,
        "balanced_error_rate": (missed + false) / 2,
        "auc": stats.norm.cdf(np.sqrt(2) * signal / norm),
    }


def _rates(weights: np.ndarray, offset: np.ndarray, center: np.ndarray) -> tuple[np.ndarray, ...]:
    """Error rates of the rules in each class, with the norms of the weights and the signals."""
    norm, signal = np.linalg.norm(weights, axis=1), weights @ center
    missed, false = (stats.norm.cdf(-(signal + sign * offset) / norm) for sign in (1, -1))
    return missed, false, norm, signal


def class_center(bayes: float, n_features: int = N_FEATURES) -> np.ndarray:
    """Mean of class 1; class 0 has its negative."""
    center = np.zeros(n_features)
    center[:N_INFORMATIVE] = (8.0 if bayes == 0 else stats.norm.isf(bayes)) / np.sqrt(N_INFORMATIVE)
    return center


def _classified(y: np.ndarray, decision: np.ndarray, test: np.ndarray, split: int, n: int) -> dict[str, Any]:
    truth, values = y[test], decision[test]
    predictions = (values > 0).astype(int)
    row = {
        "split": split, "truth": truth, "predictions": predictions, "decision": values,
        "test_rows": test, "n_test": test.size, "n_train": n - test.size,
    }  # fmt: skip
    row["error_rate"] = METRICS["error_rate"].function(truth, predictions)
    row["balanced_error_rate"] = METRICS["balanced_error_rate"].function(truth, predictions)
    above = values[truth == 1][:, None] - values[truth == 0]
    row["auc"] = float(np.mean((above > 0) + 0.5 * (above == 0))) if above.size else np.nan
    return row


def many_fits(
    X: np.ndarray, y: np.ndarray, splits: list[np.ndarray], center: np.ndarray, n_kept: int,
    values: Callable[..., dict[str, np.ndarray]] = true_values,
) -> Runs:  # fmt: skip
    """Runs with many features or many folds: all models of a data set are fitted at once.

    The procedure is that of ``classification_runs``; parts of one class have no area under the curve.
    """
    records: list[list[dict[str, Any]]] = []
    truth: dict[str, list[float]] = {}
    for b, (measured, labels) in enumerate(zip(X, y, strict=True)):
        tests = [fold[b] == j for fold in splits for j in range(fold[b].max() + 1)]
        weights, offset = _fit_parts(measured, labels, ~np.asarray(tests), n_kept)
        decision = measured @ weights.T + offset
        n, share = labels.size, float(labels.mean())
        records.append(
            [
                {
                    **_classified(labels, decision[:, j], np.flatnonzero(test), j, n),
                    "selected": np.flatnonzero(weights[j]),
                }
                for j, test in enumerate(tests)
            ]
        )
        for name, found in values(weights, offset, center, share).items():
            truth.setdefault(name, []).append(float(np.mean(found)))
    return Runs(records, {name: np.asarray(found) for name, found in truth.items()})


def _fit_parts(
    X: np.ndarray, y: np.ndarray, trains: np.ndarray, n_kept: int
) -> tuple[np.ndarray, np.ndarray]:
    """``fit_classifier`` on the folds of one data set; each row of ``trains`` marks the training samples of a fold."""
    one, zero = (((y == label) & trains).astype(float) for label in (1, 0))
    n_one, n_zero = one.sum(axis=1)[:, None], zero.sum(axis=1)[:, None]
    mean_one, mean_zero = one @ X / n_one, zero @ X / n_zero
    variance = (trains @ (X * X) - n_one * mean_one**2 - n_zero * mean_zero**2) / (n_one + n_zero - 2)
    gap = mean_one - mean_zero
    t = np.abs(gap) / np.sqrt(variance)
    smallest = np.partition(t, -n_kept, axis=1)[:, -n_kept][:, None]
    weights = np.where(t >= smallest, gap / variance, 0.0)
    return weights, -np.sum(weights * (mean_one + mean_zero) / 2, axis=1)


def regression_runs(
    *, n: int, r2: float, heavy: bool, folds: int, repeats: int, sets: int, rng: np.random.Generator,
    n_features: int = N_FEATURES, n_kept: int = N_KEPT,
) -> Runs:  # fmt: skip
    """A linear model with noise of variance 1, Gaussian or (``heavy``) of Student's t with 5 degrees of freedom."""
    beta = np.zeros(n_features)
    beta[:N_INFORMATIVE] = np.sqrt(r2 / (1 - r2) / N_INFORMATIVE)
    X = rng.normal(size=(sets, n, n_features))
    noise = rng.standard_t(5, size=(sets, n)) / np.sqrt(5 / 3) if heavy else rng.normal(size=(sets, n))
    splits = [np.argsort(rng.random((sets, n)), axis=1) % folds for _ in range(repeats)]
    return linear_runs(X, X @ beta + noise, beta, splits, heavy=heavy, n_kept=n_kept)


def linear_runs(
    X: np.ndarray, y: np.ndarray, beta: np.ndarray, splits: list[np.ndarray], *, heavy: bool = False,
    hidden: float = 0.0, n_kept: int = N_KEPT,
) -> Runs:  # fmt: skip
    """Runs on targets with weights ``beta``, noise of variance 1 and a ``hidden`` normal component of that variance."""
    records: list[list[dict[str, Any]]] = [[] for _ in y]
    truth: dict[str, list[np.ndarray]] = {"mse": [], "mae": [], "r2": []}
    for fold in splits:
        for j in range(fold.max() + 1):
            test = fold == j
            weights, offset = fit_regression(X, y, ~test, n_kept)
            predictions = np.einsum("bnp,bp->bn", X, weights) + offset[:, None]
            explained = np.sum((beta - weights) ** 2, axis=1) + hidden
            mse = explained + offset**2 + 1
            truth["mse"].append(mse)
            truth["mae"].append(mean_size(offset, explained, heavy=heavy))
            truth["r2"].append(1 - mse / (beta @ beta + hidden + 1))
            for b in range(len(y)):
                rows = np.flatnonzero(test[b])
                row = _fitted(y[b], predictions[b, rows], rows, len(records[b]))
                records[b].append({**row, "selected": np.flatnonzero(weights[b])})
    return Runs(records, {name: np.mean(found, axis=0) for name, found in truth.items()})


def _fitted(target: np.ndarray, predictions: np.ndarray, test: np.ndarray, split: int) -> dict[str, Any]:
    truth = target[test]
    residuals = truth - predictions
    mse = float(residuals @ residuals) / test.size
    return {
        "split": split, "truth": truth, "predictions": predictions, "test_rows": test, "n_test": test.size,
        "n_train": target.size - test.size, "mse": mse, "mae": float(np.mean(np.abs(residuals))),
        "r2": 1 - mse / target_variance(target),
    }  # fmt: skip


def mean_size(shift: np.ndarray, variance: np.ndarray, *, heavy: bool) -> np.ndarray:
    """Mean size of a residual: a normal variable of this variance around ``shift`` plus the noise of variance 1."""
    if not heavy:
        return _folded_mean(shift, np.sqrt(variance + 1))
    grid = np.linspace(-6.0, 6.0, 801)
    noise = np.sinh(grid)
    share = stats.t.pdf(noise, 5) * np.cosh(grid) * (grid[1] - grid[0])
    return _folded_mean(shift[:, None] + noise / np.sqrt(5 / 3), np.sqrt(variance)[:, None]) @ share


def _folded_mean(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    return sd * np.sqrt(2 / np.pi) * np.exp(-(mean**2) / (2 * sd**2)) + mean * (
        1 - 2 * stats.norm.cdf(-mean / sd)
    )


def fit_regression(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, n_kept: int = N_KEPT
) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression on the features with the largest correlations."""
    w = train.astype(float)
    count = w.sum(axis=1)
    mean_X, mean_y = np.einsum("bn,bnp->bp", w, X) / count[:, None], (w * y).sum(axis=1) / count
    centered, target = (X - mean_X[:, None]) * w[:, :, None], (y - mean_y[:, None]) * w
    products = np.einsum("bnp,bn->bp", centered, target)
    abs_weight = np.abs(products) / np.sqrt(np.einsum("bnp,bnp->bp", centered, centered))
    kept = np.argsort(-abs_weight, axis=1)[:, :n_kept]
    chosen = np.take_along_axis(centered, kept[:, None, :], axis=2)
    gram = np.einsum("bnp,bnq->bpq", chosen, chosen) + np.eye(n_kept)
    solved = np.linalg.solve(gram, np.take_along_axis(products, kept, axis=1)[:, :, None])[:, :, 0]
    weights = np.zeros_like(mean_X)
    np.put_along_axis(weights, kept, solved, axis=1)
    return weights, mean_y - np.sum(weights * mean_X, axis=1)


# -- Tables --

PLANS = ((2, 1), (5, 1), (10, 1), (2, 10), (5, 5), (10, 10))
FEW_FITS, MOST_COSTLY = 10, 300  # fits per data set; data sets of a setting with more fits
EDGE_PLANS = ((2, 10), (10, 10))  # not in the table of coverage
QUICK_PLANS = ((2, 1), (5, 1), (5, 5))


@table
def coverage(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """How often the 95 % interval of a metric contains the true value of the fitted models, and the expected value."""
    sizes, errors, plans = (20, 40, 100), (0.02, 0.1, 0.3), (*PLANS[:3], (5, 5))
    if quick:
        sizes, errors, plans = (40,), (0.02, 0.2), QUICK_PLANS
    jobs: list[Job] = [
        (_covered_classes, (n, share, bayes, *plan), ())
        for n, share, bayes, plan in product(sizes, (0.5, 0.2), errors, plans)
        if share * n >= plan[0]
    ]
    jobs += [
        (_covered_targets, (n, r2, heavy, *plan), (("mse",),))
        for n, r2, heavy, plan in product(sizes, (0.3,) if quick else (0.0, 0.6, 0.9), (False, True), plans)
    ]
    return settings_apart(jobs, sets, seed, n_jobs)


@table
def edges(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Coverage in further settings: no errors at all, 500 samples, ten repeats, absolute errors and R²."""
    sizes, errors, explained, plans = (20, 40, 100, 500), (0.0, 0.02, 0.1, 0.3), (0.0, 0.6, 0.9), PLANS
    if quick:
        sizes, errors, explained, plans = (60,), (0.0,), (0.6,), ((5, 1), (5, 3))
    jobs: list[Job] = [
        (_covered_classes, (n, share, bayes, *plan), ())
        for n, share, bayes, plan in product(sizes, (0.5, 0.2), errors, plans)
        if share * n >= plan[0]
        and (quick or bayes == 0.0 or n == 500 or plan in EDGE_PLANS)
        and _is_affordable(n, plan, typical=share == 0.5 and bayes == 0.1)
    ]
    jobs += [
        (
            _covered_targets,
            (n, r2, heavy, *plan),
            (TARGET_METRICS[n < 500 and plan not in EDGE_PLANS :],),
        )
        for n, r2, heavy, plan in product(sizes, explained, (False, True), plans)
        if _is_affordable(n, plan, typical=r2 == 0.6 and not heavy)
    ]
    return settings_apart(jobs, sets, seed, n_jobs)


def _is_affordable(n: int, plan: tuple[int, int], *, typical: bool) -> bool:
    """Whether to run a setting: many fits on many samples are run in one typical setting only."""
    return n < 500 or plan[0] * plan[1] <= FEW_FITS or typical


def settings_apart(jobs: list[Job], sets: int, seed: int, n_jobs: int) -> Iterator[dict[str, Any]]:
    """Rows of all settings, in order; each setting has its own seed, so that settings can run in parallel."""
    found = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_setting_rows)(function, setting, rest, sets, (seed, number))
        for number, (function, setting, rest) in enumerate(jobs)
    )
    return (row for rows in found for row in rows)


def _setting_rows(
    function: Table, setting: tuple[Any, ...], rest: tuple[Any, ...], sets: int, seed: tuple[int, int]
) -> list[dict[str, Any]]:
    n, (folds, repeats) = setting[0], setting[-2:]
    is_costly = folds * repeats > FEW_FITS and (n >= 100 or folds * repeats > 25)
    draws = min(sets, MOST_COSTLY) if is_costly else sets
    return list(function(*setting, draws, np.random.default_rng(seed), *rest))


def _covered_classes(
    n: int, share: float, bayes: float, folds: int, repeats: int, sets: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    runs = classification_runs(
        n=n, bayes=bayes, share=share, folds=folds, repeats=repeats, sets=sets, rng=rng
    )
    kind = f"two classes, {round(100 * share)} % in the smaller"
    yield from _coverage_rows(runs, CLASS_METRICS, {"data": kind, "n": n, "folds": folds, "repeats": repeats})


def _covered_targets(
    n: int, r2: float, heavy: bool, folds: int, repeats: int, sets: int, rng: np.random.Generator,
    metrics: tuple[str, ...],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    runs = regression_runs(n=n, r2=r2, heavy=heavy, folds=folds, repeats=repeats, sets=sets, rng=rng)
    kind = f"linear, R² {r2:g}, {'heavy-tailed' if heavy else 'Gaussian'} noise"
    yield from _coverage_rows(runs, metrics, {"data": kind, "n": n, "folds": folds, "repeats": repeats})


def _coverage_rows(
    runs: Runs, metrics: Iterable[str | Metric], plan: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """A row for each metric: its name, the setting, and how often the interval contains the true value."""
    for metric in map(as_metric, metrics):
        yield {"metric": metric.name, **plan, **_covered(runs, metric)}


def _covered(runs: Runs, metric: str | Metric) -> dict[str, Any]:
    """How often a printed interval contains the true value; data sets without an interval are counted separately."""
    measure = as_metric(metric)
    found = [metric_interval(measure, rows) for rows in runs.records]
    low, high = np.asarray([(np.nan, np.nan) if pair is None else pair for pair in found]).T
    truth = runs.truth[measure.name]
    expected, printed = float(truth.mean()), ~np.isnan(low)

    def share(value: Any) -> float | str:
        inside = (low <= value) & (value <= high)
        return round(float(inside[printed].mean()), 3) if printed.mean() > MOSTLY else "refused"

    return {
        "true value": round(expected, 4),
        FITTED: share(truth),
        EXPECTED: share(expected),
        INDEPENDENT: _wilson_share(runs, truth) if measure.name == "error_rate" else "",
        "mean width": round(float((high - low)[printed].mean()), 4) if printed.any() else "",
        "smallest width": round(float((high - low)[printed].min()), 4) if printed.any() else "",
        "without interval": int((~printed).sum()),
        "data sets": len(truth),
    }


def _wilson_share(runs: Runs, truth: np.ndarray) -> float:
    """Coverage of Wilson's interval with independent samples, which is not constant because counts take few values."""
    first = runs.records[0]
    n = first[0]["n_test"] + first[0]["n_train"]
    shares = np.quantile(truth, np.linspace(0.01, 0.99, 50))
    return round(float(np.mean([exact_coverage(n, share)["Wilson"] for share in shares])), 3)


def exact_coverage(n: int, share: float) -> dict[str, float]:
    """Coverage of three intervals of a share with n independent samples, without simulation."""
    count = np.arange(n + 1)
    chance = stats.binom.pmf(count, n, share)
    below, above = stats.binom.cdf(count, n, share), stats.binom.sf(count - 1, n, share)
    accepted = {
        "Wilson": (count / n - share) ** 2
        <= stats.norm.isf(LEVEL / 2) ** 2 * share * (1 - share) / n + 1e-15,
        "mid-p": np.minimum(below, above) - chance / 2 >= LEVEL / 2,
        "Clopper and Pearson": np.minimum(below, above) >= LEVEL / 2,
    }
    return {name: float(chance[inside].sum()) for name, inside in accepted.items()}


@table
def attainable(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Coverage of intervals of a share with independent samples, for comparison at small n and small errors."""
    for n, error in product((20, 40, 100, 500), (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4)):
        yield {
            "n": n, "true error": error,
            **{name: round(found, 3) for name, found in exact_coverage(n, error).items()},
        }  # fmt: skip


# -- Metrics that are not means over samples --


def confusion(truth: np.ndarray, predictions: np.ndarray) -> tuple[float, ...]:
    """Shares of true and false positives, false and true negatives."""
    positive, called = np.asarray(truth) == 1, np.asarray(predictions) == 1
    pairs = ((positive, called), (~positive, called), (positive, ~called), (~positive, ~called))
    return tuple(float(np.mean(a & b)) for a, b in pairs)


def _ratio(part: Any, whole: Any) -> Any:
    """The quotient, or 0 if the divisor is 0, as in scikit-learn."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)


# Metrics from the shares of true and false positives, false and true negatives. scikit-learn's functions spend more
# time on checking their arguments than the rest of a simulation takes; a test compares the results.
RATIOS: dict[str, Callable[..., Any]] = {
    "accuracy": lambda tp, fp, fn, tn: tp + tn,
    "precision": lambda tp, fp, fn, tn: _ratio(tp, tp + fp),
    "recall": lambda tp, fp, fn, tn: _ratio(tp, tp + fn),
    "f1": lambda tp, fp, fn, tn: _ratio(2 * tp, 2 * tp + fp + fn),
    "jaccard": lambda tp, fp, fn, tn: _ratio(tp, tp + fp + fn),
    "matthews_corrcoef": lambda tp, fp, fn, tn: _ratio(
        tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    ),
}


def _of_decision(name: str, truth: np.ndarray, decision: np.ndarray) -> float:
    """Scores of probabilities and rankings on one test fold; the decision is the logarithm of the odds."""
    probability = special.expit(decision)
    if name == "neg_log_loss":
        return -float(np.mean(np.logaddexp(0.0, np.where(truth == 1, -decision, decision))))
    if name == "neg_brier_score":
        return -float(np.mean((probability - truth) ** 2))
    hits = truth[np.argsort(-decision, kind="stable")]
    return float(np.mean((np.cumsum(hits) / np.arange(1, hits.size + 1))[hits == 1]))  # average precision


MODEL_METRICS = ("neg_log_loss", "neg_brier_score", "average_precision")
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()


def other_values(
    weights: np.ndarray, offset: np.ndarray, center: np.ndarray, share: float
) -> dict[str, np.ndarray]:
    """True values of the metrics of ``RATIOS`` and of metrics that need a model."""
    missed, false, norm, signal = _rates(weights, offset, center)
    shares = (share * (1 - missed), (1 - share) * false, share * missed, (1 - share) * (1 - false))
    found = {name: ratio(*shares) for name, ratio in RATIOS.items()}
    one, zero = (offset + sign * signal for sign in (1, -1))
    decided_one, decided_zero = (mean[:, None] + norm[:, None] * NODES for mean in (one, zero))
    loss = share * np.logaddexp(0, -decided_one) + (1 - share) * np.logaddexp(0, decided_zero)
    squares = share * special.expit(-decided_one) ** 2 + (1 - share) * special.expit(decided_zero) ** 2
    above_one = stats.norm.sf((decided_one - one[:, None]) / norm[:, None])
    above_zero = stats.norm.sf((decided_one - zero[:, None]) / norm[:, None])
    precision = share * above_one / (share * above_one + (1 - share) * above_zero)
    found |= {"neg_log_loss": -loss @ NODE_WEIGHTS, "neg_brier_score": -squares @ NODE_WEIGHTS}
    return found | {"average_precision": precision @ NODE_WEIGHTS}


def ratio_metric(name: str) -> Metric:
    """The scorer of this name, with a faster function."""
    known, ratio = as_metric(name), RATIOS[name]
    return replace(known, function=lambda truth, found: float(ratio(*confusion(truth, found))))


@table
def other_metrics(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Intervals of scikit-learn's scorers: a jackknife if they need only predictions, otherwise over test folds."""
    sizes, procedures, plans = (40, 100), PROCEDURES[:2], (*PLANS[:3], (5, 5))
    if quick:
        sizes, procedures, plans = (60,), PROCEDURES[:1], ((5, 1),)
    jobs: list[Job] = [
        (_covered_others, (n, *procedure, share, bayes, *plan), ())
        for n, procedure, share, bayes, plan in product(
            sizes, procedures, (0.3,) if quick else (0.5, 0.25), (0.1,) if quick else (0.05, 0.3), plans
        )
    ]
    return settings_apart(jobs, sets, seed, n_jobs)


def _covered_others(
    n: int, n_features: int, kept: int, share: float, bayes: float, folds: int, repeats: int, sets: int,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    center = class_center(bayes, n_features)
    y = np.zeros((sets, n), dtype=int)
    y[:, : round(share * n)] = 1
    splits = [stratified_folds(y, folds, rng) for _ in range(repeats)]
    X = rng.normal(size=(sets, n, n_features)) + (2 * y - 1)[:, :, None] * center
    runs = many_fits(X, y, splits, center, kept, other_values)
    for row in (row for rows in runs.records for row in rows):
        shares = confusion(row["truth"], row["predictions"])
        row |= {name: float(ratio(*shares)) for name, ratio in RATIOS.items()}
        row |= {name: _of_decision(name, row["truth"], row["decision"]) for name in MODEL_METRICS}
    metrics = [*map(ratio_metric, RATIOS), *map(as_metric, MODEL_METRICS)]
    kind = f"{kept} of {n_features} features, {round(100 * share)} % in class 1"
    yield from _coverage_rows(runs, metrics, {"data": kind, "n": n, "folds": folds, "repeats": repeats})


N_FRESH = 1000  # new samples for the true error of a model without a closed form


@table
def gaussian(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Coverage of the interval with the predictor with a Gaussian kernel."""
    settings = product((40, 100), ("linear", "nonlinear"), (0.1, 0.3), (*PLANS[1:3], (5, 3)))
    jobs: list[Job] = [(_covered_gaussian, (n, kind, noise, *plan), ()) for n, kind, noise, plan in settings]
    return settings_apart(jobs[:1] if quick else jobs, sets, seed, n_jobs)


def _covered_gaussian(
    n: int, kind: str, noise: float, folds: int, repeats: int, sets: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    records, truth = [], {name: np.zeros(sets) for name in CLASS_METRICS}
    for b in range(sets):
        X, y = bounded_classes(n, kind, noise, rng)
        fresh = bounded_classes(N_FRESH, kind, noise, rng)
        splits = [stratified_folds(y[None], folds, rng)[0] for _ in range(repeats)]
        rows = [(fold == j, *_fit_gaussian(X, y, fold == j, fresh)) for fold in splits for j in range(folds)]
        records.append(
            [_classified(y, decided, np.flatnonzero(test), i, n) for i, (test, decided, _) in enumerate(rows)]
        )
        for name in CLASS_METRICS:
            truth[name][b] = np.mean([true[name] for _, _, true in rows])
    plan = {"boundary": kind, "n": n, "folds": folds, "repeats": repeats}
    yield from _coverage_rows(Runs(records, truth), CLASS_METRICS, plan)


def bounded_classes(
    n: int, kind: str, noise: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Classes with a linear boundary, or inside and outside of a shifted circle; ``noise`` as in ``class_center``."""
    y = np.arange(n) % 2
    X = rng.normal(size=(n, N_FEATURES))
    if kind == "linear":
        return X + (2 * y - 1)[:, None] * class_center(noise), y
    angle = rng.uniform(0, 2 * np.pi, size=n)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (2.5 * y)[:, None] + 0.7 * y[:, None]
    X[:, :2] = ring + (2.5 * noise + 0.25) * X[:, :2]
    return X, y


def _fit_gaussian(
    X: np.ndarray, y: np.ndarray, test: np.ndarray, fresh: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, dict[str, float]]:
    """Decisions on all samples of a model that was fitted without the test fold, and its true errors."""
    kept = FisherScore(N_KEPT).fit(X[~test], y[~test]).get_support()
    model = gaussian_estimator(Binary).fit(X[~test][:, kept], y[~test])
    decided = model.decision_function(np.concatenate([X, fresh[0]])[:, kept])
    return decided[: len(y)], _classified(fresh[1], decided[len(y) :], np.arange(N_FRESH), 0, N_FRESH)


@table
def variance_ratio(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Variance of a cross-validated error rate over data sets, divided by that of independent samples."""
    settings = product(((20, 5), (200, 3)), (40, 100, 300), (0.1, 0.2, 0.3), (5, 10))
    jobs: list[Job] = [
        (_ratio_of_variances, (n, *kept, bayes, folds, 1), ()) for kept, n, bayes, folds in settings
    ]
    return settings_apart(jobs[:1] if quick else jobs, sets, seed, n_jobs)


def _ratio_of_variances(
    n: int, n_features: int, n_kept: int, bayes: float, folds: int, _repeats: int, sets: int,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    y = np.broadcast_to(np.arange(n) % 2, (sets, n))
    center = class_center(bayes, n_features)
    X = rng.normal(size=(sets, n, n_features)) + (2 * y - 1)[:, :, None] * center
    fold = stratified_folds(y, folds, rng)
    wrong = np.zeros((sets, n), dtype=bool)
    for j in range(folds):
        weights, offset = fit_classifier(X, y, fold != j, n_kept)
        decided = np.einsum("bnp,bp->bn", X, weights) + offset[:, None] > 0
        wrong |= (fold == j) & (decided != y)
    error = float(wrong.mean())
    ratio = float(wrong.mean(axis=1).var(ddof=1)) * n / (error * (1 - error))
    yield {
        "features": n_features, "kept": n_kept, "n": n, "folds": folds, "error rate": round(error, 3),
        "variance, times that of independent samples": round(ratio, 2), "data sets": sets,
    }  # fmt: skip


@table
def size(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """How often a test at the level 0.05 rejects when two procedures have the same expected value."""
    sizes, plans = ((40,), QUICK_PLANS) if quick else ((20, 40, 100), PLANS)
    jobs: list[Job] = [
        (_sizes_for_classes, (n, bayes, *plan), ())
        for n, bayes, plan in product(sizes, (0.1,) if quick else (0.02, 0.1, 0.3), plans)
    ]
    jobs += [
        (_sizes_for_targets, (n, r2, *plan), ())
        for n, r2, plan in product(sizes, (0.6,) if quick else (0.0, 0.6, 0.9), plans)
    ]
    return settings_apart(jobs, sets, seed, n_jobs)


def _sizes_for_classes(
    n: int, bayes: float, folds: int, repeats: int, sets: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    first, second = paired_runs(n=n, bayes=bayes, folds=folds, repeats=repeats, sets=sets, rng=rng, methods=2)
    for name in CLASS_METRICS:
        yield from _rejections(first, second, name, {"n": n, "folds": folds, "repeats": repeats})


def _sizes_for_targets(
    n: int, r2: float, folds: int, repeats: int, sets: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """Two procedures, each with one half of the features; both halves explain the target equally well."""
    beta = np.zeros(N_FEATURES)
    beta[:N_INFORMATIVE] = np.sqrt(r2 / (1 - r2) / N_INFORMATIVE / 2)
    halves = rng.normal(size=(2, sets, n, N_FEATURES))
    y = (halves[0] + halves[1]) @ beta + rng.normal(size=(sets, n))
    splits = [np.argsort(rng.random((sets, n)), axis=1) % folds for _ in range(repeats)]
    first, second = (linear_runs(X, y, beta, splits, hidden=float(beta @ beta)) for X in halves)
    for name in TARGET_METRICS:
        yield from _rejections(first, second, name, {"n": n, "folds": folds, "repeats": repeats})


def _rejections(first: Runs, second: Runs, name: str, plan: dict[str, int]) -> Iterator[dict[str, Any]]:
    pairs = list(zip(first.records, second.records, strict=True))
    tests: dict[str, Callable[..., float | None]] = {"corrected t": partial(_corrected_t, name=name)}
    if METRICS[name].outcomes != "none":
        tests = {"paired": lambda a, b: paired_test(METRICS[name], a, b)[0], **tests}
    for test, p_value in tests.items():
        p_values = [p for p in (p_value(a, b) for a, b in pairs) if p is not None]
        yield {
            "test": test, "metric": name, "n": plan["n"], "true value": round(float(first.truth[name].mean()), 3),
            "folds": plan["folds"], "repeats": plan["repeats"],
            "rejected": round(float(np.mean(np.asarray(p_values) < LEVEL)), 3) if p_values else "refused",
            "data sets": len(pairs),
        }  # fmt: skip


def _corrected_t(a: list[dict[str, Any]], b: list[dict[str, Any]], name: str) -> float | None:
    left, right = ([row[name] for row in rows] for rows in (a, b))
    try:
        n_train, n_test = (float(np.mean([row[key] for row in a])) for key in ("n_train", "n_test"))
        n_repeats = sum(row["n_test"] for row in a) // int(n_train + n_test)
        return corrected_resampled_t(left, right, n_train=n_train, n_test=n_test, n_repeats=n_repeats).p_value
    except ValueError:
        return None


def paired_runs(
    *, n: int, bayes: float, folds: int, repeats: int, sets: int, rng: np.random.Generator, methods: int,
    better: int = 0,
) -> list[Runs]:  # fmt: skip
    """Procedures with different measurements of the same samples, which share half of their noise.

    All have the same expected error, except that the last ``better`` ones see clearer measurements.
    """
    y = np.zeros((sets, n), dtype=int)
    y[:, : n // 2] = 1
    splits = [stratified_folds(y, folds, rng) for _ in range(repeats)]
    shared = rng.normal(size=(sets, n, N_FEATURES))
    found = []
    for method in range(methods):
        error = bayes / 4 if method >= methods - better else bayes
        own = rng.normal(size=shared.shape)
        X = np.sqrt(0.5) * (shared + own) + (2 * y - 1)[:, :, None] * class_center(error)
        found.append(
            classification_runs(
                n=n,
                bayes=error,
                share=0.5,
                folds=folds,
                repeats=repeats,
                sets=sets,
                rng=rng,
                X=X,
                splits=splits,
            )
        )
    return found


WIDE = 500  # features from which a procedure selects
UNSTABLE_PLANS = (*PLANS[:3], (2, 5), *PLANS[4:])
BATCH = 50  # wide data sets in memory at once


@table
def size_unstable(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Rejections of equal procedures that select 1 or 20 of 500 features, few of which are relevant."""
    sizes, plans = ((100,), ((10, 1),)) if quick else ((40, 100), UNSTABLE_PLANS)
    jobs: list[Job] = [
        (_unstable_sizes, (n, bayes, kept, *plan), ())
        for n, bayes, kept, plan in product(
            sizes, (0.3,) if quick else (0.1, 0.3), (1,) if quick else (1, 20), plans
        )
    ]
    return settings_apart(jobs, sets, seed, n_jobs)


def _unstable_sizes(
    n: int, bayes: float, kept: int, folds: int, repeats: int, sets: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    first, second = separate_runs(
        n=n,
        bayes=(bayes, bayes),
        n_features=WIDE,
        kept=kept,
        folds=folds,
        repeats=repeats,
        sets=sets,
        rng=rng,
    )
    for name in CLASS_METRICS:
        for row in _rejections(first, second, name, {"n": n, "folds": folds, "repeats": repeats}):
            yield {"test": row.pop("test"), "metric": row.pop("metric"), "kept of 500": kept, **row}


def separate_runs(
    *, n: int, bayes: tuple[float, float], n_features: int, kept: int, folds: int, repeats: int, sets: int,
    rng: np.random.Generator, shared: float = 0.0,
) -> list[Runs]:  # fmt: skip
    """Two procedures, each with its own measurements of the same samples, which share a part of their noise."""
    centers = [class_center(error, n_features) for error in bayes]
    found: list[Runs] = [Runs([], {name: np.empty(0) for name in CLASS_METRICS})] * 2
    for start in range(0, sets, BATCH):
        shape = (min(BATCH, sets - start), n)
        y = np.zeros(shape, dtype=int)
        y[:, : n // 2] = 1
        splits = [stratified_folds(y, folds, rng) for _ in range(repeats)]
        common = np.sqrt(shared) * rng.normal(size=(*shape, n_features))
        for method, center in enumerate(centers):
            X = (
                common
                + np.sqrt(1 - shared) * rng.normal(size=common.shape)
                + (2 * y - 1)[:, :, None] * center
            )
            more, known = many_fits(X, y, splits, center, kept), found[method]
            truth = {name: np.r_[known.truth[name], more.truth[name]] for name in more.truth}
            found[method] = Runs(known.records + more.records, truth)
    return found


PROCEDURES = ((N_FEATURES, N_KEPT), (WIDE, 1), (WIDE, 20))  # features, kept
UNSTABLE = (
    (30, 200, 3),
    (40, WIDE, 1),
    (100, WIDE, 1),
    (100, WIDE, 20),
    (200, 200, 1),
)  # samples, features, kept


@table
def coverage_unstable(
    *, sets: int, seed: int, quick: bool = False, n_jobs: int = 1
) -> Iterator[dict[str, Any]]:
    """Intervals of procedures that select 1 to 20 of 200 or 500 features, of which three are relevant, or none."""
    chosen, plans = (UNSTABLE[1:2], ((10, 1),)) if quick else (UNSTABLE, (*PLANS[:3], (2, 5), (5, 5)))
    kinds = (
        (unstable_classes, CLASS_METRICS, (0.5,) if quick else (0.1, 0.3, 0.5)),
        (unstable_targets, TARGET_METRICS, (0.0,) if quick else (0.0, 0.3, 0.9)),
    )
    jobs: list[Job] = [
        (_covered_unstable, (*procedure, signal, *plan), (draw, metrics))
        for draw, metrics, signals in kinds
        for procedure, signal, plan in product(chosen, signals, plans)
    ]
    return settings_apart(jobs, sets, seed, n_jobs)


def _covered_unstable(
    n: int, n_features: int, kept: int, signal: float, folds: int, repeats: int, sets: int,
    rng: np.random.Generator, draw: Callable[..., Runs], metrics: tuple[str, ...],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    runs = draw(n, n_features, kept, signal, folds, repeats, sets, rng)
    plan = {"features": n_features, "kept": kept, "n": n, "folds": folds, "repeats": repeats}
    yield from _coverage_rows(runs, metrics, plan)


def unstable_classes(
    n: int, n_features: int, kept: int, bayes: float, folds: int, repeats: int, sets: int,
    rng: np.random.Generator,
) -> Runs:  # fmt: skip
    """Two classes, ``bayes`` the error of the best rule."""
    return separate_runs(
        n=n, bayes=(bayes, bayes), n_features=n_features, kept=kept, folds=folds, repeats=repeats, sets=sets, rng=rng,
    )[0]  # fmt: skip


def unstable_targets(
    n: int, n_features: int, kept: int, r2: float, folds: int, repeats: int, sets: int,
    rng: np.random.Generator,
) -> Runs:  # fmt: skip
    """A real target, ``r2`` the share of its variance that the features explain."""
    parts = [
        regression_runs(
            n=n, r2=r2, heavy=False, folds=folds, repeats=repeats, sets=min(BATCH, sets - start), rng=rng,
            n_features=n_features, n_kept=kept,
        )
        for start in range(0, sets, BATCH)
    ]  # fmt: skip
    return Runs(
        [rows for part in parts for rows in part.records],
        {name: np.concatenate([part.truth[name] for part in parts]) for name in parts[0].truth},
    )


@table
def many_folds(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Intervals and the paired test with 20 folds and with one sample left out."""
    jobs: list[Job] = [
        (_with_many_folds, (n, *procedure, bayes, folds, 1), ())
        for procedure, n, bayes in product(
            PROCEDURES[1:2] if quick else PROCEDURES,
            (40,) if quick else (40, 100),
            (0.3,) if quick else (0.1, 0.3),
        )
        for folds in ((n,) if quick else (20, n))
    ]
    return settings_apart(jobs, sets, seed, n_jobs)


def _with_many_folds(
    n: int, n_features: int, kept: int, bayes: float, folds: int, repeats: int, sets: int,
    rng: np.random.Generator,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    first, second = separate_runs(
        n=n,
        bayes=(bayes, bayes),
        n_features=n_features,
        kept=kept,
        folds=folds,
        repeats=repeats,
        sets=sets,
        rng=rng,
    )
    for name in CLASS_METRICS[: 3 if folds < n else 2]:  # one sample has no area under the curve
        tested = next(_rejections(first, second, name, {"n": n, "folds": folds, "repeats": repeats}))
        covered = _covered(first, name)
        yield {
            "metric": name, "features": n_features, "kept": kept, "n": n, "folds": folds,
            **{key: covered[key] for key in ("true value", FITTED, EXPECTED, INDEPENDENT, "mean width")},
            "rejected": tested["rejected"], "data sets": sets,
        }  # fmt: skip


@table
def power(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Power: how often the tests find an existing difference."""
    jobs: list[Job] = [
        (_powers, (n, *bayes, *plan), ())
        for n, bayes, plan in product(
            (40,) if quick else (40, 100),
            ((0.07, 0.3),) if quick else ((0.07, 0.3), (0.1, 0.2)),
            QUICK_PLANS[1:],
        )
    ]
    return settings_apart(jobs, sets, seed, n_jobs)


def _powers(
    n: int, better: float, worse: float, folds: int, repeats: int, sets: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    first, second = separate_runs(
        n=n, bayes=(better, worse), n_features=N_FEATURES, kept=N_KEPT, folds=folds, repeats=repeats, sets=sets,
        rng=rng, shared=0.5,
    )  # fmt: skip
    for name in CLASS_METRICS:
        values = [round(float(runs.truth[name].mean()), 3) for runs in (first, second)]
        for found in _rejections(first, second, name, {"n": n, "folds": folds, "repeats": repeats}):
            yield {
                "test": found["test"], "metric": name, "n": n, "true value of the better": values[0],
                "of the worse": values[1], "folds": folds, "repeats": repeats, "rejected": found["rejected"],
                "data sets": sets,
            }  # fmt: skip


@table
def verdict(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """How often the verdict of a comparison of four methods claims a difference that does not exist."""
    jobs: list[Job] = [
        (_claims, (n, bayes, better, *plan), ())
        for n, bayes, better, plan in product(
            (40,) if quick else (40, 100),
            (0.3,) if quick else (0.1, 0.3),
            (0, 2),
            ((5, 1),) if quick else (*PLANS[:3], (5, 5)),
        )
    ]
    return settings_apart(jobs, sets, seed, n_jobs)


def _claims(
    n: int, bayes: float, better: int, folds: int, repeats: int, sets: int, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    import polars as pl

    runs = paired_runs(
        n=n, bayes=bayes, folds=folds, repeats=repeats, sets=sets, rng=rng, methods=4, better=better
    )
    names = [f"{'good' if m >= 4 - better else 'plain'}{m}" for m in range(4)]
    false = claims = 0
    for b in range(sets):
        rows = [
            {**row, "method": name, "size": None, "n_selected": N_KEPT, "fit_seconds": 0.0}
            for name, run in zip(names, runs, strict=True)
            for row in run.records[b]
        ]
        choice = compare(pl.DataFrame([_plain(row) for row in rows]), "error_rate").choice
        claims += bool(choice.worse)
        false += any(_is_false(choice.best, worse) for worse in choice.worse)
    yield {
        "n": n, "folds": folds, "repeats": repeats, "methods": f"{4 - better} plain, {better} better",
        "true error of the plain": round(float(runs[0].truth["error_rate"].mean()), 3),
        "claims a difference": round(claims / sets, 3), "claims a false one": round(false / sets, 3),
        "data sets": sets,
    }  # fmt: skip


def _is_false(best: str, worse: str) -> bool:
    """Only a good method is better, and only than a plain one."""
    return not (best.startswith("good") and worse.startswith("plain"))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in row.items()}


@table
def stability(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """How often the interval of Nogueira's stability contains the true value; the selections are independent."""
    rng = np.random.default_rng(seed)
    profiles = {
        "5 of 40 often": np.r_[np.full(5, 0.9), np.full(35, 0.1)],
        "5 of 100 at times": np.r_[np.full(5, 0.4), np.full(95, 0.03)],
        "10 of 1000 nearly always": np.r_[np.full(10, 0.95), np.full(990, 0.002)],
        "random": np.full(50, 0.2),
    }
    for (kind, probability), runs in product(
        list(profiles.items())[:: 2 if quick else 1], (5, 10) if quick else (5, 10, 20, 50)
    ):
        share = probability.mean()
        truth = 1 - np.mean(probability * (1 - probability)) / (share * (1 - share))
        covered = []
        for _ in range(sets):
            effect = nogueira_stability(rng.random((runs, probability.size)) < probability)
            covered.append(effect.low <= truth <= effect.high)
        yield {
            "selected": kind, "selections": runs, "true stability": round(float(truth), 3),
            "covered": round(float(np.mean(covered)), 3), "data sets": sets,
        }  # fmt: skip


# -- False discoveries with knockoffs --

N_RELEVANT, FALSE_SHARE = 12, 0.2


def autoregressive(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Gaussian columns, neighbours correlated by 0.6."""
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    return X


def blocks(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Gaussian columns in blocks of ten, correlated by 0.5 within."""
    return np.sqrt(0.5) * (np.repeat(rng.normal(size=(n, p // 10)), 10, axis=1) + rng.normal(size=(n, p)))


def heavy_tailed(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """A multivariate t distribution with three degrees of freedom, in blocks."""
    return blocks(n, p, rng) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)


def expression(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Real measurements of genes drawn at random (lung tissue, Gordon et al. 2002)."""
    X = _expression_data()[:n]
    return X[:, rng.choice(np.flatnonzero(X.std(axis=0) > 0), p, replace=False)]


@cache
def _expression_data() -> np.ndarray:
    return np.asarray(load_dataset("lung_gordon").X)


DRAWS: dict[str, tuple[Callable[..., np.ndarray], int, int]] = {
    "Gaussian, autoregressive": (autoregressive, 200, 60),
    "Gaussian, blocks": (blocks, 200, 60),
    "lognormal, autoregressive": (lambda n, p, rng: np.exp(autoregressive(n, p, rng)), 200, 60),
    "heavy-tailed, blocks": (heavy_tailed, 200, 60),
    "Gaussian, blocks, wide": (blocks, 100, 150),
    "gene expression": (expression, 181, 100),
}


SCORED_BY = {"FisherScore": FisherScore, "LassoSelector": LassoSelector}
PART = 100  # data sets that share a seed


@table
def discoveries(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Share of false features among those that KnockoffSelector keeps, twelve features being relevant."""
    kinds = list(DRAWS)[: 2 if quick else None]
    settings = list(product(kinds, SCORED_BY, ("model_x", "normal_scores")))
    sizes = [min(PART, sets - start) for start in range(0, sets, PART)]
    parts = iter(
        Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(_part)(*setting, size, (seed, number, part))
            for number, setting in enumerate(settings)
            for part, size in enumerate(sizes)
        )
    )
    for kind, score, knockoffs in settings:
        false, power = np.asarray([found for _ in sizes for found in next(parts)]).T
        _, n, p = DRAWS[kind]
        yield {
            "columns": kind, "scores": score, "knockoffs": knockoffs, "n": n, "features": p, "level": FALSE_SHARE,
            "false discovery rate": round(float(false.mean()), 3),
            "standard error": round(float(false.std() / np.sqrt(sets)), 3),
            "power": round(float(power.mean()), 3), "data sets": sets,
        }  # fmt: skip


def _part(
    kind: str, score: str, knockoffs: str, sets: int, seed: tuple[int, ...]
) -> list[tuple[float, float]]:
    draw, n, p = DRAWS[kind]
    rng = np.random.default_rng(seed)
    wrapped = KnockoffSelector(SCORED_BY[score](), level=FALSE_SHARE, knockoffs=knockoffs)
    return [_false_and_found(draw(n, p, rng), wrapped, rng) for _ in range(sets)]


def _false_and_found(
    X: np.ndarray, selector: KnockoffSelector, rng: np.random.Generator
) -> tuple[float, float]:
    relevant = rng.choice(X.shape[1], N_RELEVANT, replace=False)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = Z[:, relevant] @ rng.choice([-0.7, 0.7], N_RELEVANT)
    y = (signal + rng.normal(size=len(X)) > 0).astype(int)
    selector.set_params(random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an empty selection has no false discovery
        chosen = selector.fit(X, y).get_support(indices=True)
    if selector.path_.selected_size == 0:
        return 0.0, 0.0
    return float(np.mean(~np.isin(chosen, relevant))), float(np.isin(relevant, chosen).mean())


# -- Dependent samples: several of each patient --

PATIENT_SIZES = {"4 each": (4,) * 16, "1 to 6": (1, 2, 3, 4, 5, 6) * 3}
N_NULL, HALVES, OF_HALVES = 100, 50, 0.75


def null_patients(sizes: tuple[int, ...], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Features that are mostly properties of the patient, and a diagnosis of each patient without relation to them."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    y = rng.permutation(np.arange(len(sizes)) % 2)[groups]
    X = rng.normal(size=(len(sizes), N_NULL))[groups] + 0.5 * rng.normal(size=(len(y), N_NULL))
    return X, y, groups


def kept_by_probes(X: np.ndarray, y: np.ndarray, groups: np.ndarray | None, seed: int) -> float:
    """The share of the features that random probes do not outrank."""
    return float(ProbeSelector(FisherScore(), random_state=seed).fit(X, y, groups=groups).support_.mean())


def kept_by_halves(X: np.ndarray, y: np.ndarray, groups: np.ndarray | None, seed: int) -> float:
    """The number of features that are among the first ten on three quarters of the halves."""
    consensus = Consensus([FisherScore()], n_subsamples=HALVES, subset_size=10, random_state=seed)
    return float(np.sum(consensus.fit(X, y, groups=groups).frequencies_ >= OF_HALVES))


def p_value_of_patients(X: np.ndarray, y: np.ndarray, groups: np.ndarray | None, seed: int) -> float:
    """Whether the permutation test rejects; the label of one sample differs from those of its patient."""
    y[0] = 1 - y[0]
    settings = {"method": "fisher", "features": 1, "cv": 4, "permutations": 19, "random_state": seed}
    found = select(X[:, :10], y, sample_groups=groups, **settings).procedure["p_value"]
    return float(found <= LEVEL + 1e-9)


OF_PATIENTS = {
    "ProbeSelector, share of the features kept": (kept_by_probes, LEVEL),
    "Consensus, features on 75 % of the halves": (kept_by_halves, 2.0),
    "permutation test, share rejected": (p_value_of_patients, LEVEL),
}


@table
def patients(*, sets: int, seed: int, quick: bool = False, n_jobs: int = 1) -> Iterator[dict[str, Any]]:
    """False selections among irrelevant features, with sample groups and with samples taken as independent."""
    settings = list(product(list(OF_PATIENTS)[: 2 if quick else None], PATIENT_SIZES, (True, False)))
    for number, (what, sizes, is_given) in enumerate(settings):
        seeds = [(seed, number // 2, i) for i in range(sets)]
        found = Parallel(n_jobs=n_jobs)(delayed(_on_patients)(what, sizes, is_given, one) for one in seeds)
        yield {
            "measured": what, "samples of a patient": sizes, "sample groups": "given" if is_given else "ignored",
            "at most": OF_PATIENTS[what][1], "mean": round(float(np.mean(found)), 3),
            "standard error": round(float(np.std(found) / np.sqrt(sets)), 3), "data sets": sets,
        }  # fmt: skip


def _on_patients(what: str, sizes: str, is_given: bool, seed: tuple[int, ...]) -> float:
    X, y, groups = null_patients(PATIENT_SIZES[sizes], np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return OF_PATIENTS[what][0](X, y, groups if is_given else None, seed[-1])


# -- Writing --


def write(name: str, rows: Iterable[dict[str, Any]], folder: Path = FOLDER) -> Path:
    """Write the rows of a table as CSV, each as soon as it is computed."""
    file = folder / f"{name}.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(stream, fieldnames=list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
            stream.flush()
    return file


# For each table, the columns that define a kind of row, and the shares to summarise.
SUMMARIES = {
    "coverage": (("metric", "data"), (FITTED, EXPECTED)),
    "edges": (("metric", "data"), (FITTED, EXPECTED)),
    "coverage_unstable": (("metric",), (FITTED, EXPECTED)),
    "gaussian": (("metric", "boundary"), (FITTED, EXPECTED)),
    "other_metrics": (("metric",), (FITTED, EXPECTED)),
    "size": (("test", "metric"), ("rejected",)),
    "size_unstable": (("test", "metric"), ("rejected",)),
    "many_folds": (("metric",), (FITTED, EXPECTED, "rejected")),
    "verdict": (("methods",), ("claims a false one",)),
    "stability": (("selections",), ("covered",)),
    "discoveries": (("scores", "knockoffs"), ("false discovery rate", "power")),
}


def _span(counts: list[int]) -> str:
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _unavoidable(rows: list[dict[str, str]]) -> int | str:
    """Number of rows above the wanted range where Wilson's interval of independent samples is too; error rates only."""
    if not rows[0].get(INDEPENDENT):
        return ""
    return sum(min(float(row[FITTED]), float(row[INDEPENDENT])) > WANTED[1] for row in rows)


def summarise(folder: Path = FOLDER) -> Path:
    """Write the lowest, mean and highest share of every kind of row in the existing tables."""
    lines = []
    for name, (kinds, shares) in SUMMARIES.items():
        if not (folder / f"{name}.csv").exists():
            continue
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        for kind, share in product(dict.fromkeys(tuple(row[k] for k in kinds) for row in rows), shares):
            same = [row for row in rows if tuple(row[k] for k in kinds) == kind and row[share] != "refused"]
            values = [float(row[share]) for row in same]
            if not values:
                continue
            lines.append({
                "table": name, "kind": ", ".join(kind), "share": share, "rows": len(values),
                "data sets per row": _span([int(row["data sets"]) for row in same]), "lowest": min(values),
                "mean": round(float(np.mean(values)), 3), "highest": max(values),
                "within 0.93 to 0.97": sum(WANTED[0] <= v <= WANTED[1] for v in values) if share == FITTED else "",
                "above": sum(v > WANTED[1] for v in values) if share == FITTED else "",
                "above, as Wilson's": _unavoidable(same) if share == FITTED else "",
            })  # fmt: skip
    return write("summary", lines, folder)


# The statements of the short table: the text, what should hold, and the rows of the summary.
INTERVALS = (
    *(
        (f"95 % interval of {text}", ("coverage", "edges"), f"{metric},")
        for metric, text in (
            ("error_rate", "an error rate"), ("balanced_error_rate", "a balanced error rate"),
            ("auc", "an area under the curve"), ("mse", "a mean squared error"), ("mae", "a mean absolute error"),
            ("r2", "R²"),
        )
    ),
    ("95 % interval, a few of many features", ("coverage_unstable",), ""),
    ("95 % interval, Gaussian predictor", ("gaussian",), ""),
    ("95 % interval, scorers of scikit-learn", ("other_metrics",), ""),
    ("95 % interval, more than ten folds", ("many_folds",), ""),
)  # fmt: skip
STATEMENTS = (
    *((text, "about 0.95", tables, start, FITTED) for text, tables, start in INTERVALS),
    *((f"{text}: expected value", "not promised", tables, start, EXPECTED) for text, tables, start in INTERVALS),
    ("95 % interval of the stability", "about 0.95", ("stability",), "", "covered"),
    ("paired test rejects equal methods", "at most 0.05", ("size",), "paired,", "rejected"),
    ("the same, methods with unstable selections", "at most 0.05", ("size_unstable",), "paired,", "rejected"),
    ("the same, more than ten folds", "at most 0.05", ("many_folds",), "", "rejected"),
    ("corrected t test rejects equal methods", "at most 0.05", ("size",), "corrected t,", "rejected"),
    ("the same, methods with unstable selections", "at most 0.05", ("size_unstable",), "corrected t,", "rejected"),
    ("a comparison claims a false difference", "at most 0.05", ("verdict",), "", "claims a false one"),
    ("share of false features with knockoffs, level 0.2", "at most 0.2", ("discoveries",), "", "false discovery rate"),
)  # fmt: skip


def shorten(folder: Path = FOLDER) -> Path:
    """Write one row for each statement: the worst setting, and the mean over settings."""
    with (folder / "summary.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    lines = []
    for text, promise, tables, start, share in STATEMENTS:
        same = [
            row
            for row in rows
            if row["table"] in tables and row["kind"].startswith(start) and row["share"] == share
        ]
        counts = [int(row["rows"]) for row in same]
        worst = (
            max(float(row["highest"]) for row in same)
            if promise.startswith("at most")
            else min(float(row["lowest"]) for row in same)
        )
        mean = float(np.average([float(row["mean"]) for row in same], weights=counts))
        within = sum(int(row["within 0.93 to 0.97"]) for row in same) if share == FITTED else ""
        lines.append({
            "statement": text, "should be": promise, "settings": sum(counts), "worst setting": worst,
            "mean of the settings": round(mean, 3), "within 0.93 to 0.97": within,
        })  # fmt: skip
    return write("short", lines, folder)


def main() -> None:
    """Run the tables named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "tables", nargs="*", choices=[*TABLES, []], help="names of tables; all if none is given"
    )
    parser.add_argument("--sets", type=int, default=1000, help="data sets per row")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="settings that run in parallel")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the tables")
    arguments = parser.parse_args()
    for name in arguments.tables or TABLES:
        rows = TABLES[name](sets=arguments.sets, seed=arguments.seed, n_jobs=arguments.jobs)
        print(write(name, rows, arguments.out))
    if all((arguments.out / f"{name}.csv").exists() for name in SUMMARIES):
        print(summarise(arguments.out))
        print(shorten(arguments.out))


if __name__ == "__main__":
    main()
