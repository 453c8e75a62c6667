"""A network with one hidden layer, masks on its weights, trained by L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from zeronorm._types import BoolArray, FloatArray, Int64Array
from zeronorm.design._base import Design
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear._losses import SeparableLoss

HISTORY = 20  # pairs of steps and gradients that L-BFGS keeps
FUNCTION_TOLERANCE = 1e-12  # relative change of the objective below which a step is rounding


@dataclass(frozen=True, eq=False)
class NeuralNetwork:
    """The network f(x) = V' tanh(W' x + b) + c, in which weights outside the masks are zero and stay zero."""

    hidden_weights: FloatArray  # W, (inputs, hidden)
    hidden_bias: FloatArray
    output_weights: FloatArray  # V, (hidden, outputs)
    output_bias: FloatArray
    hidden_mask: BoolArray
    output_mask: BoolArray

    @classmethod
    def random(cls, n_inputs: int, n_hidden: int, n_outputs: int, rng: np.random.Generator) -> NeuralNetwork:
        """A network with small uniform random weights (Glorot), without masks."""
        hidden = np.sqrt(6.0 / (n_inputs + n_hidden)) * rng.uniform(-1.0, 1.0, (n_inputs, n_hidden))
        output = np.sqrt(6.0 / (n_hidden + n_outputs)) * rng.uniform(-1.0, 1.0, (n_hidden, n_outputs))
        return cls(
            hidden,
            np.zeros(n_hidden),
            output,
            np.zeros(n_outputs),
            np.ones(hidden.shape, dtype=bool),
            np.ones(output.shape, dtype=bool),
        )

    def masked(self, hidden_mask: BoolArray, output_mask: BoolArray) -> NeuralNetwork:
        """The network with only the weights inside both masks."""
        return replace(
            self,
            hidden_weights=np.where(hidden_mask, self.hidden_weights, 0.0),
            output_weights=np.where(output_mask, self.output_weights, 0.0),
            hidden_mask=hidden_mask,
            output_mask=output_mask,
        )

    def take(self, inputs: BoolArray | Int64Array) -> NeuralNetwork:
        """The network restricted to these inputs."""
        return replace(self, hidden_weights=self.hidden_weights[inputs], hidden_mask=self.hidden_mask[inputs])

    def hidden(self, design: Design) -> FloatArray:
        """Activations of the hidden layer, one row per sample."""
        return np.asarray(np.tanh(design.dot(self.hidden_weights) + self.hidden_bias))

    def outputs(self, design: Design) -> FloatArray:
        """f at every sample, one column per output."""
        return self.hidden(design) @ self.output_weights + self.output_bias

    def packed(self) -> FloatArray:
        """All free parameters as one vector."""
        return np.concatenate(
            [
                self.hidden_weights[self.hidden_mask],
                self.hidden_bias,
                self.output_weights[self.output_mask],
                self.output_bias,
            ]
        )

    def unpacked(self, vector: FloatArray) -> NeuralNetwork:
        """The network with the parameters of a vector as made by ``packed``."""
        n_input, n_output = np.count_nonzero(self.hidden_mask), np.count_nonzero(self.output_mask)
        n_hidden = self.hidden_bias.size
        ends = np.cumsum([n_input, n_hidden, n_output])
        input_part, hidden_bias, output_part, output_bias = np.split(vector, ends)
        hidden, output = np.zeros(self.hidden_weights.shape), np.zeros(self.output_weights.shape)
        hidden[self.hidden_mask] = input_part
        output[self.output_mask] = output_part
        return replace(
            self,
            hidden_weights=hidden,
            hidden_bias=hidden_bias,
            output_weights=output,
            output_bias=output_bias,
        )


@dataclass(frozen=True, eq=False)
class NetworkObjective:
    r"""Mean loss over samples, summed over outputs, plus a penalty on the weights but not on the biases:

    .. math:: T = \frac{\sum_i s_i \sum_c L(f_c(x_i), y_{ic})}{\sum_i s_i}
        + \frac{\lambda}{2} \bigl(\|W\|^2 + \|V\|^2\bigr).
    """

    design: Design
    targets: FloatArray  # (samples, outputs)
    loss: SeparableLoss
    penalty: float
    sample_weight: FloatArray | None = None

    @cached_property
    def share(self) -> FloatArray:
        """Weight of each sample in the mean, as a column."""
        n = self.targets.shape[0]
        weight = np.ones(n) if self.sample_weight is None else self.sample_weight
        return np.asarray(weight / weight.sum())[:, None]

    def output_slopes(self, network: NeuralNetwork) -> FloatArray:
        """Derivative of the mean loss in each output of each sample."""
        return self.share * self.loss.slope(network.outputs(self.design), self.targets)

    def value_and_gradient(self, network: NeuralNetwork) -> tuple[float, NeuralNetwork]:
        """T and its gradient in the shape of a network, by back-propagation."""
        Z = network.hidden(self.design)
        F = Z @ network.output_weights + network.output_bias
        W, V = network.hidden_weights, network.output_weights
        penalty = 0.5 * self.penalty * (np.sum(W * W) + np.sum(V * V))
        value = float(np.sum(self.share * self.loss.value(F, self.targets)) + penalty)
        slope = self.share * self.loss.slope(F, self.targets)
        backward = (slope @ V.T) * (1.0 - Z * Z)
        gradient = replace(
            network,
            hidden_weights=self.design.transpose_dot(backward) + self.penalty * W,
            hidden_bias=backward.sum(axis=0),
            output_weights=Z.T @ slope + self.penalty * V,
            output_bias=slope.sum(axis=0),
        )
        return value, gradient

    def diagonal_hessian(self, network: NeuralNetwork) -> tuple[FloatArray, FloatArray]:
        r"""Exact second derivatives of T in each weight of the hidden and of the output layer.

        With :math:`z = \tanh(a)`, :math:`L'` and :math:`L''` at the outputs,

        .. math:: \frac{\partial^2 T}{\partial W_{jq}^2} = \lambda + \sum_i s_i x_{ij}^2 \sum_c \bigl(
            L''_{ic} V_{qc}^2 (1 - z_{iq}^2)^2 - 2 L'_{ic} V_{qc} z_{iq} (1 - z_{iq}^2) \bigr).
        """
        Z = network.hidden(self.design)
        V = network.output_weights
        F = Z @ V + network.output_bias
        slope = self.share * self.loss.slope(F, self.targets)
        curvature = self.share * self.loss.curvature(F, self.targets)
        bend = 1.0 - Z * Z
        inner = (curvature @ (V * V).T) * bend**2 - 2.0 * (slope @ V.T) * Z * bend
        hidden = np.empty(network.hidden_weights.shape)
        for columns, block in self.design.iter_blocks():
            hidden[columns] = (block * block).T @ inner
        return hidden + self.penalty, (Z * Z).T @ curvature + self.penalty


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network at a minimum of its objective, up to the tolerance unless the status says otherwise."""

    network: NeuralNetwork
    value: float
    gradient_norm: float  # largest absolute entry
    n_iter: int
    status: Status


def train_network(
    objective: NetworkObjective, start: NeuralNetwork, *, tol: float = 1e-5, max_iter: int = 1000
) -> TrainedNetwork:
    """Minimise the objective over the weights inside the masks of ``start``, beginning there.

    Converged when no entry of the gradient is larger than ``tol``. The minimum is local: it depends on the start.
    """

    def value_and_gradient(vector: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective.value_and_gradient(start.unpacked(vector))
        return value, gradient.packed()

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": tol, "ftol": FUNCTION_TOLERANCE}
    found = minimize(
        value_and_gradient,
        start.packed(),
        jac=True,
        method="L-BFGS-B",
        options={**options, "maxcor": HISTORY},
    )
    gradient_norm = float(np.abs(found.jac).max(initial=0.0))
    status = Status.CONVERGED
    if gradient_norm > tol:
        status = Status.ITERATION_LIMIT if found.nit >= max_iter or found.status == 1 else Status.STALLED
    return TrainedNetwork(start.unpacked(found.x), float(found.fun), gradient_norm, int(found.nit), status)
