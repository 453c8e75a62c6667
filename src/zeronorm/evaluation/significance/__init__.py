"""Is the difference real, and how large is it?"""

from zeronorm.engines.error_control import adjust_p_values
from zeronorm.evaluation.significance.effects import (
    EffectSize,
    error_difference,
    hodges_lehmann,
    mean_difference,
    standardized_difference,
)
from zeronorm.evaluation.significance.paired import (
    CorrectedT,
    SignedRank,
    compare_methods,
    corrected_resampled_t,
    paired_test,
    signed_rank,
)
from zeronorm.evaluation.significance.pooled import metric_interval
from zeronorm.evaluation.significance.ranks import (
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
