"""How a problem with several classes becomes problems for one learner."""

from __future__ import annotations

from typing import Literal

import numpy as np

from zeronorm.selectors.stochastic.pool import IntArray

MultiClass = Literal["auto", "native", "one_vs_rest", "output_code"]
# All ways to split so few classes in two are used; of more classes a random choice of splits is.
MOST_EXHAUSTIVE = 6


def machine_coding(
    n_classes: int, multi_class: MultiClass, is_binary: bool, rng: np.random.Generator
) -> tuple[IntArray, int]:
    """Label of each class in each machine (one row per machine), and the number of labels."""
    if multi_class not in ("auto", "native", "one_vs_rest", "output_code"):
        raise ValueError(
            "The 'multi_class' parameter must be 'auto', 'native', 'one_vs_rest' or 'output_code'. "
            f"Got {multi_class!r} instead."
        )
    if multi_class == "auto":
        multi_class = "one_vs_rest" if is_binary else "native"
    if n_classes == 2 or multi_class == "native":
        if is_binary and n_classes > 2:
            raise ValueError(
                f"The base learner knows two classes, y has {n_classes}: set multi_class='one_vs_rest'."
            )
        return np.arange(n_classes, dtype=np.int64)[None, :], n_classes
    if multi_class == "one_vs_rest":
        return np.eye(n_classes, dtype=np.int64), 2
    return _output_codes(n_classes, rng), 2


def _output_codes(n_classes: int, rng: np.random.Generator) -> IntArray:
    """Splits of the classes in two parts (Dietterich and Bakiri 1995), the last class always labelled 0."""
    if n_classes <= MOST_EXHAUSTIVE:
        numbers = np.arange(1, 2 ** (n_classes - 1))
        bits = (numbers[:, None] >> np.arange(n_classes)[None, :]) & 1
        return bits.astype(np.int64)
    n_machines = int(np.ceil(10 * np.log2(n_classes)))
    codes = np.zeros((n_machines, n_classes), dtype=np.int64)
    for row in codes:
        while row.min() == row.max():
            row[:-1] = rng.integers(0, 2, size=n_classes - 1)
    return codes
