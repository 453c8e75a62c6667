"""Measures of how well a kernel fits the labels, each with its gradient through the Gram matrix.

A criterion G(K) comes with ∂G/∂K. A kernel turns the Gram matrix of the scaled features into K and pulls a gradient
back. So the derivative with respect to every squared scaling factor is one call:
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
