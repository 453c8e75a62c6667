"""Checks of the public behaviour of a selector, also for selectors of other packages.

``check_selector(MySelector())`` raises at the first check that fails. It complements scikit-learn's
``check_estimator`` with what is special to selection: paths, ties, groups, backends, seeds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from unittest import SkipTest

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from zeronorm.selection.target import Multiclass, TimeToEvent
from zeronorm.testing._selector_basics import (
    KNOWN_SUPPORTS,
    N_FEATURES,
    N_SAMPLES,
    ORIGINAL,
    accepts,
    check_backends_agree,
    check_data_frames,
    check_fitted_attributes,
    check_fraction_of_features,
    check_labels_of_any_type,
    check_methods_need_a_fit,
    check_parameters_are_untouched,
    check_path_answers_every_size,
    check_pickle,
    check_predict_exists_only_with_an_estimator,
    check_scores_agree_with_the_ranking,
    check_works_in_a_pipeline,
    expect,
    fitted,
    fix_seed,
    is_regression,
    make_problem,
    make_problems,
    supports,
    supports_of_a_fit,
    target_type,
)

Check = Callable[[Any], None]

# Checks that a method cannot pass, with the reason: its mathematics, or a known defect. A selector of another package
# lists them in its attribute ``_unkept_checks``, a mapping from the name of the check to the reason.
UNKEPT_CHECKS: dict[tuple[str, str], str] = {
    ("KnockoffSelector", "check_flipping_signs_changes_nothing"): (
        "knockoffs are drawn at random, and the draw for a mirrored column is not the mirrored draw"
    ),
    ("KnockoffSelector", "check_one_feature"): "it keeps at least 1 / level features or none",
    ("OptimalBrainDamage", "check_flipping_signs_changes_nothing"): (
        "a network starts from random weights, which are other ones for a mirrored column"
    ),
    ("TreeSelector", "check_flipping_signs_changes_nothing"): (
        "of equally good cuts the first along the column is taken, which is the last one of its mirror image"
    ),
}


# -- determinism, ties, invariances ---------------------------------------------------------------------


def check_same_seed_same_result(selector: Any) -> None:
    X, y = make_problem(selector)
    if accepts(selector, "random_state"):
        selector.set_params(random_state=7)
    first = fitted(selector, X, y)
    assert supports(fitted(selector, X, y)) == supports(first)
    if accepts(selector, "n_jobs"):
        parallel = fitted(clone(selector).set_params(n_jobs=2), X, y)
        assert supports(parallel) == supports(first)
        assert np.array_equal(parallel.scores_, first.scores_)


def check_permuting_columns_permutes_the_path(selector: Any) -> None:
    if accepts(selector, "random_state") or getattr(selector, "_depends_on_column_order", False):
        return
    (plain, with_copies), y = make_problems(selector)
    permutation = np.random.default_rng(1).permutation(N_FEATURES)
    for X in (plain, with_copies):
        # Of copies the first is taken, which may be another one after the permutation.
        name = np.arange(N_FEATURES) if X is plain else ORIGINAL
        before, after = supports_of_a_fit(selector, X, y), supports(fitted(selector, X[:, permutation], y))
        for chosen, expected in zip(after, before, strict=True):
            assert sorted(name[permutation[chosen]]) == sorted(name[expected])


def check_constant_columns_rank_last(selector: Any) -> None:
    if getattr(selector, "_depends_on_column_order", False):
        return
    X, y = make_problem(selector)
    X[:, 0], X[:, 3] = 0.1, 0.0
    s = fitted(selector, X, y)
    assert set(s.path_.order[-2:].tolist()) == {0, 3}
    assert np.all(np.isfinite(s.scores_))


def check_identical_columns_tie_by_index(selector: Any) -> None:
    if accepts(selector, "random_state") or getattr(selector, "_depends_on_column_order", False):
        return
    X, y = make_problem(selector)
    for copy in (X[:, 1], -X[:, 1], 1.0 - X[:, 1]):
        position = fitted(selector, np.column_stack([X[:, :8], copy, X[:, 9]]), y).path_.position()
        assert position[1] < position[8]


def check_standardised_columns_have_no_unit(selector: Any) -> None:
    if not (accepts(selector, "standardize") and selector.standardize):
        return
    fix_seed(selector)
    problems, y = make_problems(selector)
    units = 2.0 ** np.arange(-5, N_FEATURES - 5)
    for X in problems:
        assert supports(fitted(selector, X * units, y)) == supports_of_a_fit(selector, X, y)


def check_flipping_signs_changes_nothing(selector: Any) -> None:
    problems, y = make_problems(selector)
    fix_seed(selector)
    signs = np.where(np.arange(N_FEATURES) % 3 == 1, -1.0, 1.0)
    for X in problems:
        assert supports(fitted(selector, X * signs, y)) == supports_of_a_fit(selector, X, y)


def check_shifting_columns_changes_nothing(selector: Any) -> None:
    problems, y = make_problems(selector)
    fix_seed(selector)
    offsets = np.linspace(-3.0, 3.0, N_FEATURES)
    for X in problems:
        assert supports(fitted(selector, X + offsets, y)) == supports_of_a_fit(selector, X, y)


def check_weights_equal_duplicates(selector: Any) -> None:
    if not has_fit_parameter(selector, "sample_weight"):
        return
    if target_type(selector) is TimeToEvent and getattr(selector, "ties", "efron") == "efron":
        return  # for Efron a duplicated event is tied with its copy, and an event of weight two with none
    X, y = make_problem(selector)
    weight = np.ones(N_SAMPLES)
    weight[:7], weight[7:10] = 2.0, 0.0
    repeated = np.repeat(np.arange(N_SAMPLES), weight.astype(int))
    weighted = fitted(selector, X, y, sample_weight=weight)
    assert supports(weighted) == supports(fitted(selector, X[repeated], y[repeated]))


# -- groups and forced features -------------------------------------------------------------------------


def check_groups_stay_whole(selector: Any) -> None:
    if not accepts(selector, "feature_groups"):
        return
    X, y = make_problem(selector)
    groups = np.asarray([0, 1, 2, 0, 1, 2, 3, 3, 4, 4])
    s = fitted(selector.set_params(feature_groups=groups, n_features_to_select=4), X, y)
    assert s.support_.sum() == 4
    for k in range(2, N_FEATURES + 1):
        chosen = s.path_.mask(k)
        assert chosen.sum() == 2 * (k // 2)
        assert all(len(set(chosen[groups == g])) == 1 for g in range(5))
    expect(ValueError, s.path_.support, 1, message="No whole feature group fits")
    broken = clone(selector).set_params(feature_groups=groups[:-1])
    expect(ValueError, broken.fit, X, y, message="one label per column")


def check_forced_features_stay(selector: Any) -> None:
    if not accepts(selector, "always_keep"):
        return
    X, y = make_problem(selector)
    s = fitted(selector.set_params(always_keep=[9, 2], n_features_to_select=3), X, y)
    assert s.support_[[2, 9]].all()
    assert s.support_.sum() == 3
    for k in range(2, N_FEATURES + 1):
        assert {2, 9} <= set(s.path_.support(k).tolist())
        assert len(s.path_.support(k)) == k
    expect(ValueError, s.path_.support, 1, message="always kept")


# -- hostile data and settings --------------------------------------------------------------------------


def check_extreme_values_are_survived(selector: Any) -> None:
    fix_seed(selector)
    outlier, unit = (make_problem(selector)[0] for _ in range(2))
    outlier[5, 7] = 1e6
    unit[:, 6] *= 1e9
    _, y = make_problem(selector)
    for X in (outlier, unit):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # also those of convergence; warnings of NumPy are still errors
            try:
                s = clone(selector).fit(X, y)
            except ValueError as refused:
                assert "scale" in str(refused) or "standardi" in str(refused), f"names no remedy: {refused}"
                continue
        assert np.all(np.isfinite(s.scores_)), f"scores that are not finite: {s.scores_}"
        assert sorted(s.path_.order) == list(range(N_FEATURES))


def check_an_empty_selection_warns(selector: Any) -> None:
    fix_seed(selector)
    X, y = make_problem(selector)
    X = np.random.default_rng(9).normal(size=X.shape)
    strictest = {"C": 1e-6, "level": 1e-9, "n_features_to_select": None}
    selector.set_params(**{name: value for name, value in strictest.items() if accepts(selector, name)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            s = clone(selector).fit(X, y)
        except ValueError:
            return  # a setting that the method refuses
    is_expressed = not s.support_.any()
    assert s.path_.selected_size != 0 or caught or is_expressed, (
        "nothing passes, one feature is kept, and no warning says so"
    )


def check_an_early_stop_warns_once(selector: Any) -> None:
    if not accepts(selector, "max_iter"):
        return
    fix_seed(selector)
    X, y = make_problem(selector)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        s = clone(selector).set_params(max_iter=1).fit(X, y)
    count = sum(issubclass(w.category, ConvergenceWarning) for w in caught)
    assert count == (not s.converged_), f"converged_ is {s.converged_}, with {count} warnings of convergence"


# -- bad input ------------------------------------------------------------------------------------------


def check_bad_input(selector: Any) -> None:
    X, y = make_problem(selector)
    if not selector._allow_nan:
        for bad in (np.nan, np.inf):
            broken = X.copy()
            broken[3, 2] = bad
            expect(ValueError, clone(selector).fit, broken, y, message="NaN|inf")
    expect(ValueError, clone(selector).fit, X, y[:-1], message="inconsistent numbers of samples")
    expect(ValueError, clone(selector).fit, X[:1], y[:1], message="1 sample|n_samples=1|minimum of 2")
    text = X.astype(object)
    text[0, 0] = "high"
    expect(ValueError, clone(selector).fit, text, y, message="could not convert string to float")
    for size in (0, N_FEATURES + 1, -1, 1.5, "all"):
        broken_size = clone(selector).set_params(n_features_to_select=size)
        expect(ValueError, broken_size.fit, X, y, message="n_features_to_select")
    if not is_regression(selector):
        expect(ValueError, clone(selector).fit, X, np.zeros(N_SAMPLES), message="one class")


def check_binary_methods_refuse_more_classes(selector: Any) -> None:
    if is_regression(selector) or Multiclass.kind in selector._tasks():
        return
    X, _ = make_problem(selector)
    y = np.arange(N_SAMPLES) % 3
    expect(ValueError, clone(selector).fit, X, y, message="Only binary classification is supported")


def check_multiclass(selector: Any) -> None:
    if is_regression(selector) or Multiclass.kind not in selector._tasks():
        return
    rng = np.random.default_rng(2)
    y = np.arange(N_SAMPLES) % 3
    X = rng.normal(size=(N_SAMPLES, N_FEATURES))
    X[:, 2] += 3.0 * y
    X[:, 5] += 3.0 * (y == 1)
    s = fitted(selector.set_params(n_features_to_select=2), X, y)
    assert s.support_.sum() == 2
    assert sorted(s.path_.order) == list(range(N_FEATURES))


def check_one_feature(selector: Any) -> None:
    X, y = make_problem(selector)
    s = fitted(selector, X[:, 1:2], y)
    assert s.support_.tolist() == [True]


SELECTOR_CHECKS: tuple[Check, ...] = (
    check_parameters_are_untouched,
    check_fitted_attributes,
    check_scores_agree_with_the_ranking,
    check_path_answers_every_size,
    check_pickle,
    check_fraction_of_features,
    check_predict_exists_only_with_an_estimator,
    check_methods_need_a_fit,
    check_works_in_a_pipeline,
    check_backends_agree,
    check_data_frames,
    check_labels_of_any_type,
    check_same_seed_same_result,
    check_permuting_columns_permutes_the_path,
    check_constant_columns_rank_last,
    check_identical_columns_tie_by_index,
    check_standardised_columns_have_no_unit,
    check_flipping_signs_changes_nothing,
    check_shifting_columns_changes_nothing,
    check_weights_equal_duplicates,
    check_groups_stay_whole,
    check_forced_features_stay,
    check_extreme_values_are_survived,
    check_an_empty_selection_warns,
    check_an_early_stop_warns_once,
    check_bad_input,
    check_binary_methods_refuse_more_classes,
    check_multiclass,
    check_one_feature,
)


def selector_checks(selector: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Name and call of every check for one selector; each call uses a new clone.

    A call raises ``SkipTest`` with the reason where the selector is exempt from the check.

    Parameters
    ----------
    selector : selector
        An unfitted selector. It is cloned, never changed.

    Returns
    -------
    iterator of (str, callable)
        Name and call of each check.

    Examples
    --------
    >>> from zeronorm import FisherScore
    >>> from zeronorm.testing import selector_checks
    >>> names = [name for name, check in selector_checks(FisherScore())]
    >>> len(names) > 10
    True
    """
    KNOWN_SUPPORTS.clear()
    for check in SELECTOR_CHECKS:
        yield check.__name__, lambda check=check: _run(check, clone(selector))  # type: ignore[misc]


def _run(check: Check, selector: Any) -> None:
    name = check.__name__
    reason = UNKEPT_CHECKS.get((type(selector).__name__, name))
    reason = getattr(selector, "_unkept_checks", {}).get(name, reason)
    if reason is not None:
        raise SkipTest(f"{type(selector).__name__}, {name}: {reason}")
    if accepts(selector, "random_state") and selector.random_state is None:
        selector.set_params(random_state=0)  # without a seed two fits may differ
    check(selector)


def check_selector(selector: Any) -> None:
    """Run all checks on an unfitted selector; an AssertionError is raised at the first one that fails.

    Parameters
    ----------
    selector : selector
        An unfitted selector. It is cloned, never changed.

    Examples
    --------
    >>> from zeronorm import FisherScore
    >>> from zeronorm.testing import check_selector
    >>> check_selector(FisherScore())
    """
    for _, run in selector_checks(selector):
        with suppress(SkipTest):
            run()
