"""A kernel machine on rescaled features, which values each feature by the kernel of that feature alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from zeronorm.criteria import LinearKernel, PolynomialKernel, RBFKernel, ScaledKernel
from zeronorm.design import Design
from zeronorm.selectors.scaling.single_feature_kernels import rbf_forms
from zeronorm.selectors.sparsity.machines import SOLVER_MAX_ITER, SOLVER_TOL, Part
from zeronorm.selectors.sparsity.rescaling import NO_SOLUTION
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm_dual import solve_svm_dual

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


class SingleFeatureMachine:
    r"""``Machine`` of the rescaling engine with :math:`s_k^2 = \sum_c v_c^\top K_k v_c`, K_k the kernel of feature k.

    For the linear kernel and two classes :math:`s_k = |w_k|`.
    """

    settled = True

    def __init__(self, parts: Sequence[Part], kernel: ScaledKernel) -> None:
        self.parts, self.kernel = parts, kernel
        self.status = Status.CONVERGED

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        K = self.kernel.matrix(design.gram(scale**2))
        for part in self.parts:
            part.solution = solve_svm_dual(
                K,
                part.target,
                C=part.price,
                loss="squared_hinge",
                warm_start=part.solution,
                tol=SOLVER_TOL,
                max_iter=SOLVER_MAX_ITER,
            )
        self.status = max(part.solution.status for part in self.parts)
        if self.status in NO_SOLUTION:
            return np.zeros(scale.size)
        V = np.column_stack([part.solution.dual_coef for part in self.parts])
        return np.asarray(np.sqrt(single_feature_forms(design, self.kernel, scale, V).sum(axis=1)))

    def keep(self, staying: BoolArray) -> None:
        """The dual variables belong to samples: there is nothing to forget."""


def single_feature_forms(
    design: Design, kernel: ScaledKernel, scale: FloatArray, V: FloatArray
) -> FloatArray:
    """v'Kv with the kernel of each rescaled feature alone: one row per feature, one column per column v of V."""
    if isinstance(kernel, LinearKernel):
        return np.asarray((scale[:, None] * design.transpose_dot(V)) ** 2)
    forms = np.empty((design.n_features, V.shape[1]))
    for columns, block in design.iter_blocks():
        if isinstance(kernel, RBFKernel):
            rows, width = np.ascontiguousarray(block.T), kernel.gamma * scale[columns] ** 2
            for c in range(V.shape[1]):
                forms[columns, c] = rbf_forms(rows, width, np.ascontiguousarray(V[:, c]))
        else:
            assert isinstance(kernel, PolynomialKernel)
            forms[columns] = _polynomial_forms(kernel, block * scale[columns], V)
    return forms


def _polynomial_forms(kernel: PolynomialKernel, block: FloatArray, V: FloatArray) -> FloatArray:
    r"""(γ x x' + c)^d multiplied out: a sum of squares of :math:`\sum_i v_i x_i^m`, of which m = 0 vanishes."""
    forms = np.zeros((block.shape[1], V.shape[1]))
    power = np.ones_like(block)
    for m in range(1, kernel.degree + 1):
        power *= block
        weight = math.comb(kernel.degree, m) * kernel.gamma**m * kernel.coef0 ** (kernel.degree - m)
        forms += weight * (power.T @ V) ** 2
    return forms
