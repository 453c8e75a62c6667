"""Every registered selector keeps scikit-learn's rules and ours, with no expected failures.

One test holds all checks of one estimator, and names each one that fails: thousands of small tests would cost
more in pytest than in the methods. scikit-learn's checks, and ours of what the base class does for all methods, run on
the first set of parameters of each class; the other sets follow under the mark ``slow``.
"""

from __future__ import annotations

import traceback
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from zeronorm import FisherScore
from zeronorm.registry import all_methods
from zeronorm.selectors._base import BaseSelector
from zeronorm.testing import selector_checks

METHODS = [m for kind in ("selector", "meta", "model", "transformer") for m in all_methods(kind)]
FIRST_SETS = [m.instances()[0] for m in METHODS]
OTHER_SETS = [instance for m in METHODS for instance in m.instances()[1:]]
FIRST_SELECTORS = [m.instances()[0] for m in METHODS if m.kind in ("selector", "meta")]
OTHER_SELECTORS = [other for m in METHODS if m.kind in ("selector", "meta") for other in m.instances()[1:]]

# The checks fit noise, and methods that control an error may select nothing of it.
OF_EMPTY_SELECTIONS = (
    "ignore:.*will probably select nothing",
    "ignore:No features were selected",
)
EXPECTED_WARNINGS = (
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:.*selects no feature by its own rule",
    "ignore:The target y holds only 0 and 1, which are taken as times",
    *OF_EMPTY_SELECTIONS,
)


def _name(estimator):
    return " ".join(repr(estimator).split())


def _described(name, error):
    return f"--- {name} ---\n{''.join(traceback.format_exception(error))}"


# Every format of scipy once more, as a matrix: our own checks take both.
REPEATED = {"check_estimator_sparse_matrix"}
# Checks of what the base class does before or after the method, or of what our own checks test more strictly: the same
# selection from other types and orders, after pickling, in a second fit. They run for one method of each family, and
# for all methods under the mark ``slow``.
OF_THE_BASE_CLASS = {
    "check_dict_unchanged",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimators_dtypes",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_predict1d",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_pipeline_consistency",
    "check_readonly_memmap_input",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
    "check_transformer_preserve_dtypes",
}
DONE_BY_IT = (
    "fit",
    "fit_transform",
    "transform",
    "predict",
    "__getstate__",
    "__setstate__",
    "__sklearn_tags__",
)
# The first, but not the one that compares several others in every fit.
ONE_OF_EACH_FAMILY = {
    m.family: m.cls for m in reversed(METHODS) if m.kind in ("selector", "meta") and m.name != "auto"
}


def _is_like_others(estimator):
    """Whether the base classes do for it what they do for another method of the family."""
    if not isinstance(estimator, BaseSelector) or type(estimator) in ONE_OF_EACH_FAMILY.values():
        return False
    backends = [next((c for c in type(estimator).__mro__ if name in vars(c)), object) for name in DONE_BY_IT]
    return all(
        h.__module__ == BaseSelector.__module__ or not h.__module__.startswith("zeronorm.") for h in backends
    )


def _passes(estimator, without=()):
    failed, n_passed = [], 0
    for candidate, check in estimator_checks_generator(estimator):
        name = check.func.__name__
        if name in without:
            continue
        try:
            check(candidate)
        except SkipTest:
            continue
        except Exception as error:
            failed.append(_described(name, error))
        else:
            n_passed += 1
    assert not failed, "\n".join(failed)
    assert n_passed + len(without) > 40  # nothing was skipped as a whole


@pytest.mark.filterwarnings(*EXPECTED_WARNINGS)
@pytest.mark.parametrize("estimator", FIRST_SETS, ids=_name)
def test_scikit_learn_checks(estimator):
    _passes(estimator, without=REPEATED | OF_THE_BASE_CLASS if _is_like_others(estimator) else REPEATED)


@pytest.mark.filterwarnings(*EXPECTED_WARNINGS)
def test_scikit_learn_checks_of_a_real_target():
    _passes(FisherScore(task="regression"))


def test_most_selectors_leave_these_checks_to_one_of_their_family():
    known = {check.func.__name__ for _, check in estimator_checks_generator(FIRST_SELECTORS[0])}
    assert known >= OF_THE_BASE_CLASS
    whole = [estimator for estimator in FIRST_SELECTORS if not _is_like_others(estimator)]
    assert {estimator._method.family for estimator in whole} == set(ONE_OF_EACH_FAMILY)


# The first set of parameters of a class makes it quick where the defaults are slow; those run here.
DEFAULTS = [m.cls() for m in METHODS if m.test_params[0]]


@pytest.mark.slow
@pytest.mark.filterwarnings(*EXPECTED_WARNINGS)
@pytest.mark.parametrize("estimator", DEFAULTS, ids=_name)
def test_all_scikit_learn_checks_of_the_default_constructor(estimator):
    _passes(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings(*OF_EMPTY_SELECTIONS)
@pytest.mark.parametrize("selector", [s for s in DEFAULTS if isinstance(s, BaseSelector)], ids=_name)
def test_whole_contract_of_the_default_constructor(selector):
    _keeps(selector)


@pytest.mark.slow
@pytest.mark.filterwarnings(*EXPECTED_WARNINGS)
@pytest.mark.parametrize("estimator", [*FIRST_SETS, *OTHER_SETS], ids=_name)
def test_all_scikit_learn_checks(estimator):
    _passes(estimator)


# Checks that do not depend on the parameters: the base class does it, before or after the method.
OF_THE_CLASS = {
    "check_parameters_are_untouched",
    "check_path_answers_every_size",
    "check_pickle",
    "check_fraction_of_features",
    "check_predict_exists_only_with_an_estimator",
    "check_methods_need_a_fit",
    "check_works_in_a_pipeline",
    "check_data_frames",
    "check_labels_of_any_type",
    "check_bad_input",
}


def test_the_checks_of_the_class_exist():
    assert {name for name, _ in selector_checks(FIRST_SELECTORS[0])} > OF_THE_CLASS


@pytest.mark.parametrize("selector", FIRST_SELECTORS, ids=_name)
def test_contract(selector):
    _keeps(selector)


@pytest.mark.parametrize("selector", OTHER_SELECTORS, ids=_name)
def test_contract_with_other_parameters(selector):
    _keeps(selector, without=OF_THE_CLASS)


OF_A_REAL_TARGET = [
    m for m in all_methods("selector") if "regression" in m.tasks and m.name not in ("random", "rfecv")
]


@pytest.mark.parametrize("method", OF_A_REAL_TARGET, ids=lambda method: method.name)
def test_a_large_mean_of_the_target_changes_nothing(method):
    """Time stamps and amounts of money are such targets. Random features differ by chance; rfecv is rfe."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    y = 2.0 * X[:, 0] + 1.5 * X[:, 1] + 0.3 * rng.normal(size=60)
    selector = method.cls(n_features_to_select=2)
    if "task" in selector.get_params():
        selector.set_params(task="regression")
    expected = clone(selector).fit(X, y).support_
    assert expected[0]
    assert clone(selector).fit(X, 1e12 + y).support_.tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("selector", OTHER_SELECTORS, ids=_name)
def test_whole_contract_with_other_parameters(selector):
    _keeps(selector)


def _keeps(selector, without=()):
    failed = []
    for name, run in selector_checks(selector):
        if name in without:
            continue
        try:
            run()
        except SkipTest:
            continue  # what the method does not promise, with its reason in UNKEPT_CHECKS
        except Exception as error:
            failed.append(_described(name, error))
    assert not failed, "\n".join(failed)
