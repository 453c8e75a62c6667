"""Tests and effect sizes: whether methods differ, and by how much."""

from zeronorm.engines._error_control import adjust_p_values
from zeronorm.evaluation.significance._effects import (
    EffectSize,
    SignedRank,
    error_difference,
    hodges_lehmann,
    mean_difference,
    signed_rank,
    standardized_difference,
)
from zeronorm.evaluation.significance._paired import (
    CorrectedT,
    compare_methods,
    corrected_resampled_t,
    paired_test,
)
from zeronorm.evaluation.significance._pooled import metric_interval
from zeronorm.evaluation.significance._ranks import (
    CriticalDifference,
    Friedman,
    McNemar,
    ScoreMatrix,
    critical_difference,
    friedman,
    mcnemar,
    score_matrix,
    score_matrix_of_records,
)

__all__ = [
    "CorrectedT",
    "CriticalDifference",
    "EffectSize",
    "Friedman",
    "McNemar",
    "ScoreMatrix",
    "SignedRank",
    "adjust_p_values",
    "compare_methods",
    "corrected_resampled_t",
    "critical_difference",
    "error_difference",
    "friedman",
    "hodges_lehmann",
    "mcnemar",
    "mean_difference",
    "metric_interval",
    "paired_test",
    "score_matrix",
    "score_matrix_of_records",
    "signed_rank",
    "standardized_difference",
]
