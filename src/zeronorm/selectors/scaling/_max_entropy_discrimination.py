"""Maximum entropy discrimination with a switch for each feature."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from zeronorm._types import FloatArray
from zeronorm.registry import register
from zeronorm.selection._kinds import POSITIVE, exceptions, parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, warn_of_empty_selection
from zeronorm.selectors._base import WeightedSelector
from zeronorm.solvers._max_entropy import MarginTerms, inclusion_probability, solve_max_entropy
from zeronorm.solvers._status import Status


@register(
    "max-entropy-discrimination",
    family="scaling",
    tasks=("binary", "regression"),
    reference="Jebara & Jaakkola 2000; Lal et al. 2006, section 3.3",
    cost="n² p and n³ in each of about 50 Newton steps",
    oracle="generic concave solvers, and numerical integration",
    avoid="more than a few thousand samples; several classes",
    misprints="The chapter prints exp(−w²) in the expected weight; it is exp(−W²/2).",
    test_params=({}, {"task": "regression"}),
)
class MaxEntropyDiscrimination(WeightedSelector):
    r"""Select by the posterior probability that a feature is switched on.

    The discriminant is :math:`\sum_k s_k\theta_k x_k + b`, where the switch :math:`s_k` is on with prior probability
    :math:`p_0` and :math:`\theta_k` is normal with standard deviation one. The posterior is the distribution nearest to
    the prior that separates the samples by the expected margin. The dual problem is concave; for classification it is

    .. math:: \max_\lambda\ \sum_t \Bigl[\lambda_t + \log\Bigl(1 - \frac{\lambda_t}{C}\Bigr)\Bigr]
        - \sum_k \log\bigl(1 - p_0 + p_0 e^{W_k^2/2}\bigr), \qquad
        W_k = \sum_t \lambda_t y_t x_{tk}, \quad \sum_t \lambda_t y_t = 0.

    The expected weight of a feature is

    .. math:: E[s_k\theta_k] = \frac{W_k}{1 + \frac{1-p_0}{p_0} e^{-W_k^2/2}}:

    features with :math:`W_k^2` well below :math:`2 \log\frac{1-p_0}{p_0}` are off. (The chapter prints
    :math:`e^{-w^2}` without the ½.) For regression there are two multipliers for each sample, one for errors
    above ``epsilon`` and one for errors below -``epsilon``; the derivation is in ``zeronorm.solvers._max_entropy``.

    The papers' standard deviation of one is for features in which a weight of one is small. In standardised features
    classes that are far apart need small weights, a switch that is hardly on suffices for them, and no probability
    exceeds one half. ``weight_scale`` is therefore the standard deviation of :math:`\theta_k`, which is the same as
    features multiplied by it.

    Use it to estimate how probable it is that each feature is relevant, given how many you expect. On very wide data
    many features share the probability: lower the prior until few are on. Each of about 50 Newton steps needs an n×n
    matrix of the samples.

    Parameters
    ----------
    n_features_to_select
        None: the features with a probability above one half (at least one).
    inclusion_prior
        Near 1 all features are on, and the method is a plain support vector machine.
    weight_scale
        1 is the prior of the papers. The default was chosen on simulated tables: with 1 nothing is selected on 15 of
        20 of them, with 0.1 on one (20 samples of 2000 features). The lower, the more features are on.
    C
        Upper limit of the multipliers; it must be greater than 1 in classification.
    epsilon
        It must be positive. Its unit is the standard deviation of the target if ``standardize`` is true.
    standardize
        In regression the target is standardised as well.
    tol
        Duality gap to be reached, relative to the objective.
    max_iter
        One iteration is one Newton step.

    Attributes
    ----------
    inclusion_probability_ : ndarray of shape (n_features_in_,)
        Posterior probability of each feature.
    coef_ : ndarray
        Expected weights of the standardised features.
    intercept_ : float or ndarray
        Bias.
    objective_ : float or ndarray
        The maximum of the dual.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import MaxEntropyDiscrimination
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = MaxEntropyDiscrimination(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _parameter_exceptions = exceptions(C=(POSITIVE, "the dual needs finite multipliers"))

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        task: Literal["classification", "regression"] = "classification",
        inclusion_prior: float = 0.01,
        weight_scale: float = 0.1,
        C: float = 10.0,
        epsilon: float = 0.1,
        standardize: bool = True,
        tol: float = 1e-6,
        max_iter: int = 500,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.task = task
        self.inclusion_prior = inclusion_prior
        self.weight_scale = weight_scale
        self.C = C
        self.epsilon = epsilon
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem: Problem) -> SelectionPath:
        weight = np.ones(problem.n_samples) if problem.sample_weight is None else problem.sample_weight
        terms, centre, unit = self._terms(problem, weight)
        solution = solve_max_entropy(
            problem.design,
            terms,
            self.inclusion_prior,
            weight_scale=self.weight_scale,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        probability = inclusion_probability(solution.field, self.inclusion_prior)
        self.inclusion_probability_ = probability
        self.coef_ = unit * self.weight_scale * probability * solution.field
        self.intercept_ = centre + unit * solution.bias
        self.objective_ = solution.objective
        selected_size = int(np.count_nonzero(probability > 0.5))
        if selected_size == 0:
            warn_of_empty_selection(self, problem, "raise inclusion_prior or C, or lower weight_scale")
        # Several probabilities may round to one, so the features are ordered by the fields.
        return SelectionPath.from_scores(
            np.abs(solution.field),
            selected_size=selected_size,
            scale=probability,
            n_iter=solution.n_iter,
            converged=solution.status.converged,
            remedy=(
                "rounding hides the optimum for a C this large; use a smaller C."
                if solution.status is Status.STALLED
                else "raise max_iter, loosen tol, or standardize the features."
            ),
        )

    def _check_parameters(self) -> None:
        if not self._target_type().has_classes:
            if self.epsilon == 0:
                raise parameter_error(self, "epsilon", "greater than 0")
        elif self.C <= 1.0:
            # Smaller values leave every multiplier at zero.
            raise parameter_error(self, "C", "greater than 1 for task='classification'")

    def _terms(self, problem: Problem, weight: FloatArray) -> tuple[MarginTerms, float, float]:
        """Terms of the dual for all multipliers, with the centre and the unit of the target."""
        if problem.target.has_classes:
            return MarginTerms.labels(problem.target.columns()[:, 0], weight, self.C), 0.0, 1.0
        y = problem.target.columns()[:, 0]
        centre = float(np.average(y, weights=weight))
        unit = 1.0
        if self.standardize:
            deviation = float(np.sqrt(np.average((y - centre) ** 2, weights=weight)))
            unit = deviation if deviation > 1e-12 * abs(centre) else 1.0
        return MarginTerms.targets((y - centre) / unit, weight, self.C, self.epsilon), centre, unit
