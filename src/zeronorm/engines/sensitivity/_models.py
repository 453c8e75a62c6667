"""Models with derivatives of their output with respect to each input.

A model is trained on some columns of the data and has outputs f_c (one per class against the rest, or one). Their
derivatives and changes are computed for a block of these columns at every sample, as arrays of shape
(samples, columns of the block, outputs).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria._kernels import PolynomialKernel, RBFKernel
from zeronorm.engines.elimination._kernel import KernelModels, make_source
from zeronorm.engines.elimination._linear import LinearModels
from zeronorm.engines.sensitivity._network import NetworkModels
from zeronorm.selection._problem import Problem
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import LinearProblem, svm_loss


class SensitiveModel(ABC):
    """Interface of a model with derivatives; ``columns`` are those that its ``models`` were last trained on."""

    columns: IntArray
    models: LinearModels | KernelModels | NetworkModels

    @property
    def status(self) -> Status:
        """The worst status of all trainings."""
        return self.models.status

    @property
    def n_iter(self) -> int:
        """Total number of iterations of all trainings."""
        return self.models.n_iter

    def train(self, columns: IntArray) -> None:
        """Fit on the given columns of the data."""
        self.columns = columns
        self.models.continue_with(columns)
        self.models.train()

    @abstractmethod
    def slopes(self, part: slice, block: FloatArray) -> FloatArray:
        """∂f/∂x; ``block`` holds the values of the columns of ``part``, as in all methods below."""

    @abstractmethod
    def curvatures(self, part: slice, block: FloatArray) -> FloatArray:
        """∂²f/∂x²."""

    @abstractmethod
    def changes(self, part: slice, block: FloatArray, shift: FloatArray) -> FloatArray:
        """f with one column moved by ``shift`` (one row per sample), minus f."""

    @abstractmethod
    def loss_slopes(self) -> FloatArray:
        """Derivative of the training loss with respect to each f_c at each sample."""


class LinearFunction(SensitiveModel):
    """Linear support vector machines, f = x·w + b."""

    models: LinearModels

    def __init__(self, problem: Problem, *, C: float, loss: str, epsilon: float | None, tol: float) -> None:
        self.columns = np.arange(problem.n_features)
        linear = LinearProblem.of(problem.around_zero(), svm_loss(loss, epsilon), C)
        self.models = LinearModels(problem, linear, tol=tol)

    def slopes(self, part: slice, block: FloatArray) -> FloatArray:
        weights = self.models.weights()[part]
        return np.broadcast_to(weights, (block.shape[0], *weights.shape))

    def curvatures(self, part: slice, block: FloatArray) -> FloatArray:
        return np.zeros_like(self.slopes(part, block))

    def changes(self, part: slice, block: FloatArray, shift: FloatArray) -> FloatArray:
        return shift[:, :, None] * self.models.weights()[part]

    def loss_slopes(self) -> FloatArray:
        # At the optimum w = X'v, and -v is a subgradient of the loss.
        return -self.models.solution.dual_coef


class KernelModel(SensitiveModel):
    """Support vector machines with a kernel, f(x) = Σ_j v_j k(x, x_j) + b."""

    models: KernelModels

    def __init__(
        self,
        problem: Problem,
        kernel: PolynomialKernel | RBFKernel,
        *,
        C: float,
        loss: str,
        epsilon: float | None,
        tol: float,
    ) -> None:
        self.problem, self.kernel = problem, kernel
        self.columns = np.arange(problem.n_features)
        source = make_source(problem.design, kernel)
        self.models = KernelModels(problem, source, C=C, loss=loss, epsilon=epsilon, tol=tol)
        self._gram: tuple[IntArray, FloatArray] | None = None

    @property
    def gram(self) -> FloatArray:
        """Inner products of the samples in the trained columns."""
        if self._gram is None or self._gram[0] is not self.columns:
            self._gram = self.columns, self.problem.design.take(self.columns).gram()
        return self._gram[1]

    def slopes(self, part: slice, block: FloatArray) -> FloatArray:
        kernel = self.kernel
        if isinstance(kernel, PolynomialKernel):
            return kernel.degree * kernel.gamma * self._moment(self._power(1), block, 1)
        K = self.models.K
        return (
            2.0 * kernel.gamma * (self._moment(K, block, 1) - block[:, :, None] * self._moment(K, block, 0))
        )

    def curvatures(self, part: slice, block: FloatArray) -> FloatArray:
        kernel = self.kernel
        if isinstance(kernel, PolynomialKernel):
            factor = kernel.degree * (kernel.degree - 1) * kernel.gamma**2
            return factor * self._moment(self._power(2), block, 2)
        K, x = self.models.K, block[:, :, None]
        none, first, second = (self._moment(K, block, m) for m in (0, 1, 2))
        squares = second - 2.0 * x * first + x * x * none  # Σ_j v_j K_kj (x_j - x_k)²
        return 4.0 * kernel.gamma**2 * squares - 2.0 * kernel.gamma * none

    def changes(self, part: slice, block: FloatArray, shift: FloatArray) -> FloatArray:
        kernel = self.kernel
        if isinstance(kernel, PolynomialKernel):
            terms = [
                math.comb(kernel.degree, m)
                * (kernel.gamma * shift[:, :, None]) ** m
                * self._moment(self._power(m), block, m)
                for m in range(1, kernel.degree + 1)
            ]
            return np.asarray(sum(terms))
        support = np.flatnonzero(self.models.V.any(axis=1))
        V, square = self.models.V, np.diagonal(self.gram)
        distance_sq = square[:, None] + square[None, support] - 2.0 * self.gram[:, support]
        before = self.models.K @ V
        result = np.empty(block.shape + V.shape[1:])
        for j in range(block.shape[1]):
            x, moved = block[:, j, None], (block[:, j] + shift[:, j])[:, None]
            other = block[None, support, j]
            after_sq = np.maximum(distance_sq - (x - other) ** 2, 0.0) + (moved - other) ** 2
            result[:, j] = np.exp(-kernel.gamma * after_sq) @ V[support] - before
        return result

    def loss_slopes(self) -> FloatArray:
        return -self.models.V

    def _power(self, m: int) -> FloatArray:
        """(γ x·z + c)^(d-m) between all samples."""
        kernel = self.kernel
        assert isinstance(kernel, PolynomialKernel)
        base = kernel.gamma * self.gram + kernel.coef0
        return np.asarray(base ** max(kernel.degree - m, 0))

    def _moment(self, K: FloatArray, block: FloatArray, m: int) -> FloatArray:
        """Σ_j v_jc K_kj x_j^m for every sample k, column of the block and model c."""
        V: FloatArray = self.models.V
        if m == 0:
            return np.asarray((K @ V)[:, None, :])
        powers = block**m
        return np.stack([K @ (V[:, [c]] * powers) for c in range(V.shape[1])], axis=2)


class NetworkModel(SensitiveModel):
    """A network with one hidden layer."""

    models: NetworkModels

    def __init__(self, problem: Problem, *, n_hidden: int, penalty: float, tol: float, max_iter: int) -> None:
        self.columns = np.arange(problem.n_features)
        self.models = NetworkModels(problem, n_hidden=n_hidden, penalty=penalty, tol=tol, max_iter=max_iter)

    def slopes(self, part: slice, block: FloatArray) -> FloatArray:
        Z = self._hidden()
        return self._through_hidden(self.models.network.hidden_weights[part], 1.0 - Z * Z)

    def curvatures(self, part: slice, block: FloatArray) -> FloatArray:
        Z = self._hidden()
        return self._through_hidden(self.models.network.hidden_weights[part] ** 2, -2.0 * Z * (1.0 - Z * Z))

    def changes(self, part: slice, block: FloatArray, shift: FloatArray) -> FloatArray:
        network, design = self.models.network, self.models.objective.design
        inner = design.dot(network.hidden_weights) + network.hidden_bias
        before = np.tanh(inner) @ network.output_weights
        result = np.empty(block.shape + before.shape[1:])
        for j, weights in enumerate(network.hidden_weights[part]):
            result[:, j] = np.tanh(inner + np.outer(shift[:, j], weights)) @ network.output_weights - before
        return result

    def loss_slopes(self) -> FloatArray:
        return self.models.objective.output_slopes(self.models.network)

    def _through_hidden(self, incoming: FloatArray, inner: FloatArray) -> FloatArray:
        """Σ_q incoming_jq inner_kq V_qc."""
        V = self.models.network.output_weights
        return np.stack([(inner * V[:, c]) @ incoming.T for c in range(V.shape[1])], axis=2)

    def _hidden(self) -> FloatArray:
        return self.models.network.hidden(self.models.objective.design)
