"""Measures of how well a kernel fits the labels, each with its gradient through the Gram matrix.

A criterion G(K) comes with ∂G/∂K. A kernel computes K from the Gram matrix of the scaled features, and turns a gradient
with respect to K into one with respect to the Gram matrix. The derivative with respect to all squared scaling factors
is then one call:
``design.gram_adjoint(kernel.pullback(gram, K, dG_dK))``.
"""

from zeronorm.criteria._base import Criterion, CriterionValue, FactoredMatrix, Summed
from zeronorm.criteria._kernels import LinearKernel, PolynomialKernel, RBFKernel, ScaledKernel, make_kernel
from zeronorm.criteria._margin import Margin, Radius, RadiusMargin, SoftMargin, Variance
from zeronorm.criteria._span import CrossValidation, Span, ValidationLoss

__all__ = [
    "Criterion",
    "CriterionValue",
    "CrossValidation",
    "FactoredMatrix",
    "LinearKernel",
    "Margin",
    "PolynomialKernel",
    "RBFKernel",
    "Radius",
    "RadiusMargin",
    "ScaledKernel",
    "SoftMargin",
    "Span",
    "Summed",
    "ValidationLoss",
    "Variance",
    "make_kernel",
]
