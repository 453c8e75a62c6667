"""The vocabulary: what each constructor parameter is called, means and may be, in one place.

Every registered class takes its parameters from here. The checks in ``fit``, the errors, the sections
"Parameters" of the docstrings and the page of parameters in the docs come from ``VOCABULARY``. The annotation of a
constructor adds what one class alone knows: whether None is allowed, and the words to choose from
(``Literal``). Where a class must narrow or widen a kind, it says so, with the reason, in
``_parameter_exceptions``.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """One word of the vocabulary.

    Attributes
    ----------
    kind : what values other than None and the words of the annotation must be; None where there are no others.
    meaning : begins the description of the parameter in every class that has it.
    """

    kind: Kind | None
    meaning: str


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
    "selector": Parameter(ESTIMATOR, "The selector to be wrapped. It is cloned, never changed."),
    "selectors": Parameter(
        SELECTORS,
        "The selectors to choose from or to combine: selectors, names of methods, or pairs (name, selector). "
        "None: a few different methods that suit the task.",
    ),
    "learner": Parameter(
        LEARNER, "Model that is trained during the selection to judge features; it does not predict."
    ),
    "feature_groups": Parameter(
        GROUPS,
        "Features that are selected together or not at all: one label per column, or lists of columns. "
        "None: every feature alone.",
    ),
    "always_keep": Parameter(COLUMNS, "Columns (positions or names) that are always selected."),
    "task": Parameter(None, "What y holds: classes or real numbers. It is never guessed from y."),
    "standardize": Parameter(BOOLEAN, "Scale every column to mean 0 and variance 1 first."),
    "n_jobs": Parameter(
        WORKERS, "Number of parallel workers; None is 1, -1 all cores. The result does not depend on it."
    ),
    "random_state": Parameter(
        SEED, "Seed of everything random. None: a new seed in every fit. One seed gives one result."
    ),
    "verbose": Parameter(VERBOSITY, "Whether to show progress."),
    "tol": Parameter(POSITIVE, "Accuracy: smaller is more exact and slower."),
    "zero_tol": Parameter(
        number(least=0, below=1), "Weights up to this fraction of the largest weight count as zero."
    ),
    "max_iter": Parameter(count(), "Largest number of iterations; when it is reached, a warning follows."),
}

# Losses, kernels and penalties.
_MODELS = {
    "ccp_alpha": Parameter(
        NOT_NEGATIVE, "Cost of a leaf in cost-complexity pruning, as in scikit-learn's trees."
    ),
    "C": Parameter(
        POSITIVE | INFINITE, "Cost of training errors: larger values fit the training data more closely."
    ),
    "loss": Parameter(None, "Loss of a training error."),
    "epsilon": Parameter(NOT_NEGATIVE, "Regression: errors up to this size cost nothing."),
    "kernel": Parameter(CALLABLE, "Kernel of the machine."),
    "gamma": Parameter(
        POSITIVE,
        "Width of the kernel: factor of the squared distance in 'rbf' and of the inner product in 'poly'. "
        "'auto' is 1 / n_features, 'scale' is 1 / (n_features * variance of X).",
    ),
    "degree": Parameter(count(), "Degree of the polynomial."),
    "coef0": Parameter(NOT_NEGATIVE, "Constant of the polynomial kernel."),
    "norm": Parameter(None, "Norm that is used."),
    "q": Parameter(number(least=0, most=2), "Exponent of the norm of the weights."),
    "penalty": Parameter(None, "Penalty on the weights."),
    "penalty_l0": Parameter(NOT_NEGATIVE, "Weight λ₀ of the penalty on the number of features."),
    "penalty_l1": Parameter(NOT_NEGATIVE, "Weight λ₁ of the penalty on the sum of absolute weights."),
    "penalty_l2": Parameter(NOT_NEGATIVE, "Weight λ₂ of the penalty on the sum of squared weights."),
    "weight_decay": Parameter(POSITIVE, "Weight λ of the penalty on the squared weights of a network."),
    "sample_penalty": Parameter(POSITIVE, "Rate of the prior of the sample weights."),
    "feature_penalty": Parameter(POSITIVE, "Rate of the prior of the scaling factors."),
    "ridge": Parameter(POSITIVE, "Weight of a small ridge penalty."),
    "two_norm": Parameter(NOT_NEGATIVE, "Weight of the squared norm of an ordinary support vector machine."),
    "slack_norm": Parameter(None, "Norm of the slacks."),
    "multi_class": Parameter(None, "How more than two classes are handled."),
    "n_hidden": Parameter(count(), "Number of hidden units of the network."),
    "class_weight": Parameter(CLASS_WEIGHT, "Cost of an error by class; None: all errors cost the same."),
    "kernel_pieces": Parameter(ANY_LIST_OR_ARRAY, "One kernel matrix per feature."),
    "combine": Parameter(None, "How the kernel matrices of the features are combined."),
    "noise_variance": Parameter(POSITIVE, "Noise variance of a regression target; None: estimated."),
    "prior_rate": Parameter(NOT_NEGATIVE, "Rate of the Gamma prior of the precisions."),
    "prior_shape": Parameter(NOT_NEGATIVE, "Shape of the Gamma prior of the precisions."),
    "min_noise": Parameter(
        POSITIVE,
        "Smallest noise variance that can be estimated, as a fraction of the variance of the target.",
    ),
    "space": Parameter(None, "Whether the monomials are computed explicitly."),
}

# How features are scored, searched for and counted.
_SEARCH = {
    "step": Parameter(
        STEP, "How many features (or groups) change per round: a count, or a fraction of those that are left."
    ),
    "importance_getter": Parameter(
        IMPORTANCES,
        "Where the fitted estimator has its importances: the path of an attribute, such as "
        "'named_steps.svc.coef_', or a function of it. 'auto' takes ``coef_`` or ``feature_importances_``.",
    ),
    "min_features_to_select": Parameter(count(), "Fewest features that are tried."),
    "rule": Parameter(None, "Rule by which the method decides."),
    "method": Parameter(None, "Algorithm that is used."),
    "criterion": Parameter(None, "Impurity that a split reduces, as in scikit-learn's trees."),
    "contrast": Parameter(None, "How the distances to other classes and to the own class are compared."),
    "gain": Parameter(None, "Which gain decides the next feature."),
    "sensitivity_of": Parameter(None, "Whose sensitivity to a feature is measured."),
    "bound": Parameter(None, "Bound or estimate of the generalisation error that is made small."),
    "sign": Parameter(None, "Whether the sign of the derivative matters."),
    "order": Parameter(None, "Order of the derivative; 0 is the change when the feature is removed."),
    "search": Parameter(None, "Direction of the search."),
    "difference_step": Parameter(
        POSITIVE, "Step of numerical derivatives, in standard deviations of the feature."
    ),
    "variant": Parameter(None, "Formula of the score."),
    "utility": Parameter(None, "Utility of the margin of a sample."),
    "slope": Parameter(POSITIVE, "Slope of the sigmoid utility."),
    "metric": Parameter(None, "Distance between samples."),
    "column_scaling": Parameter(None, "How the columns are scaled before distances are taken."),
    "scaling": Parameter(None, "Size of the scaling factors during the iteration."),
    "start": Parameter(None, "Scaling factors at the start of the iteration."),
    "n_neighbors": Parameter(count(), "Number of nearest neighbours."),
    "discrete_features": Parameter(
        COLUMNS, "Columns that hold categories: a mask, or a list of positions or names."
    ),
    "min_separation": Parameter(
        count(), "Smallest distance between two selected positions of ordered features, such as spectra."
    ),
    "bins": Parameter(count(2, 2**15 - 1), "How columns are made discrete."),
    "threshold": Parameter(NOT_NEGATIVE, "Value that the score of a selected feature must exceed."),
    "n_parts": Parameter(count(2), "Number of parts into which an interval is divided."),
    "n_trees": Parameter(count(), "Number of trees: 1 grows one tree, more grow a random forest."),
    "max_depth": Parameter(count(), "Largest depth of a tree; None: no limit."),
    "min_samples_leaf": Parameter(
        STEP, "Smallest number of samples in a leaf, or their fraction of all samples."
    ),
    "accuracy": Parameter(OPEN_FRACTION, "Fraction of the largest margin that may be missed."),
    "power": Parameter(number(least=2, most=100), "Exponent p of the norms."),
    "stop": Parameter(None, "Rule that ends the search."),
    "correction": Parameter(None, "Correction for the search over many columns."),
    "n_steps": Parameter(count(), "Number of points on the path."),
    "n_alphas": Parameter(count(), "Number of penalties on the path."),
    "norm_bound": Parameter(
        POSITIVE, "Largest norm of the weights, of the columns as standardised. None: the whole path."
    ),
    "max_features": Parameter(count(), "Largest number of features that is searched."),
    "max_reweightings": Parameter(count(), "Largest number of reweighted problems per penalty."),
    "alpha": Parameter(POSITIVE, "Steepness of the exponential."),
    "growth": Parameter(number(least=1), "Factor by which ``alpha`` grows."),
    "sparsity": Parameter(OPEN_FRACTION, "Weight λ of the number of features against the errors."),
    "n_candidates": Parameter(
        count(), "Number of training rows, drawn at random, that may become support vectors."
    ),
    "sigma_norm": Parameter(POSITIVE, "Norm of the scaling factors."),
    "constraint": Parameter(None, "Constraint on the scaling factors."),
    "discard": Parameter(None, "What decides which features are discarded."),
    "steepness": Parameter(
        POSITIVE, "Steepness of the sigmoid that replaces the count of validation errors."
    ),
    "stop_at": Parameter(count(), "Iterates with fewer features are not used."),
    "gradient_steps": Parameter(
        count(), "Steps in the scaling factors per step of expectation-maximisation."
    ),
    "inclusion_prior": Parameter(OPEN_FRACTION, "Prior probability that a feature is relevant."),
}

# Resampling and control of false selections.
_RESAMPLING = {
    "cv": Parameter(
        SPLITTER, "How the samples are split: a number of folds, a splitter, or a list of splits."
    ),
    "scoring": Parameter(SCORER, "Scorer, as in scikit-learn; greater is better."),
    "sizes": Parameter(list_of(count()), "Numbers of features to try."),
    "level": Parameter(OPEN_FRACTION, "Accepted level of error."),
    "knockoffs": Parameter(None, "Kind of knockoffs."),
    "construction": Parameter(None, "Construction of the knockoffs."),
    "correlation": Parameter(ANY_LIST_OR_ARRAY, "Known correlation matrix of the features; None: estimated."),
    "offset": Parameter(None, "Number added to the count of false discoveries; 1 is exact, 0 more liberal."),
    "n_draws": Parameter(count(), "Number of independent draws of knockoffs."),
    "probes": Parameter(None, "Kind of the random columns."),
    "control": Parameter(None, "Error that is controlled."),
    "n_probes": Parameter(count(), "Number of random columns (probes)."),
    "n_repeats": Parameter(count(), "Number of independent draws of probes."),
    "false_selections": Parameter(POSITIVE, "Accepted expected number of false selections."),
    "subset_size": Parameter(count(), "Number of features in a subset."),
    "refine": Parameter(count(0), "Number of leading features that are put in order jointly."),
    "n_subsamples": Parameter(count(2), "Number of subsamples, each half of the samples."),
    "sampling": Parameter(None, "How the halves are drawn."),
    "aggregation": Parameter(None, "How the ranks of several selectors become one."),
    "weights": Parameter(list_of(NOT_NEGATIVE), "Weight of each selector."),
    "assumption": Parameter(None, "Assumption behind the bound on false selections."),
}

# Optimal feature weighting.
_WEIGHTING = {
    "n_estimators": Parameter(count(), "Number of classifiers that vote."),
    "bootstrap_size": Parameter(count(2), "Number of samples in a bootstrap sample."),
    "step_size": Parameter(POSITIVE, "First step size."),
    "step_offset": Parameter(POSITIVE, "How slowly the steps shrink."),
    "noise": Parameter(
        number(least=0, most=0.1),
        "Standard deviation of the diffusion at the start, in units of the uniform weight.",
    ),
    "batch_size": Parameter(count(), "Number of subsets per step."),
    "window": Parameter(count(2), "The run is compared with its state 1/window of the steps ago."),
    "cost": Parameter(None, "Error that is made small."),
    "fisher_threshold": Parameter(
        NOT_NEGATIVE, "Features with a smaller Fisher score are left out beforehand."
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
        list_of(count(0)), "Tolerances of the place of an edge, in pixels; one set of features each."
    ),
    "signed": Parameter(BOOLEAN, "Keep edges from dark to light apart from edges from light to dark."),
    "min_contrast": Parameter(NOT_NEGATIVE, "Smallest contrast of an edge."),
    "min_frequency": Parameter(
        number(least=0, most=1), "Edges found in a smaller fraction of the training images are left out."
    ),
    "crop": Parameter(list_of(count(0), 2), "Range of positions (first, last + 1) to keep, counted from 0."),
    "final_crop": Parameter(
        list_of(count(0), 2), "Range of positions to keep at the end, within the first range."
    ),
    "baseline_window": Parameter(count(odd=True), "Width of the window of the baseline. None: no baseline."),
    "baseline_fraction": Parameter(SHARE, "Fraction of the lowest values that make the baseline."),
    "smoothing_window": Parameter(count(odd=True), "Width of the smoothing window. None: no smoothing."),
    "smoothing_width": Parameter(POSITIVE, "Decay length of the smoothing weights, in positions."),
    "top_fraction": Parameter(
        SHARE, "Fraction of the highest values whose median is the unit. None: no division."
    ),
    "square_root": Parameter(BOOLEAN, "Take the square root, which evens out the variance of counts."),
    "negative": Parameter(None, "What happens to values below zero before the square root."),
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
    "support_": ("ndarray of shape (n_features_in_,), dtype bool", "Which features are selected."),
    "ranking_": (
        "ndarray of shape (n_features_in_,), dtype int",
        "1 for selected features, then 2, 3, … by order.",
    ),
    "scores_": ("ndarray of shape (n_features_in_,)", "Score of each feature; larger is better."),
    "path_": (
        "SelectionPath",
        "The subsets of all sizes: ``path_.support(k)`` gives k features without a new fit.",
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
