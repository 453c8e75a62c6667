"""Honest comparison of selectors: protocol, metrics, significance and stability."""

from zeronorm.evaluation.metrics import METRICS, Metric, probe_fraction
from zeronorm.evaluation.protocol import evaluate

__all__ = ["METRICS", "Metric", "evaluate", "probe_fraction"]
