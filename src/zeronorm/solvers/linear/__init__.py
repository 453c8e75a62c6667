"""Linear models: one problem, one solution, one function that solves it.

.. math:: \\min_{w, b}\\ \\tfrac12 \\|w / z\\|_2^2 + L(Xw + b) \\qquad\\text{or}\\qquad \\|w / z\\|_1 + L(Xw + b)
"""

from zeronorm.solvers.linear._cox import CoxLoss
from zeronorm.solvers.linear._losses import (
    LOGISTIC,
    ROBUST_LOSSES,
    SQUARED_ERROR,
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    Loss,
    QuantileLoss,
    SeparableLoss,
    register_loss,
    svm_loss,
)
from zeronorm.solvers.linear._named import loss_for
from zeronorm.solvers.linear._problem import LinearProblem, Norm, Solution, State
from zeronorm.solvers.linear._ranking import RankingLoss
from zeronorm.solvers.linear._solve import solve
from zeronorm.solvers.linear._survival import SurvivalLoss
from zeronorm.solvers.linear._ways import (
    Reuse,
    Way,
    choose,
    prefers_gram,
    prefers_products,
    smallest_gram_size,
)

__all__ = [
    "LOGISTIC",
    "ROBUST_LOSSES",
    "SQUARED_ERROR",
    "CoxLoss",
    "EpsilonInsensitiveLoss",
    "HingeLoss",
    "HuberLoss",
    "LinearProblem",
    "Loss",
    "Norm",
    "QuantileLoss",
    "RankingLoss",
    "Reuse",
    "SeparableLoss",
    "Solution",
    "State",
    "SurvivalLoss",
    "Way",
    "choose",
    "loss_for",
    "prefers_gram",
    "prefers_products",
    "register_loss",
    "smallest_gram_size",
    "solve",
    "svm_loss",
]
