"""The vocabulary: name, meaning and accepted values of every constructor parameter.

Every registered class takes its parameters from here. The checks in ``fit``, the errors, the sections
"Parameters" of the docstrings and the page of parameters in the docs come from ``VOCABULARY``. The annotation of a
constructor adds what is specific to the class: whether None is allowed, and the strings to choose from
(``Literal``). A class that accepts fewer or more values states this, with the reason, in
``_parameter_exceptions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zeronorm.selection._kinds import (
    BOOLEAN,
    COLUMNS,
    ESTIMATOR,
    GROUPS,
    INFINITE,
    NOT_NEGATIVE,
    OPEN_FRACTION,
    PATH,
    POSITIVE,
    SCORER,
    SEED,
    SIZE,
    SPLITTER,
    STEP,
    VERBOSITY,
    WORKERS,
    Kind,
    choice,
    count,
    is_list,
    list_of,
    number,
)


@dataclass(frozen=True)
class Parameter:
    """Meaning and accepted values of one parameter.

    Attributes
    ----------
    kind : values that are accepted besides None and the strings of the annotation; None if there are no others.
    meaning : first sentence of the description in every class that has the parameter.
    renamed : the present name of each value that had another one; the error for the former name states it.
    """

    kind: Kind | None
    meaning: str
    renamed: Mapping[str, str] = field(default_factory=dict)


ANY_LIST_OR_ARRAY = Kind("array", "an array of numbers", "array", lambda value: hasattr(value, "__len__"))
CLASS_WEIGHT = Kind(
    "class weight", "a mapping from class to weight", "dict", lambda value: hasattr(value, "items")
)
CALLABLE = Kind("callable", "a function", "callable", callable)
LEARNER = Kind(
    "learner",
    "an object with a fit method",
    "estimator",
    lambda value: ESTIMATOR.accepts(value) or hasattr(value, "as_estimator"),
)
SELECTORS = Kind(
    "selectors",
    ("a list of selectors or names of methods", "a list of (name, selector)"),
    "list",
    lambda value: is_list(value) and len(value) > 0 and all(_is_selector(entry) for entry in value),
)
SHARE = number(above=0, most=1)
IMPORTANCES = Kind(
    "importances",
    ("the path of an attribute", "a function of the fitted estimator"),
    "str or callable",
    lambda value: isinstance(value, str) or callable(value),
)

# What selectors have in common.
_COMMON = {
    "n_features_to_select": Parameter(
        SIZE, "How many features to select: a count, or a fraction of the features of X."
    ),
    "estimator": Parameter(
        ESTIMATOR,
        "Predictor that is trained on the selected features and used by ``predict`` and ``score``. "
        "None: select only.",
    ),
    "selector": Parameter(ESTIMATOR, "The wrapped selector. It is cloned before it is fitted."),
    "selectors": Parameter(
        SELECTORS,
        "The selectors to choose from or to combine: selectors, names of methods, or pairs (name, selector). "
        "None: several methods of different kinds that suit the task.",
    ),
    "learner": Parameter(
        LEARNER,
        "Model that is trained during the selection to score features; it is not used by ``predict``.",
    ),
    "feature_groups": Parameter(
        GROUPS,
        "Features that are selected together or not at all: one label per column, or lists of columns. "
        "None: each feature is selected separately.",
    ),
    "always_keep": Parameter(COLUMNS, "Columns (positions or names) that are always selected."),
    "adjust": Parameter(
        COLUMNS,
        "Covariates: columns (positions or names) that are in every model without penalty, such as age or a batch. "
        "They are not selected and not counted; features are selected for what they add to them.",
    ),
    "task": Parameter(
        None, "Whether y holds classes, real numbers, or times and events. It is never inferred from y."
    ),
    "standardize": Parameter(BOOLEAN, "Whether to scale every column to mean 0 and variance 1 first."),
    "units": Parameter(None, "Transformation and scale of the values in which samples are compared."),
    "n_jobs": Parameter(
        WORKERS, "Number of parallel workers; None means 1, -1 all cores. The result does not depend on it."
    ),
    "random_state": Parameter(
        SEED,
        "Seed of all random numbers. An integer makes the result reproducible. None: a new seed in every fit.",
    ),
    "verbose": Parameter(VERBOSITY, "Whether to show progress."),
    "tol": Parameter(
        POSITIVE, "Tolerance of the stopping criterion: a smaller value is more exact and slower."
    ),
    "zero_tol": Parameter(
        number(least=0, below=1), "Weights up to this fraction of the largest weight count as zero."
    ),
    "max_iter": Parameter(count(), "Largest number of iterations; a warning is issued when it is reached."),
}

# Losses, kernels and penalties.
_MODELS = {
    "ccp_alpha": Parameter(
        NOT_NEGATIVE, "Cost of a leaf in cost-complexity pruning, as in scikit-learn's trees."
    ),
    "C": Parameter(
        POSITIVE | INFINITE, "Cost of training errors: larger values fit the training data more closely."
    ),
    "loss": Parameter(None, "Loss function that measures the training errors."),
    "epsilon": Parameter(
        NOT_NEGATIVE,
        "Regression: errors up to this size cost nothing, or their square with a Huber loss; larger ones "
        "count linearly.",
    ),
    "quantile": Parameter(OPEN_FRACTION, "Quantile of the target that the quantile loss estimates."),
    "kernel": Parameter(CALLABLE, "Kernel function of the model."),
    "gamma": Parameter(
        POSITIVE,
        "Kernel coefficient: factor of the squared distance in 'rbf' and of the inner product in 'poly'. "
        "'auto' is 1 / n_features, 'scale' is 1 / (n_features * variance of X).",
    ),
    "degree": Parameter(count(), "Degree of the polynomial."),
    "coef0": Parameter(NOT_NEGATIVE, "Constant term of the polynomial kernel."),
    "norm": Parameter(None, "Norm by which sizes are measured: l1 sums absolute values, l2 sums squares."),
    "q": Parameter(
        number(least=0, most=2),
        "Exponent of the norm of the weights: 2 sums squares, 1 absolute values, 0 counts nonzero weights.",
    ),
    "penalty": Parameter(None, "Penalty on the weights that makes most of them zero."),
    "penalty_l0": Parameter(NOT_NEGATIVE, "Weight λ₀ of the penalty on the number of features."),
    "penalty_l1": Parameter(NOT_NEGATIVE, "Weight λ₁ of the penalty on the sum of absolute weights."),
    "penalty_l2": Parameter(NOT_NEGATIVE, "Weight λ₂ of the penalty on the sum of squared weights."),
    "weight_decay": Parameter(POSITIVE, "Weight λ of the penalty on the squared weights of a network."),
    "sample_penalty": Parameter(
        POSITIVE, "Rate of the prior on the coefficients of the samples: a larger value leaves fewer samples."
    ),
    "feature_penalty": Parameter(
        POSITIVE, "Rate of the prior on the scaling factors: a larger value leaves fewer features."
    ),
    "ridge": Parameter(POSITIVE, "Weight of a small ridge penalty that keeps the weights finite."),
    "two_norm": Parameter(
        NOT_NEGATIVE, "Weight of the squared norm that an ordinary support vector machine minimises."
    ),
    "slack_norm": Parameter(None, "How training errors (slacks) are counted in the objective."),
    "multi_class": Parameter(
        None,
        "How more than two classes are handled: by several models of two classes each, or by a joint one.",
    ),
    "n_hidden": Parameter(count(), "Number of hidden units of the network."),
    "class_weight": Parameter(CLASS_WEIGHT, "Cost of an error by class; None: all errors cost the same."),
    "kernel_pieces": Parameter(ANY_LIST_OR_ARRAY, "One kernel matrix per feature."),
    "combine": Parameter(
        None, "Whether the kernel matrices of the features are added or multiplied entry by entry."
    ),
    "noise_variance": Parameter(POSITIVE, "Noise variance of a regression target; None: estimated."),
    "prior_rate": Parameter(NOT_NEGATIVE, "Rate of the Gamma prior of the precisions."),
    "prior_shape": Parameter(NOT_NEGATIVE, "Shape of the Gamma prior of the precisions."),
    "min_noise": Parameter(
        POSITIVE,
        "Smallest noise variance that can be estimated, as a fraction of the variance of the target.",
    ),
    "space": Parameter(None, "Whether the monomials are computed as columns or only through a kernel."),
}

# How features are scored, searched for and counted.
_SEARCH = {
    "step": Parameter(
        STEP, "How many features (or groups) change per round: a count, or a fraction of the remaining ones."
    ),
    "importance_getter": Parameter(
        IMPORTANCES,
        "How importances are read from the fitted estimator: the path of an attribute, such as "
        "'named_steps.svc.coef_', or a function of the estimator. 'auto' takes ``coef_`` or ``feature_importances_``.",
    ),
    "min_features_to_select": Parameter(count(), "Smallest number of features that is tried."),
    "rule": Parameter(
        None,
        "Rule that decides which features, or how many, are kept.",
        renamed={"one_se": "fewest", "best": "all"},
    ),
    "method": Parameter(None, "Algorithm that computes the solution."),
    "criterion": Parameter(None, "Impurity that a split reduces, as in scikit-learn's trees."),
    "contrast": Parameter(
        None, "How the mean distances to other classes and to the same class are compared."
    ),
    "gain": Parameter(
        None, "How much better the fit becomes with a feature; the feature with the largest gain is added."
    ),
    "sensitivity_of": Parameter(None, "Function whose sensitivity to a feature is measured."),
    "bound": Parameter(None, "Bound or estimate of an error that the method uses."),
    "sign": Parameter(None, "Whether features are ranked by the signed or the absolute derivative."),
    "order": Parameter(None, "Order of the derivative; 0 measures the change when the feature is removed."),
    "search": Parameter(None, "Whether features are removed one by one, added, or both."),
    "difference_step": Parameter(
        POSITIVE, "Step size of numerical derivatives, in standard deviations of the feature."
    ),
    "variant": Parameter(None, "Which formula of the score is used."),
    "utility": Parameter(
        None, "Function that turns the margin of a sample into a score; the sum over samples is maximised."
    ),
    "slope": Parameter(POSITIVE, "Slope of the sigmoid utility."),
    "metric": Parameter(None, "Distance between samples, which determines the nearest neighbours."),
    "column_scaling": Parameter(None, "How the columns are scaled before distances are taken."),
    "scaling": Parameter(None, "Whether the scaling factors are normalised in every iteration."),
    "start": Parameter(None, "Initial scaling factors of the iteration."),
    "n_neighbors": Parameter(count(), "Number of nearest neighbours."),
    "discrete_features": Parameter(
        COLUMNS, "Columns that hold categories: a mask, or a list of positions or names."
    ),
    "min_separation": Parameter(
        count(), "Smallest distance between two selected positions of ordered features, such as spectra."
    ),
    "bins": Parameter(count(2, 2**15 - 1), "How columns are discretised."),
    "threshold": Parameter(NOT_NEGATIVE, "Value that the score of a selected feature must exceed."),
    "n_parts": Parameter(count(2), "Number of parts into which an interval is divided."),
    "n_trees": Parameter(count(), "Number of trees: 1 grows one tree, more grow a random forest."),
    "max_depth": Parameter(count(), "Largest depth of a tree; None: no limit."),
    "confidence": Parameter(
        OPEN_FRACTION,
        "Probability at which a branch of a tree is not worse than a leaf: smaller prunes more.",
    ),
    "min_samples_leaf": Parameter(
        STEP, "Smallest number of samples in a leaf, or their fraction of all samples."
    ),
    "accuracy": Parameter(
        OPEN_FRACTION, "Fraction by which the margin may fall short of the largest possible one."
    ),
    "power": Parameter(number(least=2, most=100), "Exponent p of the norm of the samples."),
    "stop": Parameter(None, "Stopping rule of the search."),
    "correction": Parameter(None, "Correction for choosing the best of many columns (multiple testing)."),
    "ties": Parameter(None, "How Cox's partial likelihood treats events at the same time."),
    "n_steps": Parameter(count(), "Number of values of the regularisation parameter on the path."),
    "n_alphas": Parameter(count(), "Number of values of the penalty on the path."),
    "norm_bound": Parameter(
        POSITIVE, "Largest norm of the weights, on standardised columns. None: the whole path."
    ),
    "warm_start": Parameter(BOOLEAN, "Whether to continue the searches of the last fit on the same data."),
    "max_weight": Parameter(POSITIVE, "Largest absolute weight of a feature, on standardised columns."),
    "max_features": Parameter(count(), "Largest number of features in the subsets that are tried."),
    "gap_tol": Parameter(
        number(least=0, below=1), "Relative gap between objective and lower bound at which the search ends."
    ),
    "time_limit": Parameter(
        POSITIVE, "Seconds after which the search ends with the best subset and bound so far."
    ),
    "max_nodes": Parameter(
        count(), "Largest number of nodes of branch and bound; a warning is issued when it is reached."
    ),
    "max_reweightings": Parameter(
        count(), "Largest number of reweighted problems that are solved for one value of the penalty."
    ),
    "alpha": Parameter(
        POSITIVE, "Steepness of the exponential that approximates the number of nonzero weights."
    ),
    "growth": Parameter(
        number(least=1), "Factor by which ``alpha`` grows during the iteration; 1 keeps it constant."
    ),
    "sparsity": Parameter(
        OPEN_FRACTION, "Weight λ of the number of features; the errors have the weight 1 - λ."
    ),
    "n_candidates": Parameter(
        count(), "Number of training rows, drawn at random, that may become support vectors."
    ),
    "sigma_norm": Parameter(POSITIVE, "Value at which the norm of the scaling factors is held."),
    "constraint": Parameter(None, "Constraint on the scaling factors."),
    "discard": Parameter(None, "How the features to be discarded are chosen."),
    "steepness": Parameter(
        POSITIVE, "Steepness of the sigmoid that makes the number of validation errors differentiable."
    ),
    "stop_at": Parameter(count(), "Smallest number of features: iterates with fewer are not used."),
    "gradient_steps": Parameter(
        count(), "Gradient steps on the scaling factors in each iteration of expectation-maximisation."
    ),
    "weight_scale": Parameter(
        POSITIVE, "Prior standard deviation of the weight of a feature that is relevant."
    ),
    "inclusion_prior": Parameter(OPEN_FRACTION, "Prior probability that a feature is relevant."),
}

# Resampling and control of false selections.
_RESAMPLING = {
    "cv": Parameter(
        SPLITTER, "How the samples are split: a number of folds, a splitter, or a list of splits."
    ),
    "validation_fraction": Parameter(
        OPEN_FRACTION,
        "Share of the samples that are kept out of the training, to end it before their error rises (early stopping).",
    ),
    "scoring": Parameter(SCORER, "Scorer, as in scikit-learn; greater is better."),
    "sizes": Parameter(list_of(count()), "Numbers of features to try."),
    "level": Parameter(
        OPEN_FRACTION, "Error rate that is accepted, such as a false discovery rate or a significance level."
    ),
    "knockoffs": Parameter(None, "Type of knockoffs, which determines what is assumed about X."),
    "construction": Parameter(None, "Method that computes how far each knockoff is from its original."),
    "correlation": Parameter(ANY_LIST_OR_ARRAY, "Known correlation matrix of the features; None: estimated."),
    "offset": Parameter(
        None,
        "Number added to the estimated count of false discoveries: 1 guarantees the level, 0 selects more.",
    ),
    "n_draws": Parameter(count(), "Number of independent draws of knockoffs."),
    "probes": Parameter(None, "How the random columns (probes) are generated."),
    "control": Parameter(None, "Error rate that is kept below ``level``."),
    "path": Parameter(None, "How the next column is chosen on a forward path."),
    "neighbors": Parameter(None, "What is done about kept features with strongly correlated neighbours."),
    "n_experiments": Parameter(count(2), "Number of random experiments, each with dummies of its own."),
    "most_dummies": Parameter(
        count(), "Largest number of dummies (columns of noise), as a multiple of the number of features."
    ),
    "n_factors": Parameter(
        count(0), "Number of common factors (principal components) that are removed from X and y first."
    ),
    "n_probes": Parameter(count(), "Number of random columns (probes)."),
    "n_repeats": Parameter(count(), "Number of independent draws of probes."),
    "false_selections": Parameter(POSITIVE, "Expected number of false selections that is accepted."),
    "subset_size": Parameter(count(), "Number of features in a subset."),
    "refine": Parameter(count(0), "Number of best features that are ranked again jointly."),
    "n_subsamples": Parameter(count(2), "Number of subsamples, each half of the samples."),
    "sampling": Parameter(None, "How the halves of the samples are drawn."),
    "aggregation": Parameter(None, "How the ranks from several selectors are combined into one ranking."),
    "weights": Parameter(list_of(NOT_NEGATIVE), "Weight of each selector in the combined ranking."),
    "n_permutations": Parameter(count(0), "Number of permuted targets."),
    "assumption": Parameter(None, "Assumption behind the bound on false selections."),
}

# Optimal feature weighting.
_WEIGHTING = {
    "n_estimators": Parameter(count(), "Number of classifiers that vote."),
    "bootstrap_size": Parameter(count(2), "Number of samples in a bootstrap sample."),
    "step_size": Parameter(POSITIVE, "Step size at the start."),
    "step_offset": Parameter(
        POSITIVE,
        "Offset in the denominator of the step size: with a larger one the steps shrink more slowly.",
    ),
    "noise": Parameter(
        number(least=0, most=0.1),
        "Standard deviation of the diffusion at the start, in units of the uniform weight.",
    ),
    "batch_size": Parameter(count(), "Number of subsets per step."),
    "window": Parameter(count(2), "Convergence is checked against the state 1/window of the steps earlier."),
    "stopping": Parameter(None, "Rule that ends the run."),
    "cost": Parameter(None, "Error that is minimised."),
    "fisher_threshold": Parameter(
        NOT_NEGATIVE, "Features with a smaller Fisher score are removed before the search."
    ),
    "n_evaluations": Parameter(count(), "Number of bootstrap pairs per subset in the exact method."),
    "checkpoint": Parameter(
        PATH, "File in which the state of the run is saved, so that a fit can be resumed."
    ),
    "checkpoint_every": Parameter(count(), "Number of steps between two saved states."),
}

# Transformers.
_TRANSFORMERS = {
    "image_shape": Parameter(list_of(count(), 2), "Rows and columns of an image."),
    "orientations": Parameter(
        list_of(choice("vertical", "horizontal", "falling", "rising")),
        "Orientations of the edges to look for.",
    ),
    "blurs": Parameter(
        list_of(count(0)), "Tolerances of the position of an edge, in pixels; each gives one set of features."
    ),
    "signed": Parameter(
        BOOLEAN, "Whether edges from dark to light and from light to dark are separate features."
    ),
    "min_contrast": Parameter(NOT_NEGATIVE, "Smallest contrast of an edge."),
    "min_frequency": Parameter(
        number(least=0, most=1), "Edges found in a smaller fraction of the training images are left out."
    ),
    "crop": Parameter(list_of(count(0), 2), "Range of positions (first, last + 1) to keep, counted from 0."),
    "final_crop": Parameter(
        list_of(count(0), 2), "Range of positions to keep at the end, within the first range."
    ),
    "baseline_window": Parameter(
        count(odd=True),
        "Width of the window in which the baseline is estimated. None: no baseline is subtracted.",
    ),
    "baseline_fraction": Parameter(
        SHARE, "Fraction of the lowest values in the window whose median is the baseline."
    ),
    "smoothing_window": Parameter(count(odd=True), "Width of the smoothing window. None: no smoothing."),
    "smoothing_width": Parameter(POSITIVE, "Decay length of the smoothing weights, in positions."),
    "top_fraction": Parameter(
        SHARE,
        "Each spectrum is divided by the median of this fraction of its highest values. None: no division.",
    ),
    "square_root": Parameter(
        BOOLEAN, "Whether to take the square root, which makes the variance of counts about equal."
    ),
    "negative": Parameter(
        None, "Whether values below zero are set to zero or raise an error before the square root."
    ),
}

VOCABULARY: dict[str, Parameter] = {
    **_COMMON,
    **_MODELS,
    **_SEARCH,
    **_RESAMPLING,
    **_WEIGHTING,
    **_TRANSFORMERS,
}

# Fitted attributes of every selector.
ATTRIBUTES: dict[str, tuple[str, str]] = {
    "support_": ("ndarray of shape (n_features_in_,), dtype bool", "Mask of the selected features."),
    "ranking_": (
        "ndarray of shape (n_features_in_,), dtype int",
        "Rank of each feature: 1 for selected features, then 2, 3, … in the order of the path.",
    ),
    "scores_": ("ndarray of shape (n_features_in_,)", "Score of each feature; larger is better."),
    "path_": (
        "SelectionPath",
        "The subsets of all sizes: ``path_.support(k)`` returns k features without a new fit.",
    ),
    "n_features_": ("int", "Number of selected features."),
    "n_features_in_": ("int", "Number of features of X in ``fit``."),
    "feature_names_in_": ("ndarray of str", "Column names of X, if it has any."),
    "classes_": ("ndarray", "The classes, in ascending order. Classification only."),
    "n_iter_": ("int", "Number of iterations."),
    "converged_": ("bool", "Whether the iteration reached ``tol``."),
    "estimator_": ("estimator", "The trained ``estimator``, if one was given."),
}


def _is_selector(entry: Any) -> bool:
    if isinstance(entry, str):  # the name of a method
        return True
    return ESTIMATOR.accepts(entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry)
