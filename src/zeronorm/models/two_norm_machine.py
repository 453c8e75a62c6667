"""A machine on rescaled kernel columns with the norm of the ordinary support vector machine added."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from zeronorm.design import Design
from zeronorm.design.dense import DenseDesign
from zeronorm.selectors.sparsity.machines import LinearMachine
from zeronorm.solvers.status import Status

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


class TwoNormMachine:
    r"""Minimise :math:`\tfrac12 u^\top (I + \tau Z K Z) u` plus the loss; ``LinearModel`` of the rescaling engine.

    With the factor :math:`I + \tau ZKZ = LL^\top`, the machine for :math:`L^\top u` on the features
    :math:`x\,Z L^{-\top}` is an ordinary one. Needs a dense copy of the columns.
    """

    settled = True

    def __init__(self, machine: LinearMachine, kernel: FloatArray, weight: float) -> None:
        self.machine = machine
        self.kernel = kernel
        self.weight = weight
        self.weights: FloatArray = np.zeros((0, len(machine.parts)))

    @property
    def status(self) -> Status:
        return self.machine.status

    @property
    def bias(self) -> FloatArray:
        return self.machine.bias

    def train(self, design: Design, scale: FloatArray) -> FloatArray:
        inner = self.weight * scale[:, None] * self.kernel * scale
        inner[np.diag_indices_from(inner)] += 1.0
        factor = cholesky(inner, lower=True, overwrite_a=True)
        columns = design.block(np.arange(scale.size)) * scale
        rotated = solve_triangular(factor, columns.T, lower=True).T
        self.machine.train(DenseDesign(rotated), np.ones(scale.size))
        rescaled_weights = solve_triangular(factor, self.machine.weights, lower=True, trans="T")
        self.weights = scale[:, None] * rescaled_weights
        return np.asarray(np.abs(rescaled_weights).sum(axis=1))

    def keep(self, staying: BoolArray) -> None:
        self.kernel = self.kernel[np.ix_(staying, staying)]
        self.machine.keep(staying)
