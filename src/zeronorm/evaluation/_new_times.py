"""How good the predicted risks and survival curves of new samples are: calibration and risk groups."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.evaluation._new_samples import (
    CONFIDENCE,
    FEWEST_IN_BIN,
    N_BINS,
    Predicted,
    alike,
    normal_limits,
    normal_quantile,
)
from zeronorm.evaluation._risk_groups import risk_groups_of_new
from zeronorm.resampling.survival._calibration import log_ratio_of_events, slope_and_error
from zeronorm.resampling.survival._curves import event_and_time, kaplan_meier_at

N_STEPS = 100  # equally spaced times of the predicted curves


def calibration_of_times(predicted: Predicted) -> dict[str, Any]:
    """Slope, intercept and groups of like predictions, for times to an event.

    The slope is the weight of the predicted log risk in a Cox model of the new samples, the intercept the logarithm of
    observed over expected events. A value is None where it is not defined.
    """
    event, time = event_and_time(predicted.truth)
    expected = predicted.model.expected_events(predicted.X, time)
    found: dict[str, Any] = {"slope": None, "intercept": None}
    with suppress(ValueError):
        slope, error = slope_and_error(predicted.truth, predicted.predictions, predicted.groups)
        found["slope"] = normal_limits(slope, error**2)
    with suppress(ValueError):
        ratio, error = log_ratio_of_events(predicted.truth, expected, predicted.groups)
        found["intercept"] = normal_limits(ratio, error**2)
    found |= {"observed": int(event.sum()), "expected": float(expected.sum())}
    return found | (_bins(predicted) if event.any() else {})


def _bins(predicted: Predicted) -> dict[str, Any]:
    """Predicted and observed survival at the median time of the events, in groups of samples with like predictions."""
    event, time = event_and_time(predicted.truth)
    at = float(np.median(time[event]))
    survival = predicted.model.survival(predicted.X, [at])[:, 0]
    n_bins = max(1, min(N_BINS, int(event.sum()) // FEWEST_IN_BIN))
    rows = []
    for part in alike(survival, n_bins):
        value, low, high = kaplan_meier_at(event[part], time[part], at, normal_quantile(CONFIDENCE))
        mean = float(survival[part].mean())
        rows.append({"n": int(part.size), "predicted": mean, "value": value, "low": low, "high": high})
    return {"time": at, "bins": rows}


def risk_groups_of(predicted: Predicted) -> dict[str, Any]:
    """Kaplan–Meier curves of groups of new samples by their predicted risk, and the mean of the predicted curves.

    Empty where the risks are too few or equal.
    """
    found = risk_groups_of_new(predicted.truth, predicted.predictions, predicted.groups)
    if found is None:
        return {}
    times = np.linspace(0.0, float(found.time.max()), N_STEPS)
    groups = []
    for code, (name, curve) in enumerate(zip(found.names, found.curves(), strict=True)):
        inside = found.group == code
        last = float(found.time[inside].max())
        steps = [(0.0, 1.0), *zip(curve.times.tolist(), curve.values.tolist(), strict=True)]
        groups.append(
            {
                "name": name,
                "time": found.time[inside].tolist(),
                "events": int(found.event[inside].sum()),
                "steps": [*steps, (last, float(curve(last)))],
                "predicted": _points(times, predicted.model.survival(predicted.X[inside], times)),
            }
        )
    return {"groups": groups, "p_value": None if found.test is None else found.test.p_value}


def _points(times: FloatArray, survival: FloatArray) -> list[tuple[float, float]]:
    return list(zip(times.tolist(), survival.mean(axis=0).tolist(), strict=True))
