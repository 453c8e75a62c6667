"""Cox's partial likelihood by going through all risk sets, one event after the other."""

from __future__ import annotations

import numpy as np


def denominators(f, event, time, weight, ties="efron", strata=None):
    """Weight in front of the logarithm and the terms of the sum inside, (weight, coefficients), for each event."""
    strata = np.zeros(len(f)) if strata is None else strata
    found = []
    for stratum in np.unique(strata):
        inside = strata == stratum
        for t in np.unique(time[event & inside]):
            tied = event & inside & (time == t)
            d = int(tied.sum())
            for step, i in enumerate(np.flatnonzero(tied)):
                phi = step / d if ties == "efron" else 0.0
                front = weight[tied].mean() if ties == "efron" else weight[i]
                found.append((front, weight * (inside & (time >= t)) - phi * weight * tied))
    return found


def negative_log_likelihood(f, event, time, weight, ties="efron", strata=None):
    total = -float(np.sum(weight[event] * f[event]))
    for front, coefficients in denominators(f, event, time, weight, ties, strata):
        total += front * np.log(np.sum(coefficients * np.exp(f)))
    return total


def gradient_and_hessian(f, event, time, weight, ties="efron", strata=None):
    gradient, hessian = -weight * event, np.zeros((len(f), len(f)))
    for front, coefficients in denominators(f, event, time, weight, ties, strata):
        share = coefficients * np.exp(f) / np.sum(coefficients * np.exp(f))
        gradient = gradient + front * share
        hessian += front * (np.diag(share) - np.outer(share, share))
    return gradient, hessian
