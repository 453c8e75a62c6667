"""Splits, seeds, the loop over folds, metrics, predictors and the journal of finished folds."""

from zeronorm.resampling._journal import Journal, digest
from zeronorm.resampling._metrics import METRICS, Metric, parse_metrics, register_metric
from zeronorm.resampling.survival._metrics import SURVIVAL_METRICS

for _metric in SURVIVAL_METRICS:
    register_metric(_metric)

__all__ = ["METRICS", "Journal", "Metric", "digest", "parse_metrics", "register_metric"]
