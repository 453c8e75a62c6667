"""Toy problems for the checks of a selector, and the first checks: fitted state, estimator, backends of the data."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from zeronorm.models._cox_regression import CoxRegression
from zeronorm.selection.target import TASKS, Target, TimeToEvent

N_SAMPLES, N_FEATURES = 40, 10


def is_regression(selector: Any) -> bool:
    """Whether the selector, as configured, takes a real target."""
    return not target_type(selector).has_classes


def target_type(selector: Any) -> type[Target]:
    """The kind of target that the selector, as configured, takes."""
    return TASKS[selector._task_name()]


def final_estimator(selector: Any) -> Any:
    """A predictor for the target of the selector."""
    if target_type(selector) is TimeToEvent:
        return CoxRegression()
    return Ridge() if is_regression(selector) else LogisticRegression()


def make_problem(selector: Any, seed: int = 0, n_features: int = N_FEATURES) -> tuple[Any, NDArray[Any]]:
    """Noise with a signal in features 1 and 4, without ties."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_SAMPLES, n_features))
    signal = X[:, 1] * 2.0 + X[:, min(4, n_features - 1)] + 0.3 * rng.normal(size=N_SAMPLES)
    if target_type(selector) is TimeToEvent:
        return X, TimeToEvent.prepared({"event": np.arange(N_SAMPLES) % 4 > 0, "time": np.exp(-signal)})
    if is_regression(selector):
        return X, signal
    y = (signal > np.median(signal)).astype(int)
    # A margin between the classes keeps hard-margin methods solvable.
    X[:, 1] += 1.5 * (2 * y - 1)
    return X, y


# Features 8 and 9 carry what 1 and 4 carry, as the complement of an indicator does.
ORIGINAL = np.asarray([0, 1, 2, 3, 4, 5, 6, 7, 1, 4])


def make_problems(selector: Any) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """The plain problem, and one with a mirrored copy, -x, and a complement, 1 - x."""
    X, y = make_problem(selector)
    with_copies = X.copy()
    with_copies[:, 8] = -X[:, 1]
    with_copies[:, 9] = 1.0 - X[:, 4]
    return [X, with_copies], y


def fitted(selector: Any, X: Any, y: Any, **fit_params: Any) -> Any:
    """A fitted clone; on small problems a method may stop before it converges, or select nothing by itself."""
    with warnings.catch_warnings():
        _ignore_expected_warnings()
        return clone(selector).fit(X, y, **fit_params)


def _ignore_expected_warnings() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.filterwarnings("ignore", ".*selects no feature by its own rule")


def supports(selector: Any) -> list[list[int]]:
    """All supports of a fitted selector, for comparison."""
    return [selector.path_.support(k).tolist() for k in range(1, selector.n_features_in_ + 1)]


# Supports of the selector that is being checked, by its class, its parameters and the data.
KNOWN_SUPPORTS: dict[tuple[Any, ...], list[list[int]]] = {}


def supports_of_a_fit(selector: Any, X: NDArray[Any], y: NDArray[Any]) -> list[list[int]]:
    """All supports of the selector on these data, cached because several checks compare with the same fit.

    Another check makes sure that a second fit gives the same.
    """
    key = type(selector), str(selector.get_params()), X.tobytes(), y.tobytes()
    if key not in KNOWN_SUPPORTS:
        KNOWN_SUPPORTS[key] = supports(fitted(selector, X, y))
    return KNOWN_SUPPORTS[key]


def accepts(selector: Any, parameter: str) -> bool:
    return parameter in selector.get_params(deep=False)


def fix_seed(selector: Any) -> None:
    if accepts(selector, "random_state"):
        selector.set_params(random_state=3)


def expect(error: type[Exception], function: Callable[..., Any], *args: Any, message: str) -> None:
    import re

    try:
        function(*args)
    except error as raised:
        assert re.search(message, str(raised)), f"expected a message with {message!r}, got: {raised}"
        return
    raise AssertionError(f"{function} accepted {args[-1:]!r:.60} without an error ({message})")


def _import_or_none(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# -- fitted state ---------------------------------------------------------------------------------------


def check_parameters_are_untouched(selector: Any) -> None:
    X, y = make_problem(selector)
    candidate = clone(selector)
    before = {name: id(value) for name, value in candidate.get_params(deep=False).items()}
    with warnings.catch_warnings():
        _ignore_expected_warnings()
        candidate.fit(X, y)
    assert before == {name: id(value) for name, value in candidate.get_params(deep=False).items()}


def check_fitted_attributes(selector: Any) -> None:
    X, y = make_problem(selector)
    s = fitted(selector.set_params(n_features_to_select=3), X, y)
    assert s.support_.dtype == bool
    assert s.support_.sum() == 3
    assert (s.ranking_ == 1).sum() == 3
    assert np.array_equal(s.ranking_ == 1, s.support_)
    assert sorted(s.ranking_[~s.support_]) == list(range(2, N_FEATURES - 1))
    assert s.scores_.shape == (N_FEATURES,)
    assert np.all(np.isfinite(s.scores_))
    assert s.n_iter_ >= 1
    assert isinstance(s.converged_, bool)
    assert s.n_features_in_ == N_FEATURES
    assert s.transform(X).shape == (N_SAMPLES, 3)
    assert s.inverse_transform(s.transform(X)).shape == X.shape


def check_scores_agree_with_the_ranking(selector: Any) -> None:
    X, y = make_problem(selector, seed=1)
    for size in (3, N_FEATURES // 2):
        s = fitted(clone(selector).set_params(n_features_to_select=size), X, y)
        best_first = np.lexsort((s.path_.position(), s.ranking_))
        scores = s.scores_[best_first]
        rises = np.diff(scores) > 1e-10 * np.abs(scores).max()
        assert not rises.any(), f"a feature ranked behind another has the higher score: {scores}"
        assert np.ptp(scores) > 0.0


def check_path_answers_every_size(selector: Any) -> None:
    X, y = make_problem(selector)
    s = fitted(selector, X, y)
    assert sorted(s.path_.order) == list(range(N_FEATURES))
    for k in range(1, N_FEATURES + 1):
        support = s.path_.support(k)
        assert len(support) == k
        assert np.all(np.diff(support) > 0)
    for k in (0, N_FEATURES + 1):
        expect(ValueError, s.path_.support, k, message="between 1 and")


def check_pickle(selector: Any) -> None:
    X, y = make_problem(selector)
    s = fitted(selector, X, y)
    copy = pickle.loads(pickle.dumps(s))
    assert np.array_equal(copy.transform(X), s.transform(X))
    assert supports(copy) == supports(s)


def check_fraction_of_features(selector: Any) -> None:
    X, y = make_problem(selector)
    assert fitted(selector.set_params(n_features_to_select=0.2), X, y).support_.sum() == 2
    assert fitted(selector.set_params(n_features_to_select=1.0), X, y).support_.all()


# -- the estimator on top -------------------------------------------------------------------------------


def check_predict_exists_only_with_an_estimator(selector: Any) -> None:
    if not accepts(selector, "estimator"):
        return
    X, y = make_problem(selector)
    plain = clone(selector).set_params(estimator=None)
    assert not hasattr(plain, "predict")
    assert not hasattr(plain, "score")
    assert get_tags(plain).estimator_type is None
    final = final_estimator(selector)
    s = fitted(clone(selector).set_params(estimator=final, n_features_to_select=2), X, y)
    assert get_tags(s).estimator_type == target_type(selector).estimator_type
    assert s.estimator_.coef_.shape[-1] == 2
    assert s.predict(X).shape == y.shape
    assert s.score(X, y) > 0.5


def check_methods_need_a_fit(selector: Any) -> None:
    X, y = make_problem(selector)
    if accepts(selector, "estimator"):
        selector.set_params(estimator=final_estimator(selector))
    arguments: dict[str, tuple[Any, ...]] = {
        "transform": (X,),
        "inverse_transform": (X,),
        "get_support": (),
        "get_feature_names_out": (),
        "predict": (X,),
        "predict_proba": (X,),
        "decision_function": (X,),
        "score": (X, y),
    }
    for name, given in arguments.items():
        if hasattr(selector, name):
            expect(NotFittedError, getattr(selector, name), *given, message="is not fitted yet")


def check_works_in_a_pipeline(selector: Any) -> None:
    X, y = make_problem(selector)
    final = final_estimator(selector)
    with warnings.catch_warnings():
        _ignore_expected_warnings()
        pipe = make_pipeline(clone(selector).set_params(n_features_to_select=2), final).fit(X, y)
    assert pipe.predict(X).shape == y.shape


# -- backends of the data -------------------------------------------------------------------------------


def check_backends_agree(selector: Any) -> None:
    X, y = make_problem(selector)
    X = X.astype(np.float32).astype(np.float64)  # exactly representable in both types
    expected = supports(fitted(selector, X, y))
    read_only = X.copy()
    read_only.flags.writeable = False
    backends: dict[str, Any] = {
        "Fortran order": np.asfortranarray(X),
        "float32": X.astype(np.float32),
        "read-only": read_only,
        "a strided view": np.repeat(X, 2, axis=1)[:, ::2],
    }
    if selector._accepts_sparse:
        backends |= {"CSR": sp.csr_array(X), "CSC": sp.csc_matrix(X)}
    for backend, data in backends.items():
        assert supports(fitted(selector, data, y)) == expected, f"{backend} selects differently from C order"


def check_data_frames(selector: Any) -> None:
    pandas = _import_or_none("pandas")
    if pandas is None:
        return
    X, y = make_problem(selector)
    frame = pandas.DataFrame(X, columns=[f"gene {i}" for i in range(N_FEATURES)])
    s = fitted(selector.set_params(n_features_to_select=3), frame, y)
    assert list(s.feature_names_in_) == list(frame.columns)
    assert list(s.get_feature_names_out()) == [f"gene {i}" for i in np.flatnonzero(s.support_)]
    out = s.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == list(s.get_feature_names_out())


def check_labels_of_any_type(selector: Any) -> None:
    if is_regression(selector):
        return
    X, y = make_problem(selector)
    expected = supports_of_a_fit(selector, X, y)
    for labels in (np.where(y == 1, "tumour", "normal"), y * 2.0 - 1.0, y.astype(bool)):
        assert supports(fitted(selector, X, labels)) == expected
