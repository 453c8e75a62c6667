"""The work of ``apply``: predictions of a saved model for new samples, and their score where the outcome is known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix, roc_curve

from zeronorm._messages import Message, OptionError, parameter, rendered, setting
from zeronorm.datasets._raw import RawTable
from zeronorm.datasets._table import counted, missing_labels, shown, shown_list
from zeronorm.datasets._times import split_value, times_and_events
from zeronorm.evaluation import _new_samples as new
from zeronorm.evaluation import _new_times as times
from zeronorm.resampling._metrics import METRICS, Metric
from zeronorm.resampling.survival._brier import IntegratedBrier, brier_times, times_between
from zeronorm.resampling.survival._curves import censoring_survival, event_and_time
from zeronorm.result._cohort import CohortData
from zeronorm.result._files import write_csv
from zeronorm.result._folder import output_folder
from zeronorm.result._models import LinearModel, SurvivalModel
from zeronorm.result._provenance import Clock, call_text, file_checksum, provenance
from zeronorm.selection.target import TASKS, TimeToEvent
from zeronorm.workflow._inputs import given_vector
from zeronorm.workflow._kinds import defaults_of
from zeronorm.workflow._new_features import NewFeatures, new_features
from zeronorm.workflow._options import ApplyOptions, Caller
from zeronorm.workflow._outcomes import outcome_column, true_values

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHIFT = 3.0  # standard deviations of the training samples between their mean and that of the new ones
FEWEST_FOR_SHIFT = 5  # new samples for a warning about their means
SHARE_CHANGE = 0.2  # change of the share of a class that is worth a warning


class Cohort(CohortData):
    """What ``apply`` returns: the predictions for new samples and, where the outcome is known, how good they are.

    Parameters
    ----------
    data : dict
        Source, target, task, classes, numbers of samples, features and scored samples.
    scores : list of dict, default=[]
        One row per metric: value, low and high, the expected value with its interval, their difference with its
        interval, and the verdict ("compatible", "worse", or empty without an interval). The metric of the
        selection comes first. Empty without a target.
    classes : list of dict, default=[]
        Sensitivity and specificity of every class, with intervals.
    confusion : dict, default={}
        Classes, and counts with true classes in rows.
    calibration : dict, default={}
        Slope and intercept with intervals, and ``bins``: means of predictions and outcomes in groups of samples.
    refit : dict, default={}
        Missing features, those that were used instead, and the share of their variance that these explain.
    notes, warnings : list of str, default=[]
        What was inferred or changed in the data, and reasons for caution.
    provenance : dict, default={}
        Command, versions, start and duration.
    samples : dict, default={}
        The table of samples by column: name, truth, prediction, whether it is wrong, decision value, probabilities.
    roc : dict, default={}
        Points of the ROC curve.
    risk_groups : dict, default={}
        For times to an event, the Kaplan–Meier curves of groups of samples by their predicted risk, the mean of the
        predicted curves, and the p-value of the log-rank test.

    Examples
    --------
    >>> import zeronorm
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, _ = make_linear_toy(100, random_state=0)
    >>> result = zeronorm.select(X[:60], y[:60], method="fisher", features=4, permutations=0)
    >>> names = [feature.index for feature in result.selected]
    >>> cohort = zeronorm.apply(result.model, X[60:, names], y[60:])
    >>> cohort.data["n_scored"], cohort.scores[0]["metric"]
    (40, 'balanced_error_rate')
    """

    def report(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the HTML report to a file, or as report.html into a folder."""
        from zeronorm.report._cohort_page import render_cohort
        from zeronorm.workflow._result import write_page

        return write_page(lambda: render_cohort(self), Path(path), force=force)

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write predictions.csv, cohort.json and report.html to a folder."""
        from zeronorm.report._cohort_page import render_cohort

        with output_folder(folder, force=force) as folders:
            write_csv(folders.folder / "predictions.csv", self.rows())
            (folders.folder / "cohort.json").write_text(self.to_json(), encoding="utf-8")
            (folders.folder / "report.html").write_text(render_cohort(self), encoding="utf-8")
        return Path(folder)


def run_apply(arguments: Mapping[str, Any], caller: Caller | None = None) -> Cohort:
    """Check the options, read the data, predict, score, and write the files."""
    clock = Clock()
    caller = caller or Caller(call_text("apply", arguments, defaults_of(ApplyOptions)))
    given = dict(arguments)
    model, data = as_model(given.pop("model")), given.pop("data")
    options = ApplyOptions(**given)
    found, truth, groups, notes = _read(model, data, options)
    cohort = _cohort(model, found, truth, groups, options)
    cohort = replace(
        cohort,
        data={"source": _source(data), **cohort.data, "sha256": file_checksum(data)},
        notes=[rendered(note, caller.naming) for note in (*notes, *cohort.notes)],
        warnings=[rendered(text, caller.naming) for text in cohort.warnings],
        provenance=provenance(clock, caller.command or ""),
    )
    if options.out is not None:
        _write(cohort, Path(options.out), options)
    return cohort


def as_model(model: Any) -> LinearModel:
    """The model of a file, of a folder, of a result, or the model itself."""
    if isinstance(model, (str, os.PathLike)):
        return LinearModel.load(model)
    found = getattr(model, "model", model)
    if not isinstance(found, LinearModel):
        raise ValueError(
            "The 'model' parameter must be a model, a result of select that has one, or the path of a model.json. Got "
            f"{type(model).__name__} instead."
        )
    return found


def _source(data: Any) -> str:
    if isinstance(data, (str, os.PathLike)):
        return str(data)
    return f"{type(data).__name__} of {data.shape[0]} × {data.shape[1]}" if hasattr(data, "shape") else "data"


def _write(cohort: Cohort, out: Path, options: ApplyOptions) -> None:
    """A CSV file of the predictions, or a folder with everything."""
    if options.is_file:
        write_csv(out, cohort.rows())
    else:
        cohort.save(out, force=options.force)


# -- Reading ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Truth:
    """The true values of the new samples, and which of them are known."""

    values: NDArray[Any]

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return ~missing_labels(self.values)


def _read(
    model: LinearModel, data: Any, options: ApplyOptions
) -> tuple[NewFeatures, _Truth | None, NDArray[Any] | None, list[str]]:
    """The features of the model, the true values and the groups of the samples, and notes."""
    found, raw = new_features(model, data, options)
    notes, name = list(found.notes), options.target
    truth = groups = None
    is_survival = model.task == TimeToEvent.task
    if is_survival != (options.time is not None) and (name is not None or options.time is not None):
        needed = "time" if is_survival else "target"
        raise OptionError(
            f"does not apply to a model of {model.task}. Use {parameter(needed, 'object')}"
            f"{' and ' + parameter('event', 'object') if is_survival else ''} instead.",
            "target" if is_survival else "time",
        )
    if is_survival and options.time is not None:
        outcomes, said = _times_and_events(raw, options, len(found.X))
        truth, notes = _Truth(outcomes), [*notes, *said]
    elif name is not None:
        values = _values(raw, name, len(found.X), "target")
        label = name if isinstance(name, str) else model.target
        truth_values, more = true_values(values, model, label)
        truth, notes = _Truth(truth_values), [*notes, *more]
    elif raw is not None and model.target in (*raw.names, *raw.targets):
        has = f"The new data have the column {shown(model.target)}, the target of the model."
        notes.append(Message(f"{has} To score the predictions, {setting('target', model.target, 'set')}."))
    if options.sample_groups is not None:
        groups = np.asarray(
            [str(g) for g in _values(raw, options.sample_groups, len(found.X), "sample_groups")]
        )
    return found, truth, groups, notes


def _times_and_events(
    raw: RawTable | None, options: ApplyOptions, n_samples: int
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The true outcomes of a model of times to an event, and a note on what the event is."""
    event, value = options.event, None
    if isinstance(event, str) and raw is not None:
        event, value = split_value(event, [*raw.names, *raw.targets])
    columns = [
        _values(raw, given, n_samples, role) for role, given in (("time", options.time), ("event", event))
    ]
    names = [
        given if isinstance(given, str) else role
        for role, given in (("time", options.time), ("event", event))
    ]

    def at(row: int) -> str:
        return f"data row {row + 1}" if raw is None else raw.at(row)

    return times_and_events(columns[0], columns[1], (names[0], names[1]), value, at)


def _values(raw: RawTable | None, given: Any, n_samples: int, option: str) -> NDArray[Any]:
    if isinstance(given, str) and raw is not None:
        return outcome_column(raw, given, option)
    return given_vector(given, n_samples, option)


# -- Predicting and scoring ---------------------------------------------------------------------------


def _cohort(
    model: LinearModel,
    found: NewFeatures,
    truth: _Truth | None,
    groups: NDArray[Any] | None,
    options: ApplyOptions,
) -> Cohort:
    predictions = model.predict(found.X)
    probabilities = _probabilities(model, found)
    samples = _sample_table(model, found, truth, predictions, probabilities)
    data = {
        "target": model.target,
        "task": model.task,
        "classes": [str(label) for label in model.classes],
        "n_samples": len(found.X),
        "n_features": len(model.features),
        "n_scored": 0 if truth is None else int(truth.is_known.sum()),
    }
    seen = _seen_samples(model, found)
    if 0 < seen.sum() < len(seen):
        samples["seen"] = seen.tolist()
    warnings = [*_seen_warnings(seen, is_scored=truth is not None), *_shift_warnings(model, found)]
    cohort = Cohort(data=data, samples=samples, refit=found.refit, warnings=warnings)
    if truth is None:
        return cohort
    known = truth.is_known
    if not seen[known].all():  # else there are only these
        known = known & ~seen
    data |= {"n_scored": int(known.sum()), "n_seen": int(seen.sum())}
    decision = model.decision(found.X)[:, 0] if len(model.classes) == 2 else None
    predicted = new.Predicted(
        _typed(truth.values[known], model),
        predictions[known],
        None if decision is None else decision[known],
        None if groups is None else groups[known],
        model,
        found.X[known],
    )
    shares = None if probabilities is None else probabilities[known]
    scores = _scores(model, predicted)
    if seen[known].any():  # what was promised is the error on new samples
        scores = [{**score, "verdict": "seen"} for score in scores]
    return replace(
        cohort,
        scores=scores,
        warnings=[*cohort.warnings, *_class_warnings(model, predicted)],
        **_of_outcomes(model, predicted, shares),
    )


def _of_outcomes(
    model: LinearModel, predicted: new.Predicted, probabilities: NDArray[np.float64] | None
) -> dict[str, Any]:
    """What the kind of the target adds to the scores."""
    if isinstance(model, SurvivalModel):
        return {
            "calibration": times.calibration_of_times(predicted),
            "risk_groups": times.risk_groups_of(predicted),
        }
    return _of_classes(model, predicted, probabilities) if model.classes else _of_numbers(predicted)


def _typed(values: NDArray[Any], model: LinearModel) -> NDArray[Any]:
    """Known true values in the type of the predictions."""
    if values.dtype.names:
        return values
    return np.asarray(values.tolist(), dtype=np.asarray(model.classes).dtype if model.classes else np.float64)


def _probabilities(model: LinearModel, found: NewFeatures) -> NDArray[np.float64] | None:
    if model.probabilities is None or found.certainty is None:
        return None
    return model.predict_proba(found.X, certainty=found.certainty)


def _sample_table(
    model: LinearModel,
    found: NewFeatures,
    truth: _Truth | None,
    predictions: NDArray[Any],
    probabilities: NDArray[np.float64] | None,
) -> dict[str, list[Any]]:
    table: dict[str, list[Any]] = {}
    if found.samples is not None:
        table["sample"] = [str(name) for name in found.samples]
    if truth is not None and truth.values.dtype.names:
        for name in truth.values.dtype.names:
            cells = zip(truth.values[name].tolist(), truth.is_known, strict=True)
            table[name] = [cell if known else None for cell, known in cells]
    elif truth is not None:
        table["truth"] = [
            v if k else None for v, k in zip(truth.values.tolist(), truth.is_known, strict=True)
        ]
    table["prediction"] = predictions.tolist()
    if isinstance(model, SurvivalModel):
        medians = model.median_time(found.X).tolist()
        table["median_time"] = [None if np.isnan(time) else time for time in medians]
    if truth is not None and model.task == TimeToEvent.task:
        pass  # a log risk has no error
    elif truth is not None and model.classes:
        pairs = zip(table["truth"], table["prediction"], strict=True)
        table["wrong"] = [None if true is None else bool(true != predicted) for true, predicted in pairs]
    elif truth is not None:
        pairs = zip(table["truth"], table["prediction"], strict=True)
        table["error"] = [None if true is None else predicted - true for true, predicted in pairs]
    if TASKS[model.task].has_classes and model.scheme == "single":
        table["decision"] = model.decision(found.X)[:, 0].tolist()
    if probabilities is not None:
        for label, column in zip(model.classes, probabilities.T, strict=True):
            table[f"probability of {label}"] = column.tolist()
    return table


def _scores(model: LinearModel, predicted: new.Predicted) -> list[dict[str, Any]]:
    """Every metric that is defined, with its interval and the expected value; that of the selection first."""
    promised = model.expected or {"primary": "", "metrics": {}}
    names = dict.fromkeys([promised["primary"], *promised["metrics"], *METRICS])
    present = set(np.unique(predicted.truth).tolist())
    rows = []
    for name in names:
        metric = new.known_metric(name)
        if metric is None or model.task not in metric.tasks:
            continue
        if name == "calibration_slope" and name != promised["primary"]:
            continue  # a part of the calibration: neither a larger nor a smaller one is better
        metric, is_comparable = _for_new_times(metric, promised, predicted)
        if (metric.is_balanced or metric.outcomes == "ranks") and len(present) < len(model.classes):
            continue  # not the measure that it is with all classes
        found = new.measured(metric, predicted)
        if found is None:
            continue
        expected = promised["metrics"].get(name) if is_comparable else None
        expected = expected or {"value": None, "low": None, "high": None}
        compared = new.against_expected(found, expected, metric)
        rows.append({**found, **{_expected_key(key): value for key, value in expected.items()}, **compared})
    return rows


def _for_new_times(
    metric: Metric, promised: Mapping[str, Any], predicted: new.Predicted
) -> tuple[Metric, bool]:
    """The metric for the new samples, and whether its value can be compared with the expected one.

    An integrated Brier score is a mean over the times of the selection, which the new samples must reach.
    """
    if not isinstance(metric.function, IntegratedBrier):
        return metric, True
    event, time = event_and_time(predicted.truth)
    if not event.any():
        return metric, False
    last = promised.get("last_time", np.inf)
    is_comparable = bool(time.max() > last)
    at = times_between(predicted.model.times[0], last) if is_comparable else brier_times(predicted.truth)
    return replace(metric, function=IntegratedBrier(censoring_survival(event, time), at)), is_comparable


def _expected_key(name: str) -> str:
    return "expected" if name == "value" else f"expected_{name}"


def _of_classes(
    model: LinearModel, predicted: new.Predicted, probabilities: NDArray[np.float64] | None
) -> dict[str, Any]:
    """Rates of the classes, confusion, calibration and the ROC curve."""
    classes = model.classes
    position = {label: index for index, label in enumerate(classes)}
    codes = np.asarray([position[label] for label in predicted.truth.tolist()], dtype=np.intp)
    guessed = [position[label] for label in predicted.predictions.tolist()]
    counts = confusion_matrix(codes, guessed, labels=list(range(len(classes))))
    found: dict[str, Any] = {
        "classes": new.class_rates(predicted, classes),
        "confusion": {"classes": [str(label) for label in classes], "counts": counts.tolist()},
    }
    if probabilities is not None:
        found["calibration"] = new.calibration_of_classes(codes, probabilities, predicted.groups)
        found["calibration"]["bins"] = _bins_of_classes(codes, probabilities)
    if predicted.decision is not None and len(np.unique(codes)) == 2:
        false, true, _ = roc_curve(codes == 1, predicted.decision)
        found["roc"] = {"false_positive_rate": false.tolist(), "true_positive_rate": true.tolist()}
    return found


def _bins_of_classes(codes: NDArray[Any], probabilities: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Of two classes the probability of the second one; of more classes those of all classes together."""
    if probabilities.shape[1] == 2:
        return new.calibration_bins(probabilities[:, 1], codes == 1)
    hits = np.eye(probabilities.shape[1], dtype=bool)[codes]
    return new.calibration_bins(probabilities.ravel(), hits.ravel())


def _of_numbers(predicted: new.Predicted) -> dict[str, Any]:
    found = new.calibration_of_numbers(predicted.truth, predicted.predictions, predicted.groups)
    return {"calibration": {**found, "bins": new.bins_of_numbers(predicted.truth, predicted.predictions)}}


def _seen_samples(model: LinearModel, found: NewFeatures) -> NDArray[np.bool_]:
    """Which samples the model was selected on; features that were filled in hide them."""
    if model.seen is None or found.refit:
        return np.zeros(len(found.X), dtype=bool)
    return model.seen.among(found.X)


def _seen_warnings(seen: NDArray[np.bool_], *, is_scored: bool) -> list[str]:
    """That samples are not new."""
    count = int(seen.sum())
    if count == 0:
        return []
    if count == len(seen):
        return [
            "These are the samples that the model was selected on: the figures are optimistic, and say nothing about "
            "new samples. The expected error, from the outer folds, is the one to report."
        ]
    are, they = ("is", "It is") if count == 1 else ("are", "They are")
    left_out = f" {they} predicted, but not scored: the figures are of the others." if is_scored else ""
    return [
        f"{count} of {counted(len(seen), 'sample')} {are} among those that the model was selected on (all its features "
        f"have the same values).{left_out}"
    ]


# -- Reasons for caution ------------------------------------------------------------------------------


def _shift_warnings(model: LinearModel, found: NewFeatures) -> list[str]:
    """Features whose mean is far from that of the training samples: often another unit or normalisation."""
    warnings = list(found.warnings)
    if model.moments is None or len(found.X) < FEWEST_FOR_SHIFT:
        return warnings
    at = {name: i for i, name in enumerate(model.moments.features)}
    kept = [at[name] for name in model.features]
    mean, scale = np.asarray(model.moments.mean)[kept], np.asarray(model.moments.scale)[kept]
    far = np.abs(found.X.mean(axis=0) - mean) > SHIFT * scale
    if far.any():
        names = [name for name, is_far in zip(model.features, far, strict=True) if is_far]
        warnings.append(
            f"The mean of {counted(len(names), 'feature')} ({shown_list(names, 5)}) is more than {SHIFT:g} standard "
            "deviations from that of the training samples. Check units and normalisation: the model does not correct "
            "them."
        )
    return warnings


def _class_warnings(model: LinearModel, predicted: new.Predicted) -> list[str]:
    """One class only, or class shares that differ from those of the training samples."""
    if not model.classes:
        return []
    labels, counts = np.unique(predicted.truth, return_counts=True)
    if len(labels) == 1:
        return [
            f"All scored samples are {shown(str(labels[0]))}: the balanced error rate and the area under the curve are "
            "not defined, and the error rate is that of this class alone."
        ]
    trained = (model.expected or {}).get("class_counts")
    if not trained:
        return []
    by_label = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    now = np.asarray([by_label.get(label, 0) for label in model.classes]) / counts.sum()
    before = np.asarray(trained) / np.sum(trained)
    if np.abs(now - before).max() <= SHARE_CHANGE:
        return []
    listed = _shares(model.classes, now), _shares(model.classes, before)
    return [
        f"The classes have other shares ({listed[0]}) than in the training samples ({listed[1]}): the error rate and "
        "the probabilities depend on the shares; the balanced error rate and the area under the curve do not."
    ]


def _shares(classes: Sequence[Any], shares: NDArray[np.float64]) -> str:
    parts = [f"{100 * share:.0f} % {shown(str(label))}" for label, share in zip(classes, shares, strict=True)]
    return ", ".join(parts[:4]) + (" …" if len(parts) > 4 else "")
