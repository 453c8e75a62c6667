"""Comparison of selectors on held-out data: protocol, metrics, significance and stability."""

from zeronorm.evaluation._protocol import evaluate
from zeronorm.evaluation._stability import (
    correlation_stability,
    hamming_distance,
    jaccard_stability,
    kuncheva_stability,
    nogueira_stability,
    stability_of_records,
)
from zeronorm.resampling._metrics import (
    METRICS,
    Metric,
    area_under_curve,
    balanced_error_rate,
    error_rate,
    probe_fraction,
    register_metric,
)
from zeronorm.resampling.survival._concordance import concordance, uno_concordance

__all__ = [
    "METRICS",
    "Metric",
    "area_under_curve",
    "balanced_error_rate",
    "concordance",
    "correlation_stability",
    "error_rate",
    "evaluate",
    "hamming_distance",
    "jaccard_stability",
    "kuncheva_stability",
    "nogueira_stability",
    "probe_fraction",
    "register_metric",
    "stability_of_records",
    "uno_concordance",
]
