"""Which of several methods to prefer, from their scores on the same folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm.evaluation.significance import adjust_p_values, corrected_resampled_t

LEVEL = 0.05


@dataclass(frozen=True)
class Choice:
    """The best method, those not significantly worse, and the preferred one."""

    methods: tuple[str, ...]
    best: str
    equals: tuple[str, ...]
    preferred: str

    @property
    def sentence(self) -> str:
        """The choice in words."""
        if len(self.equals) == 1:
            return f"{self.best} is significantly better than every other method."
        if len(self.equals) == len(self.methods):
            start = "No method is significantly better than the others"
        else:
            start = f"{', '.join(self.equals)} do not differ significantly and are better than the rest"
        return f"{start}. Of those within one standard error of the best, {self.preferred} uses the fewest features."


def choose_method(
    scores: Mapping[str, Any], sizes: Mapping[str, float], *, n_train: float, n_test: float
) -> Choice:
    """Compare methods by their scores over the same folds (greater is better).

    A method is as good as the best one when the corrected resampled t-test with Holm's correction finds no
    difference at the level 0.05. Of these, and of those within one standard error of the best mean, the one
    with the fewest features is preferred: few folds find few differences, so the test alone would be too kind.

    Parameters
    ----------
    scores : one value per fold for each method.
    sizes : number of features of each method.
    n_train, n_test : mean numbers of samples in the training and test parts.
    """
    values = {name: np.asarray(found, dtype=np.float64) for name, found in scores.items()}
    means = {name: float(found.mean()) for name, found in values.items()}
    best = min(values, key=lambda name: (-means[name], sizes[name]))
    n_folds = len(values[best])
    if n_folds < 2:
        return Choice(tuple(values), best, tuple(values), best)
    others = [name for name in values if name != best]
    tests = [
        corrected_resampled_t(values[best], values[name], n_train=n_train, n_test=n_test) for name in others
    ]
    adjusted = adjust_p_values([test.p_value for test in tests])
    worse = {name for name, p_value in zip(others, adjusted, strict=True) if p_value < LEVEL}
    equals = tuple(name for name in values if name not in worse)
    lowest = means[best] - float(values[best].std(ddof=1)) / np.sqrt(n_folds)
    near = [name for name in equals if means[name] >= lowest - 1e-12 * abs(lowest)]
    preferred = min(near, key=lambda name: (sizes[name], -means[name], name))
    return Choice(tuple(values), best, equals, preferred)
