"""Joint classifier and feature optimisation: a classifier that uses few samples and few features."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import log_ndtr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from zeronorm._types import FloatArray, IntArray
from zeronorm.criteria import LinearKernel, ScaledKernel
from zeronorm.design import Design
from zeronorm.engines._column_information import explained_share
from zeronorm.engines._sparse_paths import first_copies
from zeronorm.engines.factor_descent._criterion import chosen_kernel
from zeronorm.engines.rescaling._between import expected_scores
from zeronorm.registry import register
from zeronorm.selection._kinds import parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector


@register(
    "jcfo",
    family="scaling",
    tasks=("binary",),
    reference="Krishnapuram, Hartemink, Carin & Figueiredo 2004; Lal et al. 2006, section 3.4",
    cost="n² p and n³ for each iteration",
    oracle="a likelihood that never decreases, and finite differences",
    avoid="more than a few hundred samples or a few thousand features; several classes",
    test_params=(
        {"max_iter": 8},
        {"kernel": "rbf", "max_iter": 8},
        {"gradient_steps": None, "max_iter": 8},
    ),
)
class JCFO(BaseSelector):
    r"""Select with a kernel classifier that is sparse in the samples and in the features.

    .. math:: P(y = 1 \mid x) = \Phi\Bigl(\sum_j \beta_j\,k(\sigma * x, \sigma * x_j) + b\Bigr)

    with Laplacian priors on the weights :math:`\beta` and on the scaling factors :math:`\sigma \ge 0`. The most
    probable values are found by expectation-maximisation: the expected scores

    .. math:: v_i = f(x_i) + y_i\,\frac{\varphi(f(x_i))}{\Phi(y_i f(x_i))},

    then :math:`\beta = S(I + S K^\top K S)^{-1} S K^\top v` with S diagonal,
    :math:`S_{jj}^2 = |\beta_j|/\gamma_1`, then some steps of constrained descent in :math:`\sigma`, whose prior acts as
    :math:`\tfrac12 \sum_k (\gamma_2/\sigma_k)\,\sigma_k^2`. The bias has a flat prior. The penalised likelihood never
    decreases; it has local maxima, and the iteration starts with all :math:`\sigma_k = p^{-1/2}`.

    Use it for small samples where a nonlinear rule of few features is expected and a probability is wanted. An
    iteration costs a few products of order n²p and one of order n³. A feature whose scaling factor has reached zero is
    removed for good. The kept features are ordered by their scaling factors, the removed ones by the iteration in which
    they were removed, the last first (those removed in the first one by their correlation with the classes).

    Parameters
    ----------
    n_features_to_select
        None: all features with a scaling factor above zero.
    gamma
        It is applied to the scaled features.
    sample_penalty
        In the formula γ₁.
    feature_penalty
        In the formula γ₂.
    gradient_steps
        None, for the linear kernel: no gradient descent. With :math:`s_k = \sigma_k^2` the expected problem is

        .. math:: \min_{s \ge 0}\ \tfrac12 \bigl\|v - b - \sum_k s_k\,x_k\,(x_k \cdot \beta)\bigr\|^2
            + \tfrac12 \sum_k \delta_k s_k,

        where :math:`x_k` is the column of feature k: a Lasso with factors that are not negative, which is solved.
    tol
        The iteration ends when the penalised log-likelihood rises by less than this, relative to its size. A
        quasi-Newton method then maximises it further, until a run adds less than a hundredth of this.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features_in_,)
        The scaling factors :math:`\sigma`.
    dual_coef_ : ndarray
        The coefficients :math:`\beta` of all training samples.
    intercept_ : float or ndarray
        The bias.
    objective_ : list of float
        The penalised log-likelihood after each iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import JCFO
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = JCFO(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        kernel: Literal["linear", "poly", "rbf"] = "linear",
        gamma: float | Literal["auto", "scale"] = 1.0,
        degree: int = 2,
        coef0: float = 1.0,
        sample_penalty: float = 0.1,
        feature_penalty: float = 1.0,
        gradient_steps: int | None = 5,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.sample_penalty = sample_penalty
        self.feature_penalty = feature_penalty
        self.gradient_steps = gradient_steps
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _check_parameters(self) -> None:
        if self.gradient_steps is None and self.kernel != "linear":
            raise parameter_error(
                self, "gradient_steps", f"an integer of at least 1 with kernel={self.kernel!r}"
            )

    def _select(self, problem: Problem) -> SelectionPath:
        p = problem.n_features
        model = SparseProbit(
            problem.design,
            problem.target.columns()[:, 0],
            chosen_kernel(self, problem.design),
            self._start(problem),
            (self.sample_penalty, self.feature_penalty),
            self.gradient_steps,
        )
        left_at, converged = self._iterate(model, problem)
        self.scale_ = np.zeros(p)
        self.scale_[model.features] = model.scale
        self.dual_coef_, self.intercept_ = model.beta, model.bias
        smallest = float(model.scale.min(initial=1.0))
        scores = np.where(self.scale_ > 0.0, self.scale_, 0.5 * smallest * left_at)
        return SelectionPath.from_scores(
            scores,
            selected_size=model.features.size,
            scale=self.scale_,
            n_iter=len(self.objective_) - 1,
            converged=converged,
            remedy="raise max_iter, or loosen tol.",
        )

    def _start(self, problem: Problem) -> FloatArray:
        """Equal scaling factors; of columns equal up to sign only the first has a factor above zero."""
        first = first_copies(problem.design, shifted=False) == np.arange(problem.n_features)
        return np.where(first, problem.n_features**-0.5, 0.0)

    def _iterate(self, model: SparseProbit, problem: Problem) -> tuple[FloatArray, bool]:
        """Iterate; returns a score in [0, 1] of how long each feature was kept, and whether the iteration converged."""
        self.objective_ = [model.objective]
        last_seen = np.zeros(problem.n_features)
        last_scale = np.zeros(problem.n_features)
        for iteration in range(1, self.max_iter + 1):
            last_seen[model.features] = iteration
            last_scale[model.features] = model.scale
            if iteration == 1:  # equal factors
                last_scale[model.features] *= 1.0 + explained_share(problem)[model.features]
            rise = model.step()
            pruned = model.prune()
            self.objective_.append(model.objective)
            if rise <= self.tol * (1.0 + abs(model.objective)) and not pruned:
                break
        else:
            return _order_of_leaving(last_seen, last_scale), False
        last_seen[model.features] = iteration + 1
        last_scale[model.features] = model.scale
        converged = model.climb(self.tol)
        self.objective_.append(model.objective)
        return _order_of_leaving(last_seen, last_scale), converged


def _order_of_leaving(last_seen: FloatArray, last_scale: FloatArray) -> FloatArray:
    """Scores between 0 and 1: features removed later score higher, of equal ones those with a larger last factor."""
    within = last_scale / (1.0 + last_scale)
    return np.asarray((last_seen + within) / (last_seen.max(initial=0.0) + 1.0))


# -- Expectation-maximisation for a probit kernel classifier that is sparse in samples and features --
#
# The penalised log-likelihood is
#
# .. math:: L(\beta, b, \sigma) = \sum_i \log \Phi\bigl(y_i f(x_i)\bigr) - \gamma_1 \sum_j |\beta_j|
#     - \gamma_2 \sum_k \sigma_k, \qquad f(x) = \sum_j \beta_j\,k(\sigma * x, \sigma * x_j) + b.
#
# One step takes the expected scores v, replaces both penalties by quadratic ones that touch them at the present
# point, with factors :math:`\omega_j = \gamma_1/|\beta_j|` and :math:`\delta_k = \gamma_2/\sigma_k`, and lowers
#
# .. math:: \tfrac12 \|v - f\|^2 + \tfrac12 \sum_j \omega_j \beta_j^2 + \tfrac12 \sum_k \delta_k \sigma_k^2
#
# first exactly in :math:`(\beta, b)`, then by some steps in :math:`\sigma \ge 0`. L never decreases.
# Since such steps are short, each is tried at a multiple of its length as well. For the same reason a small rise does
# not show that the maximum is near: when the rises are small, L itself is maximised by a quasi-Newton method in
# :math:`\beta^+, \beta^- \ge 0` (their difference is :math:`\beta`), b and :math:`\sigma \ge 0`.


_START_RIDGE = 1e-2  # relative to the trace of K'K per sample
_FARTHEST = 64.0  # largest multiple of one step that is tried
_CLIMB_LIMIT = 5000  # largest number of quasi-Newton steps
_CLIMB_SHARE = 1e-8  # relative to tol: rise of a quasi-Newton step at which a run ends
_CLIMB_RESTARTS = 50
_LASSO_TOL = 1e-10  # duality gap relative to the squared length of the expected scores
_REST = 1e-2  # relative to tol: rise of a run at which the maximisation ends
_NEGLIGIBLE = 1e-3  # relative to the largest scaling factor: the feature may be removed


class SparseProbit:
    """The state of the iteration on the features that still have a scaling factor."""

    def __init__(
        self,
        design: Design,
        signs: FloatArray,
        kernel: ScaledKernel,
        scale: FloatArray,
        penalties: tuple[float, float],
        gradient_steps: int | None,
    ) -> None:
        self.design = design
        self.signs = signs
        self.kernel = kernel
        self.sample_penalty, self.feature_penalty = penalties
        self.gradient_steps = gradient_steps
        self.features: IntArray = np.flatnonzero(scale)
        self._columns = design.take(self.features)
        self.scale = scale[self.features]
        self._last: tuple[FloatArray, FloatArray] | None = None
        self.reach = 1.0
        self.beta, self.bias = self._ridge_start()
        self.objective = self._objective(self.beta, self.bias, self.scale)

    @property
    def is_linear(self) -> bool:
        """Whether products with the kernel matrix need no n × n matrix."""
        return isinstance(self.kernel, LinearKernel)

    def matrix(self, scale: FloatArray) -> FloatArray:
        """The kernel matrix, kept until other factors are asked for."""
        if self._last is None or self._last[0] is not scale:
            self._last = scale, self.kernel.matrix(self._columns.gram(scale**2))
        return self._last[1]

    def _times(self, beta: FloatArray, scale: FloatArray) -> FloatArray:
        """The kernel matrix times a vector."""
        if self.is_linear:
            return self._columns.dot(scale**2 * self._columns.transpose_dot(beta))
        return np.asarray(self.matrix(scale) @ beta)

    def _ridge_start(self) -> tuple[FloatArray, float]:
        K = self.matrix(self.scale)
        centred = K - K.mean(axis=0)
        ridge = _START_RIDGE * max(float(np.sum(centred**2)) / len(centred), 1e-300)
        system = centred.T @ centred
        system.flat[:: len(system) + 1] += ridge
        beta = cho_solve(cho_factor(system), centred.T @ self.signs)
        return beta, float(np.mean(self.signs - K @ beta))

    def _objective(self, beta: FloatArray, bias: float, scale: FloatArray) -> float:
        likelihood = log_ndtr(self.signs * (self._times(beta, scale) + bias)).sum()
        return float(
            likelihood - self.sample_penalty * np.abs(beta).sum() - self.feature_penalty * scale.sum()
        )

    def step(self) -> float:
        """One iteration; returns the rise of the penalised log-likelihood."""
        start, before = self.objective, (self.beta, self.bias, self.scale)
        expected = expected_scores(self._times(self.beta, self.scale) + self.bias, self.signs)
        self.beta, self.bias = self._solve_samples(expected)
        if self.scale.size:
            self._move_scale(expected)
        self.objective = self._objective(self.beta, self.bias, self.scale)
        if self.scale.size == before[2].size:
            self._reach_further(*before)
        return self.objective - start

    def _reach_further(self, beta: FloatArray, bias: float, scale: FloatArray) -> None:
        """Repeat the last change ``reach`` times, in logarithms of absolute values, if that raises L."""
        trial_beta = self.beta * _ratio(self.beta, beta) ** self.reach
        trial_bias = self.bias + self.reach * (self.bias - bias)
        trial_scale = self.scale * _ratio(self.scale, scale) ** self.reach
        objective = self._objective(trial_beta, trial_bias, trial_scale)
        if objective > self.objective:
            self.beta, self.bias, self.scale = trial_beta, trial_bias, trial_scale
            self.objective = objective
            self.reach = min(2.0 * self.reach, _FARTHEST)
        else:
            self.reach = max(0.25 * self.reach, 1.0)

    def _solve_samples(self, expected: FloatArray) -> tuple[FloatArray, float]:
        r""":math:`\beta = S (I + S K^\top K S)^{-1} S K^\top v`, :math:`S = \omega^{-1/2}`, with the bias left free.

        The formula uses S and not its inverse, so that zeros stay zeros.
        """
        root = np.sqrt(np.abs(self.beta) / self.sample_penalty)
        used = np.flatnonzero(root)
        if used.size == 0:  # SciPy before 1.14 cannot factor an empty matrix
            return np.zeros_like(self.beta), float(np.mean(expected))
        beta = np.zeros_like(self.beta)
        if self.is_linear and self.scale.size < used.size:
            beta[used] = self._solve_features(expected, used, root[used])
        else:
            K = self.matrix(self.scale)[:, used]
            scaled = (K - K.mean(axis=0)) * root[used]
            system = scaled.T @ scaled
            system.flat[:: used.size + 1] += 1.0
            beta[used] = root[used] * cho_solve(cho_factor(system), scaled.T @ expected)
        return beta, float(np.mean(expected - self._times(beta, self.scale)))

    def _solve_features(self, expected: FloatArray, used: IntArray, root: FloatArray) -> FloatArray:
        r"""The same weights by a system of the features: for a linear kernel :math:`H S = X_c B`, and

        .. math:: (I + B^\top X_c^\top X_c B)^{-1} B^\top X_c^\top v
            = B^\top (I + X_c^\top X_c\,B B^\top)^{-1} X_c^\top v, \qquad B = \mathrm{diag}(\sigma^2) X^\top S .
        """
        X = self._columns.block(np.arange(self.scale.size))
        B = (self.scale**2)[:, None] * (X[used] * root[:, None]).T
        X = X - X.mean(axis=0)
        system = np.eye(self.scale.size) + (X.T @ X) @ (B @ B.T)
        return np.asarray(root * (B.T @ np.linalg.solve(system, X.T @ expected)))

    # -- all parameters at once --------------------------------------------------------------------

    def climb(self, tol: float) -> bool:
        """Maximise L from the current point, also without negligible features; returns whether that converged."""
        n = self.beta.size
        for _ in range(_CLIMB_RESTARTS):
            if self.scale.size == 0:
                return True
            before = self.objective
            found = minimize(
                self.loss,
                np.concatenate(
                    [np.maximum(self.beta, 0.0), np.maximum(-self.beta, 0.0), [self.bias], self.scale]
                ),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * (2 * n) + [(None, None)] + [(0.0, None)] * self.scale.size,
                options={
                    "maxiter": _CLIMB_LIMIT,
                    "maxfun": 2 * _CLIMB_LIMIT,
                    "maxcor": 30,
                    "ftol": _CLIMB_SHARE * tol,
                    "gtol": 1e-2 * tol,
                },
            )
            if -found.fun > self.objective:
                self.beta, self.bias = found.x[:n] - found.x[n : 2 * n], float(found.x[2 * n])
                self._set_scale(found.x[2 * n + 1 :])
                self.objective = self._objective(self.beta, self.bias, self.scale)
            # A run may end early with a poor estimate of the curvature: repeat until a run adds almost nothing.
            rests = found.success and self.objective - before <= _REST * tol * (1.0 + abs(self.objective))
            if not self.prune() and rests:
                return True
        return False

    def loss(self, unknowns: FloatArray) -> tuple[float, FloatArray]:
        """-L and its gradient in the positive and negative parts of the weights, the bias and the scaling factors."""
        n = self.signs.size
        positive, negative, scale = unknowns[:n], unknowns[n : 2 * n], unknowns[2 * n + 1 :]
        beta, bias = positive - negative, unknowns[2 * n]
        decision = self._times(beta, scale) + bias
        value = self.sample_penalty * (positive + negative).sum() + self.feature_penalty * scale.sum()
        value -= log_ndtr(self.signs * decision).sum()
        slope = expected_scores(decision, self.signs) - decision
        on_scale = self.feature_penalty - 2.0 * scale * self._slope_in_squares(slope, beta, scale)
        on_beta = self._times(slope, scale)
        parts = [
            self.sample_penalty - on_beta,
            self.sample_penalty + on_beta,
            np.array([-slope.sum()]),
            on_scale,
        ]
        return float(value), np.concatenate(parts)

    def _slope_in_squares(self, left: FloatArray, beta: FloatArray, scale: FloatArray) -> FloatArray:
        """Derivatives of left'Kβ in the squared factors."""
        if self.is_linear:
            return self._columns.transpose_dot(left) * self._columns.transpose_dot(beta)
        outer = np.outer(left, beta)
        gram = self._columns.gram(scale**2)
        on_gram = self.kernel.pullback(gram, self.matrix(scale), 0.5 * (outer + outer.T))
        return self._columns.gram_adjoint(on_gram)

    # -- scaling factors --------------------------------------------------------------------------

    def scale_loss(
        self, scale: FloatArray, expected: FloatArray, resistance: FloatArray
    ) -> tuple[float, FloatArray]:
        """Half the squared distance to the expected scores plus the quadratic penalty, and its gradient."""
        error = self._times(self.beta, scale) + self.bias - expected
        value = 0.5 * float(error @ error + resistance @ scale**2)
        gradient = 2.0 * scale * self._slope_in_squares(error, self.beta, scale) + resistance * scale
        return value, gradient

    def _move_scale(self, expected: FloatArray) -> None:
        resistance = self.feature_penalty / self.scale
        if self.gradient_steps is None:
            moved = self._best_scale(expected, resistance)
        else:
            moved = minimize(
                self.scale_loss,
                self.scale,
                args=(expected, resistance),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * self.scale.size,
                options={"maxiter": self.gradient_steps},
            ).x
        after, before = (self.scale_loss(s, expected, resistance)[0] for s in (moved, self.scale))
        if after < before:
            self._set_scale(moved)

    def _best_scale(self, expected: FloatArray, resistance: FloatArray) -> FloatArray:
        r"""The minimum of :meth:`scale_loss` for a linear kernel, a Lasso in :math:`\delta_k \sigma_k^2 \ge 0`."""
        columns = self._columns.block(np.arange(self.scale.size))
        effects = columns * (self._columns.transpose_dot(self.beta) / resistance)
        lasso = Lasso(
            alpha=0.5 / len(effects), positive=True, fit_intercept=False, warm_start=True, tol=_LASSO_TOL
        )
        lasso.coef_ = resistance * self.scale**2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a step that does not raise L is not taken
            lasso.fit(effects, expected - self.bias)
        rescaled = np.array(lasso.coef_)
        positive = np.flatnonzero(rescaled)
        kept = effects[:, positive]
        exact = np.linalg.lstsq(kept.T @ kept, kept.T @ (expected - self.bias) - 0.5)[0]
        if np.all(exact > 0.0):
            rescaled[positive] = exact
        return np.sqrt(rescaled / resistance)

    def _set_scale(self, scale: FloatArray) -> None:
        kept = scale > 0.0
        if not kept.all():
            self.features = self.features[kept]
            self._columns = self.design.take(self.features)
        self.scale = scale[kept]

    def prune(self) -> bool:
        """Remove features with negligible scaling factors, unless L would decrease."""
        if self.scale.size == 0 or not np.any(self.scale < _NEGLIGIBLE * self.scale.max()):
            return False
        kept = np.where(self.scale < _NEGLIGIBLE * self.scale.max(), 0.0, self.scale)
        objective = self._objective(self.beta, self.bias, kept)
        if objective < self.objective:
            return False
        self._set_scale(kept)
        self.objective = objective
        return True


def _ratio(new: FloatArray, old: FloatArray) -> FloatArray:
    """Ratio of new to old values, at most 1.1; it is 1 where the sign changed or one of the values is zero."""
    ratio = np.divide(new, old, out=np.ones_like(new), where=(old != 0.0) & (new * old > 0.0))
    return np.minimum(ratio, 1.1)
