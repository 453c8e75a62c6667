"""Multiplicative updates of scaling factors with a kernel machine."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm.criteria import LinearKernel
from zeronorm.selectors.base import WeightedSelector
from zeronorm.selectors.path import SelectionPath
from zeronorm.selectors.problem import Problem
from zeronorm.selectors.registry import register
from zeronorm.selectors.scaling.kernel_choice import chosen_kernel
from zeronorm.selectors.scaling.scaled_criterion import varying_columns
from zeronorm.selectors.scaling.single_feature_machine import SingleFeatureMachine
from zeronorm.selectors.sparsity.copies import first_copies
from zeronorm.selectors.sparsity.machines import parts_of
from zeronorm.selectors.sparsity.parameters import check_positive
from zeronorm.selectors.sparsity.rescaling import Rescaling, Rule, multiplicative, rescale_until_sparse

FloatArray = NDArray[np.float64]


@register(
    "kernel-multiplicative-update",
    family="scaling",
    tasks=("binary", "multiclass"),
    reference="Guyon et al. 2003, section 2.3.1 (NLMU)",
    test_params=({}, {"kernel": "linear"}, {"kernel": "poly", "stop_at": 4}),
)
class KernelMultiplicativeUpdate(WeightedSelector):
    r"""Train a kernel machine, multiply every feature by what it alone contributes, repeat.

    With :math:`v = \alpha * y` of the machine on the rescaled features and the kernel of one rescaled feature alone,

    .. math:: s_k = \sqrt{\textstyle\sum_{ij} v_i v_j\, k(z_k x_{ik}, z_k x_{jk})}, \qquad z_k \leftarrow z_k\, s_k .

    For the linear kernel :math:`s_k = |w_k|`, and the iteration is that of :class:`~zeronorm.AROM` with the ℓ2
    norm, step by step. Other kernels depend on the overall scale of z, on which the paper is silent and which would
    overflow or vanish: z is therefore multiplied by one number in each step so that the sum of its squares stays the
    number of features. More than two classes share z, with :math:`s_k^2 = \sum_c s_{kc}^2` over machines of one
    class against the rest.

    It sees one feature at a time: a feature that matters only together with another, and whose distribution is the
    same in both classes, gets no credit. On the nonlinear toy problem it finds the feature whose distribution
    differs between the classes and misses its partner, which :class:`~zeronorm.RadiusMarginScaling` and
    :class:`~zeronorm.RFE` with an RBF kernel find. In exchange it is fast: for small widths the double sum over
    samples is replaced by a short series.

    Sizes are read off the largest weights :math:`z_k s_k` of the last iterate with more features than asked for.
    With ``stop_at=100`` smaller sizes are the top of the last iterate that has at least 100 features ("to 100, keep
    the top 7").

    Identical columns are merged before the start: the weight goes to the first, the others rank last.

    Parameters
    ----------
    n_features_to_select : count, fraction, or None for the features at rest (or at ``stop_at``).
    kernel : "rbf" (default), "poly" or "linear".
    C : price of squared slacks, (C/2) Σ ξ²; ``numpy.inf`` for a hard margin.
    stop_at : iterates with fewer features are not used; None for all.
    gamma : width of "rbf" and factor of "poly"; None is one over the number of features.
    degree, coef0 : of the polynomial kernel.
    zero_tol : weights up to this fraction of the largest count as zero, and the features leave for good.
    tol : the iteration rests when no factor changes by more than this, relatively.
    max_iter : largest number of machines trained in turn.
    standardize, estimator, feature_groups, always_keep : as in all selectors.

    Attributes
    ----------
    scale_ : the factors z that the last machine was trained with.
    representative_ : for each feature the first one identical to it.
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        kernel: Literal["rbf", "poly", "linear"] = "rbf",
        C: float = 10.0,
        stop_at: int | None = None,
        gamma: float | None = None,
        degree: int = 2,
        coef0: float = 1.0,
        standardize: bool = True,
        zero_tol: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 1000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.kernel = kernel
        self.C = C
        self.stop_at = stop_at
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.standardize = standardize
        self.zero_tol = zero_tol
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem: Problem) -> SelectionPath:
        check_positive(self, "C", "tol", "max_iter")
        if self.stop_at is not None:
            check_positive(self, "stop_at")
        kernel = chosen_kernel(self, problem.n_features)
        self.representative_ = first_copies(problem.design)
        candidates = np.intersect1d(np.unique(self.representative_), varying_columns(problem.design))
        rule = multiplicative if isinstance(kernel, LinearKernel) else constant_sum_rule(candidates.size)
        result = rescale_until_sparse(
            SingleFeatureMachine(parts_of(problem, self.C), kernel),
            problem.design,
            candidates,
            rule,
            zero_tol=self.zero_tol,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        if not result.iterates:
            result.status.check("KernelMultiplicativeUpdate with a hard margin (C=inf)")
        self.scale_ = result.scale
        if self.stop_at is not None:
            _forget_smaller(result, self.stop_at)
        return result.path()


def constant_sum_rule(total: float) -> Rule:
    r"""The multiplicative rule, rescaled so that :math:`\sum_k z_k^2` is ``total``."""

    def rule(scale: FloatArray, strength: FloatArray) -> FloatArray:
        product = scale * strength
        norm = float(np.linalg.norm(product))
        return np.asarray(product * (np.sqrt(total) / norm)) if norm > 0.0 else product

    return rule


def _forget_smaller(result: Rescaling, stop_at: int) -> None:
    """Drop the iterates with fewer features; the first always stays."""
    result.iterates = [
        pair for place, pair in enumerate(result.iterates) if place == 0 or pair[0].size >= stop_at
    ]
