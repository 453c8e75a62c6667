"""The zero-norm in the feature space of a polynomial kernel."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from zeronorm.models.polynomial_space import ExplicitSpace, ImplicitSpace
from zeronorm.selectors.registry import register
from zeronorm.selectors.sparsity.parameters import check_choice, check_positive

FloatArray = NDArray[np.float64]


@register(
    "kernel-arom",
    kind="model",
    family="sparsity",
    tasks=("binary",),
    reference="Weston, Elisseeff, Schölkopf & Tipping 2003, sections 3.4 and 5",
    test_params=({}, {"space": "implicit", "max_iter": 2}),
)
class KernelAROM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Classifier with a sparse polynomial, found by AROM in the space of monomials.

    The kernel

    .. math:: k(x, x') = \sum_{r=1}^{d} (x \cdot x')^r = \phi(x) \cdot \phi(x')

    has as coordinates of :math:`\phi` all *ordered* monomials of degree 1 to d. This map, unlike the usual one
    with square roots of binomials, is multiplicative, :math:`\phi(x * x') = \phi(x) * \phi(x')`, so that
    AROM's rescaling of :math:`\phi(x)` by :math:`z = \sum_i \gamma_i \phi(x_i)` is again a kernel of the inputs:

    .. math:: k_z(x, x') = \sum_{ij} \gamma_i \gamma_j\, k(x_i * x,\ x_j * x').

    ``space="explicit"`` runs the iteration on the monomials themselves: exact, and the polynomial can be
    read (``monomials_``, ``coef_``). ``space="implicit"`` stays with kernels. Its first update, with
    :math:`\gamma = \alpha * y`, is exact; later ones project z onto the span of the training vectors,
    :math:`\gamma = K^+ K_t (\alpha_t * y)`, which is exact only if that span is the whole space, that is, if the
    rank of :math:`\phi(X)` is the number of distinct monomials. Otherwise the two differ.

    A predictor and not a selector: what becomes sparse is the polynomial, not the set of inputs. It is
    trained on the rescaled monomials, since in the implicit space there is no way back to the original scale.

    Parameters
    ----------
    degree : largest degree d of the monomials.
    space : "explicit" or "implicit". The implicit kernel costs n⁴ operations for n samples and suits up to
        some hundred of them; the explicit one has as many columns as monomials.
    C : price of slacks, :math:`\tfrac{C}{2}\sum\xi_i^2`; ``numpy.inf`` for a hard margin, as in the paper.
    standardize : scale the inputs to mean 0 and variance 1 first.
    zero_tol : explicit weights up to this fraction of the largest count as zero, and leave for good.
    tol : the iteration rests when no scaling factor (implicit: the kernel matrix) changes by more than this,
        relatively.
    max_iter : largest number of machines trained in turn.

    Attributes
    ----------
    monomials_ : explicit: the monomials of the polynomial, as tuples of input indices.
    coef_ : explicit: their coefficients, for the inputs as standardised.
    intercept_ : the bias.
    n_iter_, converged_ : machines trained, and whether the iteration came to rest.
    """

    def __init__(
        self,
        *,
        degree: int = 2,
        space: Literal["explicit", "implicit"] = "explicit",
        C: float = 10.0,
        standardize: bool = True,
        zero_tol: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 100,
    ) -> None:
        self.degree = degree
        self.space = space
        self.C = C
        self.standardize = standardize
        self.zero_tol = zero_tol
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> Self:
        """Find the polynomial."""
        check_choice(self, "space", ("explicit", "implicit"))
        check_positive(self, "degree", "C", "tol", "max_iter")
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        signs = self._encode(y)
        self.mean_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            self.mean_, deviation = X.mean(axis=0), X.std(axis=0)
            self.scale_ = np.where(deviation > 1e-12 * np.abs(X).max(axis=0, initial=0.0), deviation, np.inf)
        inputs = self._inputs(X)
        settings: dict[str, Any] = {"C": self.C, "tol": self.tol, "max_iter": self.max_iter}
        model: ExplicitSpace | ImplicitSpace
        if self.space == "explicit":
            model = ExplicitSpace(inputs, signs, self.degree, zero_tol=self.zero_tol, **settings)
            self.monomials_, self.coef_ = model.monomials, model.weights
        else:
            model = ImplicitSpace(inputs, signs, self.degree, **settings)
        self._model = model
        self.intercept_ = model.bias
        self.n_iter_, self.converged_ = model.n_iter, model.converged
        if not model.converged:
            warnings.warn(f"KernelAROM did not converge: {model.remedy}", ConvergenceWarning, stacklevel=2)
        return self

    def _encode(self, y: NDArray[Any]) -> FloatArray:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"KernelAROM needs samples of two classes. Got one class only: {self.classes_!r}."
            )
        if self.classes_.size > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}: "
                f"KernelAROM got {self.classes_.size} classes. Wrap it in OneVsRestClassifier."
            )
        return np.where(codes == 1, 1.0, -1.0)

    def _inputs(self, X: FloatArray) -> FloatArray:
        return np.asarray((X - self.mean_) / self.scale_)

    def decision_function(self, X: Any) -> FloatArray:
        """Values of the polynomial, positive for the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._model.decide(self._inputs(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each sample."""
        values = self.decision_function(X)
        return np.asarray(self.classes_[(values > 0.0).astype(np.intp)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
