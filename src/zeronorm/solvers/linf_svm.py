"""The support vector machine whose largest weight is as small as possible, by a linear program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from zeronorm.design.base import Design
from zeronorm.solvers.arrays import FloatArray
from zeronorm.solvers.linear_program import LinearProgram
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm_dual import per_sample


@dataclass(frozen=True, eq=False)
class LinfSvm:
    """A machine with bounded weights; ``pull`` is x'v, not zero only where the weight is at the bound."""

    weights: FloatArray
    bias: float
    bound: float
    pull: FloatArray
    objective: float
    status: Status


def solve_linf_svm(design: Design, y: ArrayLike, *, C: float | ArrayLike) -> LinfSvm:
    r"""Minimise :math:`t + \sum_i C_i \xi_i` with :math:`|w_k| \le t` and hinge slacks; C may be infinite.

    The program has two rows for each feature and a dense copy of the data.
    """
    labels = np.asarray(y, dtype=np.float64)
    n, p = design.shape
    price = per_sample(C, n)
    hard = np.isinf(price)
    margins = sp.csc_array(labels[:, None] * design.block(np.arange(p)))
    identity, ones = sp.eye_array(p), sp.csc_array(np.ones((p, 1)))
    matrix = sp.block_array(
        [
            [None, margins, sp.csc_array(labels[:, None]), sp.eye_array(n)],
            [ones, -identity, None, None],
            [ones, identity, None, None],
        ]
    )
    program = LinearProgram(
        cost=np.concatenate([[1.0], np.zeros(p + 1), np.where(hard, 0.0, price)]),
        matrix=matrix,
        row_lower=np.concatenate([np.ones(n), np.zeros(2 * p)]),
        row_upper=np.inf,
        col_lower=np.concatenate([[0.0], np.full(p + 1, -np.inf), np.zeros(n)]),
        col_upper=np.concatenate([np.full(p + 2, np.inf), np.where(hard, 0.0, np.inf)]),
    )
    found = program.solve()
    return LinfSvm(
        weights=found.x[1 : p + 1],
        bias=float(found.x[p + 1]),
        bound=float(found.x[0]),
        pull=design.transpose_dot(labels * found.row_duals[:n]),
        objective=found.objective,
        status=found.status,
    )
