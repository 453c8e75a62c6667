"""From the user's settings to checked numbers."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from zeronorm._types import FloatArray, Int64Array

LARGEST_DEFAULT_SUBSET = 100
SMALLEST_DEFAULT_BOOTSTRAP, LARGEST_DEFAULT_BOOTSTRAP = 20, 100


def check_count(owner: Any, name: str, low: int = 1) -> int:
    """A parameter that must be a whole number."""
    value = getattr(owner, name)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= low:
        return int(value)
    raise ValueError(
        f"The '{name}' parameter of {type(owner).__name__} must be a whole number of at least {low}. "
        f"Got {value!r} instead."
    )


def check_positive(owner: Any, name: str, *, or_none: bool = True, or_zero: bool = False) -> float | None:
    """A parameter that must be a positive number, or None where that is allowed."""
    value = getattr(owner, name)
    if value is None and or_none:
        return None
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if is_number and np.isfinite(float(value)) and (value > 0 or (or_zero and value == 0)):
        return float(value)
    raise ValueError(
        f"The '{name}' parameter of {type(owner).__name__} must be a positive number{' or None' * or_none}. "
        f"Got {value!r} instead."
    )


def check_choice(owner: Any, name: str, choices: tuple[str, ...]) -> str:
    """A parameter that must be one of a few words."""
    value = getattr(owner, name)
    if value in choices:
        return str(value)
    raise ValueError(
        f"The '{name}' parameter of {type(owner).__name__} must be one of {', '.join(map(repr, choices))}. "
        f"Got {value!r} instead."
    )


def resolve_subset_size(owner: Any, n_features: int) -> int:
    """How many features are drawn at a time: by default about the root of their number, 100 at most."""
    if owner.subset_size is None:
        return min(n_features, LARGEST_DEFAULT_SUBSET, int(np.ceil(np.sqrt(n_features))))
    size = check_count(owner, "subset_size")
    if size > n_features:
        raise ValueError(
            f"The 'subset_size' parameter of {type(owner).__name__} must be at most the number of features "
            f"under study, {n_features}. Got {size} instead."
        )
    return size


def resolve_bootstrap_size(owner: Any, n_samples: int, n_classes: int) -> int:
    """How many samples a bootstrap draws: by default a quarter of them, between 20 and 100."""
    if owner.bootstrap_size is None:
        usual = min(LARGEST_DEFAULT_BOOTSTRAP, max(SMALLEST_DEFAULT_BOOTSTRAP, n_samples // 4))
        return max(usual, 2 * n_classes)
    return check_count(owner, "bootstrap_size", 2)


def class_costs(owner: Any, classes: NDArray[Any], codes: Int64Array) -> FloatArray:
    """The cost of a mistake on each class."""
    weights = owner.class_weight
    if weights is None:
        return np.ones(len(classes))
    if owner.cost == "balanced":
        raise ValueError(
            f"{type(owner).__name__} got cost='balanced' and a 'class_weight'; the balanced error already "
            "counts the classes alike. Set one of the two."
        )
    if weights == "balanced":
        return np.asarray(compute_class_weight("balanced", classes=np.arange(len(classes)), y=codes))
    if not isinstance(weights, Mapping):
        raise ValueError(
            f"The 'class_weight' parameter of {type(owner).__name__} must be None, 'balanced' or a mapping "
            f"from class to weight. Got {weights!r} instead."
        )
    unknown = [label for label in weights if label not in set(classes.tolist())]
    costs = np.asarray([weights.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    if unknown or not np.all(np.isfinite(costs)) or costs.min() <= 0:
        raise ValueError(
            f"The 'class_weight' parameter of {type(owner).__name__} must give positive weights to classes "
            f"of y ({', '.join(map(str, classes.tolist()[:5]))}). Got {weights!r} instead."
        )
    return costs


# -- How a problem with several classes becomes problems for one learner --


MultiClass = Literal["auto", "native", "one_vs_rest", "output_code"]
# All ways to split so few classes in two are used; of more classes a random choice of splits is.
MOST_EXHAUSTIVE = 6


def machine_coding(
    n_classes: int, multi_class: MultiClass, is_binary: bool, rng: np.random.Generator
) -> tuple[Int64Array, int]:
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


def _output_codes(n_classes: int, rng: np.random.Generator) -> Int64Array:
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
