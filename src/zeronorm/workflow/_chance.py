"""The level of chance: a predictor without features, and the whole procedure on permuted targets."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if

from zeronorm._messages import Message, parameter, setting
from zeronorm.evaluation._records import columns_of
from zeronorm.execution import NotEnoughMemoryError
from zeronorm.registry import get_method
from zeronorm.resampling._fitted_path import chosen_predictor
from zeronorm.resampling.predictors._kaplan_meier import KaplanMeier
from zeronorm.resampling.predictors._pairwise_svm import LARGEST_FOR_LIBSVM
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import RunBar
from zeronorm.selection._sample_groups import ENOUGH_EXCHANGES
from zeronorm.selection.target import TASKS
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._options import Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zeronorm.datasets import Table

BASELINE = "baseline"
BASELINES: dict[str, Any] = {
    "most frequent class": DummyClassifier(strategy="most_frequent"),
    "mean": DummyRegressor(),
    "kaplan-meier": KaplanMeier(),
}
# Seconds that permutations may take when the user does not set their number, and rough times of one fit, measured on
# permuted targets (2026-11-16, one core). The time is estimated and not measured, so that a seed determines the result.
AFFORDABLE_SECONDS = 20.0
PATIENT_SECONDS = 120.0  # where permutations are the only test of the result
SECONDS_PER_PREDICTOR, SECONDS_PER_SAMPLE = 3e-3, 5e-6
SECONDS_PER_PAIR = 3e-8  # of samples, for an SVM with a Gaussian kernel
SECONDS_PER_FOREIGN_PREDICTOR = 0.3
# Per value of the table: scores of single features, and methods that train models. With many samples, these take
# longer to separate classes that do not depend on the features.
SECONDS_OF_SCORES, SECONDS_OF_MODELS, SECONDS_OF_TALL_MODELS = 2e-7, 2e-6, 5e-6
SECONDS_OF_NEIGHBOURS = 6e-10  # per value and sample
# Methods that take longer than one model, and by which factor.
SLOWER = {
    "bound-elimination": 10, "consensus": 4, "gflip": 3, "interval": 10, "jcfo": 10, "knockoff-selector": 3, "ofw": 40,
    "probe-selector": 3, "stability-selection": 100,
}  # fmt: skip
COUNTS = (99, 39, 19)  # what "auto" chooses from; 19 is the fewest that can give p = 0.05


def _wrapped_has(name: str) -> Any:
    return lambda self: hasattr(self.estimator, name)


class WithBaseline(BaseEstimator):
    """A predictor that, given no feature at all, predicts the most frequent class, the mean target or equal risks.

    Parameters
    ----------
    estimator : the predictor with features.
    task : "classification", "regression" or "survival".
    fills : whether the predictor fills missing values.
    follows_selector : whether a predictor that the selector has chosen together with its features is used instead.
    """

    def __init__(
        self,
        estimator: Any,
        task: str = "classification",
        fills: bool = False,
        follows_selector: bool = False,
    ) -> None:
        self.estimator = estimator
        self.task = task
        self.fills = fills
        self.follows_selector = follows_selector

    @classmethod
    def for_table(cls, table: Table, settings: Settings) -> WithBaseline:
        """The predictor of the run, which fills missing values if the table has any."""
        follows = procedures.follows_selector(table, settings)
        return cls(procedures.predictor_of(table, settings), table.task, bool(table.n_missing), follows)

    def for_selector(self, selector: Any) -> WithBaseline:
        """The predictor for the features of a fitted selector."""
        own = chosen_predictor(selector) if self.follows_selector else None
        return self if own is None else WithBaseline(own, self.task, self.fills)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on the features, or on the target alone when there is none."""
        if X.shape[1] > 0:
            predictor = clone(self.estimator)
            self.estimator_ = (training.on_filled(predictor) if self.fills else predictor).fit(X, y)
        else:
            self.estimator_ = clone(BASELINES[TASKS[self.task].baseline]).fit(X, y)
        if TASKS[self.task].has_classes:
            self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Predictions."""
        return self.estimator_.predict(X)

    @available_if(_wrapped_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Decision values; all equal without features."""
        if X.shape[1] > 0:
            return self.estimator_.decision_function(X)
        n_classes = len(self.classes_)
        return np.zeros(X.shape[0]) if n_classes == 2 else np.zeros((X.shape[0], n_classes))

    @available_if(_wrapped_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities."""
        return self.estimator_.predict_proba(X)

    @available_if(_wrapped_has("predict_survival_function"))
    def predict_survival_function(self, X: Any, times: Any) -> Any:
        """Probabilities that the event has not happened at some times."""
        return self.estimator_.predict_survival_function(X, times)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        wrapped = get_tags(self.estimator)
        tags.estimator_type = wrapped.estimator_type
        tags.classifier_tags, tags.regressor_tags = wrapped.classifier_tags, wrapped.regressor_tags
        return tags


class NoFeatures(BaseEstimator):
    """A selector that selects nothing, so that the predictor uses covariates and the target only.

    Parameters
    ----------
    covariates : the columns of X that are covariates.
    """

    def __init__(self, covariates: Sequence[int] = ()) -> None:
        self.covariates = covariates

    def fit(self, X: Any, y: Any) -> Self:
        """Remember the number of features."""
        covariates = np.asarray(self.covariates, dtype=np.intp)
        self.path_ = SelectionPath.from_scores(np.zeros(X.shape[1] - covariates.size)).beside(covariates)
        return self

    def get_support(self) -> NDArray[np.bool_]:
        """No feature."""
        return np.zeros(self.path_.n_features, dtype=bool)


def baseline_records(table: Table, settings: Settings) -> Any:
    """Records of the baseline predictor on the same folds, made without copying the features.

    A metric that cannot be computed for the baseline is an error, before any other work.
    """
    alone = replace(table, X=np.zeros((table.n_samples, 1)), n_missing=0, covariates=None, covariate_names=())
    records = training.evaluate_procedures(
        {BASELINE: NoFeatures()}, alone, replace(settings, verbose=False), []
    )
    metric = procedures.primary_metric_of(table, settings)
    columns = columns_of(records)
    if chance_level(columns, metric) is None:
        raise _cause_of_no_value(columns["error"], metric, table)
    return records


def _cause_of_no_value(errors: list[Any], metric: str, table: Table) -> Exception:
    """The error for a baseline without a value: the metric only where the metric failed."""
    found = [str(error) for error in errors if error]
    elsewhere = next((text for text in found if not text.startswith("metric ")), None)
    if elsewhere is None:
        return procedures.unsuitable_metric(metric, table)
    if "MemoryError" in elsewhere:
        return NotEnoughMemoryError(
            "There is not enough memory to evaluate even a predictor without features. Raise the memory limit, close "
            f"other programs, or use fewer samples. ({elsewhere})"
        )
    return ValueError(f"The baseline, a predictor without features, could not be evaluated: {elsewhere}")


# -- Permutations -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PermutationTest:
    """How often the procedure did as well on permuted targets.

    Parameters
    ----------
    p_value : (1 + b) / (1 + m), with b of m permutations at least as good as the observed value.
    values : the metric on each permutation.
    smallest_p_value : the p-value that all different permuted targets together could give at best.
    """

    p_value: float
    values: tuple[float, ...]
    smallest_p_value: float


def permutation_count(
    table: Table, settings: Settings, sizes: list[int], method: str, *, is_only_test: bool = False
) -> int:
    """The number of permutations that the user set; with "auto", as many as fit into the time limit by an estimate.

    The limit is longer where the metric has no interval, so that permutations are the only test.
    """
    if settings.permutations != "auto":
        return int(settings.permutations)
    seconds = estimated_seconds(table, settings, sizes, method)
    count = next((count for count in COUNTS if count * seconds <= AFFORDABLE_SECONDS), 0)
    if count == 0 and is_only_test and COUNTS[-1] * seconds <= PATIENT_SECONDS:
        return COUNTS[-1]
    return count


def left_out_notes(table: Table, settings: Settings, sizes: list[int], method: str, n_made: int) -> list[str]:
    """Why "auto" made no permutations, if it made none because they would take too long."""
    fewest = COUNTS[-1]
    if settings.permutations != "auto" or n_made:
        return []
    seconds = fewest * estimated_seconds(table, settings, sizes, method)
    if seconds <= AFFORDABLE_SECONDS:
        return []
    time = f"{seconds:.0f} seconds" if seconds < 120 else f"{seconds / 60:.0f} minutes"
    return [
        Message(
            f"No permutation test was made: {fewest} permutations are estimated to take {time} on one core, and "
            f"without a number up to {AFFORDABLE_SECONDS:.0f} seconds are spent on them. To make them, set "
            f"{setting('permutations', fewest)}."
        )
    ]


def estimated_seconds(table: Table, settings: Settings, sizes: list[int], method: str) -> float:
    """Estimated seconds of the whole procedure on one target; auto fits each of its candidates."""
    is_auto = method == "auto"
    n_splits = settings.cv * settings.repeats
    inner = 0 if settings.features is not None else settings.cv
    if is_auto:
        inner = procedures.folds_of_auto(table, settings)
    n_sizes = len(sizes) if settings.features is None else 1
    seconds = n_splits * (1 + inner) * _seconds_of_selector(table, method)
    seconds += n_splits * (1 + inner * n_sizes) * _seconds_of_predictor(table, settings)
    return seconds * (1 + len(procedures.candidates(table)) if is_auto else 1)


def _seconds_of_selector(table: Table, method: str) -> float:
    n_values = table.n_samples * table.n_features
    if method in SLOWER or get_method(method).family != "filters":
        is_tall = table.n_samples > max(LARGEST_FOR_LIBSVM, table.n_features)
        return n_values * SLOWER.get(method, 1) * (SECONDS_OF_TALL_MODELS if is_tall else SECONDS_OF_MODELS)
    compares_samples = method in ("relief", "gram-schmidt-relief")
    return n_values * (SECONDS_OF_SCORES + compares_samples * SECONDS_OF_NEIGHBOURS * table.n_samples)


def _seconds_of_predictor(table: Table, settings: Settings) -> float:
    if not isinstance(settings.predictor, str):
        return SECONDS_PER_FOREIGN_PREDICTOR
    if settings.predictor == "gaussian":
        return SECONDS_PER_PREDICTOR + SECONDS_PER_PAIR * table.n_samples**2
    return SECONDS_PER_PREDICTOR + SECONDS_PER_SAMPLE * table.n_samples


def permutation_test(
    label: str,
    procedure: Any,
    table: Table,
    settings: Settings,
    observed: float,
    count: int,
    journal: Any = None,
    bar: RunBar | None = None,
) -> PermutationTest | None:
    """The permutation test of the whole procedure, including the choice of a size; None without any permutation.

    Under the hypothesis that target and features are independent, the observed value and those of the
    permutations are exchangeable, so the p-value is exact. The permuted targets all differ from each other and from
    the observed one; where there are fewer than ``count``, all of them are used.
    """
    exchange = table.target.exchange(table.sample_groups, settings.group_design)
    count = int(min(count, exchange.count - 1))
    if count == 0:
        return None
    metric, sign = procedures.primary_metric_of(table, settings), direction(table, settings)
    are_few = exchange.count < ENOUGH_EXCHANGES
    stated = f" (smallest possible p = {exchange.smallest_p_value:.2g})" if are_few else ""
    values = []
    for number, target in enumerate(permuted_targets(table, settings, count)):
        if bar is not None:
            bar.stage = f"permutation {number + 1} of {count}{stated}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits on meaningless targets may fail to converge
            records = training.evaluate_procedures(
                {label: procedure}, replace(table, y=target), settings, [], journal=journal, bar=bar
            )
        measured = (
            records[metric].drop_nulls()
            if hasattr(records[metric], "drop_nulls")
            else records[metric].dropna()
        )
        values.append(float(measured.mean()) if len(measured) else observed)
    if bar is not None:
        bar.stage = ""
    as_good = sum(sign * value >= sign * observed - 1e-12 * abs(observed) for value in values)
    return PermutationTest((1 + as_good) / (1 + count), tuple(values), exchange.smallest_p_value)


def direction(table: Table, settings: Settings) -> int:
    """+1 where a greater metric is better, -1 for errors."""
    return 1 if procedures.metrics_of(table, settings)[0].greater_is_better else -1


def permuted_targets(table: Table, settings: Settings, count: int) -> Iterator[NDArray[Any]]:
    """Permuted targets that differ from each other and from the observed one; there must be ``count`` of them."""
    seen, number = {_digest(table.y)}, 0
    while len(seen) <= count:
        permuted = permuted_target(table, settings.random_state, number, settings.group_design)
        number += 1
        if _digest(permuted) not in seen:
            seen.add(_digest(permuted))
            yield permuted


def _digest(values: NDArray[Any]) -> bytes:
    data = values.astype(str) if values.dtype.kind == "O" else np.ascontiguousarray(values)
    return hashlib.blake2b(data.tobytes(), digest_size=16).digest()


def permuted_target(table: Table, seed: int, number: int, design: str = "auto") -> NDArray[Any]:
    """The target with its labels exchanged as the sample groups allow."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7, number)))
    return table.target.permuted(rng, table.sample_groups, design).labels()


def exchange_notes(table: Table, settings: Settings) -> list[str]:
    """What permutations exchange where there are sample groups, and the smallest p-value if exchanges are few."""
    if table.sample_groups is None or settings.permutations == 0:
        return []
    exchange = table.target.exchange(table.sample_groups, settings.group_design)
    text = f"Permutations exchange {exchange.text} ({parameter('group_design')})."
    if exchange.count >= ENOUGH_EXCHANGES:
        return [Message(text)]
    if exchange.count < 2:
        return [Message(f"{text} Here this changes nothing, so there is no permutation test.")]
    return [
        Message(
            f"{text} Only {exchange.count:.0f} different targets result, so that no p-value can be below "
            f"{exchange.smallest_p_value:.2g}."
        )
    ]


def chance_level(baseline: Mapping[str, list[Any]], metric: str) -> float | None:
    """Mean of the metric of the baseline predictor over the test folds."""
    values = [value for value in baseline[metric] if value is not None]
    return float(np.mean(values)) if values else None
