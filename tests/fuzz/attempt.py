"""One case of the matrix: fit, check the result, and classify the outcome."""

from __future__ import annotations

import re
import traceback
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from fuzz.inputs import REFUSED, ROWS, WORKS, Case, clean_data, is_regression
from zeronorm.registry import all_methods

RIGHT, CLEAR_REFUSAL, DOES_NOT_APPLY = "right", "refused", "does not apply"
# Outcomes that are defects.
FOREIGN, WRONG, ARITHMETIC = "foreign exception", "wrong result", "warning of arithmetic"
ACCEPTED, REJECTED, HANG, DEATH = "accepted", "rejected", "hang", "process death"
DEFECTS = (FOREIGN, WRONG, ARITHMETIC, ACCEPTED, REJECTED, HANG, DEATH)

OUR_KINDS = (ValueError, TypeError, RuntimeError, MemoryError)
# Messages of the libraries below when a bad value reaches them: right, but not about the caller's input.
FOREIGN_TEXTS = re.compile(
    r"broadcast|ufunc|has no attribute|unsupported operand|' object is not|zero-size array|out of bounds|"
    r"must not contain infs|did not converge$|Singular matrix|cannot convert float|setting an array element|"
    r"not supported between|list index|need at least one array|unhashable|numba|Traceback|math domain|"
    r"math range|too many values|not enough values|positional argument|unexpected keyword|illegal value|"
    r"Buffer dtype|Internal work array|\bmkl|LAPACK|zero-dimensional"
)
# Paths are the caller's text and may hold anything; the names of temporary folders are random.
PATHS = re.compile(r"'/[^']*'")


# Packages that may raise the error: ours, or the input checks of scikit-learn, which name the input too.
BACKENDS = ("zeronorm", "sklearn/utils", "sklearn/model_selection")


def instances() -> dict[str, Any]:
    """Every registered selector by its name and number of parameter set."""
    return {
        f"{method.cls.__name__}-{number}": instance
        for kind in ("selector", "meta")
        for method in all_methods(kind)
        for number, instance in enumerate(method.instances())
    }


def attempt(selector: Any, row_name: str) -> tuple[str, str]:
    """Outcome of one case, and what was seen."""
    regression = is_regression(selector)
    row = ROWS[row_name]
    case = row.make(*clean_data(regression), regression)
    selector = _with_params(selector, case)
    if selector is None:
        return DOES_NOT_APPLY, ""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            selector.fit(case.X, case.y, **case.fit_params)
        except Exception as error:
            return classified_error(error, row.allowed)
    doubt = [w for w in said if issubclass(w.category, RuntimeWarning) and "encountered" in str(w.message)]
    if doubt:
        return ARITHMETIC, f"{doubt[0].message} ({doubt[0].filename}:{doubt[0].lineno})"
    if row.allowed == REFUSED:
        return ACCEPTED, f"selected {np.flatnonzero(selector.support_).tolist()}"
    return classified_result(selector)


def _with_params(selector: Any, case: Case) -> Any:
    """A clone with the parameters of the case, or None where it has no such parameter."""
    if case.fit_params and not has_fit_parameter(selector, "sample_weight"):
        return None
    if not set(case.params) <= set(selector.get_params(deep=False)):
        return None
    return clone(selector).set_params(**case.params)


def classified_error(error: Exception, allowed: str) -> tuple[str, str]:
    """Classify an error: clear if it is one of ours and about the caller's input."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    seen = f"{type(error).__name__}: {error} ({frame.filename}:{frame.lineno})"
    text = str(error)
    own_kind = isinstance(error, OUR_KINDS) and type(error).__module__.split(".")[0] in (
        "builtins",
        "zeronorm",
    )
    readable = len(text.split()) >= 4 and not FOREIGN_TEXTS.search(PATHS.sub("", text))
    raised_here = any(backend in frame.filename for backend in BACKENDS)
    if not (own_kind and readable and raised_here):
        return FOREIGN, seen
    return (REJECTED, seen) if allowed == WORKS else (CLEAR_REFUSAL, seen)


def classified_result(selector: Any) -> tuple[str, str]:
    """Classify a fit: right if order, scores, support and ranking are finite and agree."""
    p = selector.n_features_in_
    if sorted(selector.path_.order) != list(range(p)):
        return WRONG, f"the order is no permutation: {selector.path_.order}"
    if selector.scores_.shape != (p,) or not np.all(np.isfinite(selector.scores_)):
        return WRONG, f"scores are not finite: {selector.scores_}"
    if selector.support_.shape != (p,) or not np.array_equal(selector.ranking_ == 1, selector.support_):
        return WRONG, f"support and ranking disagree: {selector.support_}, {selector.ranking_}"
    return RIGHT, ""
