"""From the user's settings to checked numbers."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from zeronorm.selectors.stochastic.pool import FloatArray, IntArray

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


def class_costs(owner: Any, classes: NDArray[Any], codes: IntArray) -> FloatArray:
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
