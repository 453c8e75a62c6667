"""The base class of all selectors."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

import zeronorm
from small_problems import noise
from zeronorm import (
    RFECV,
    FisherScore,
    LassoSelector,
    OptimalFeatureWeighting,
    SelectorCV,
    SVMWeights,
    as_design,
)
from zeronorm.registry import all_methods, get_method
from zeronorm.selection import _problem as problem
from zeronorm.selection._path import SelectionPath
from zeronorm.selectors import _base as base
from zeronorm.selectors._requirements import require_labels
from zeronorm.selectors.meta._consensus import Consensus

TALKING = [
    m
    for kind in ("selector", "meta")
    for m in all_methods(kind)
    if "verbose" in m.instances()[0].get_params(deep=False)
    and m.cls is not RFECV  # counts as in scikit-learn
]
STOPS_EARLY = {"fsv", "perceptron-rfe"}  # converges long before max_iter


@pytest.mark.parametrize("change", [-1, 1])
def test_predictions_need_the_columns_of_the_fit(change):
    X, y = make_classification(40, 6, random_state=0)
    fitted = FisherScore(2, estimator=LogisticRegression()).fit(X, y)
    other = np.ones((3, 6 + change))
    for call in (fitted.predict, fitted.predict_proba, fitted.decision_function, fitted.transform):
        with pytest.raises(ValueError, match=f"X has {6 + change} features, but FisherScore is expecting 6"):
            call(other)
    assert fitted.n_features_in_ == 6
    assert fitted.predict(X).shape == (40,)


class Bar:
    def __init__(self, total):
        self.total, self.done = total, 0

    def advance(self, steps=0, text=""):
        self.done += steps


@pytest.mark.parametrize("method", TALKING, ids=lambda m: m.name)
def test_progress_ends_near_what_was_announced(method, monkeypatch):
    X, y = make_classification(40, 8, n_informative=3, n_redundant=0, random_state=0)
    X = np.abs(X)
    X[:, 0] += 10 * y  # hard margins need classes that can be separated
    bars = []

    @contextmanager
    def bar(description, total):
        bars.append(Bar(total))
        yield bars[-1]

    monkeypatch.setattr(problem, "_bar", bar)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        method.instances()[0].set_params(verbose=True).fit(X, y)
    for shown in bars:
        if shown.total is not None:
            least = 1 if method.name in STOPS_EARLY else shown.total - 1
            assert least <= shown.done <= shown.total


def test_of_equal_columns_the_first_is_removed_last():
    """This holds for the built-in SVM; with an estimator the first is removed first, as in scikit-learn."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    noise = rng.normal(size=(40, 2))
    X = np.column_stack([noise, noise, 3.0 * y + rng.normal(size=40)])
    ranking = RFECV(cv=3).fit(X, y).ranking_
    assert ranking[4] == 1
    assert ranking[0] < ranking[2]
    assert ranking[1] < ranking[3]


@pytest.mark.parametrize(
    ("size", "number"), [(None, 4), (3, 3), (np.int64(2), 2), (0.5, 4), (0.01, 1), (1.0, 9), (0.34, 3)]
)
def test_the_number_of_features_is_a_count_or_a_share(size, number):
    X, y = make_classification(40, 9, random_state=0)
    fitted = FisherScore(size).fit(X, y)
    assert fitted.n_features_ == fitted.support_.sum() == number
    np.testing.assert_array_equal(np.flatnonzero(fitted.support_), np.sort(fitted.path_.order[:number]))
    np.testing.assert_array_equal(fitted.ranking_ == 1, fitted.support_)


def test_forced_features_set_the_smallest_size():
    X, y = make_classification(40, 8, random_state=0)
    kept = FisherScore(always_keep=[0, 1, 2, 3, 4]).fit(X, y)  # without them, half of eight
    np.testing.assert_array_equal(np.flatnonzero(kept.support_), [0, 1, 2, 3, 4])
    grouped = FisherScore(feature_groups=[0, 0, 0, 1, 1, 1, 2, 2]).fit(X, y)
    assert grouped.n_features_ in (2, 3)  # the most whole groups within four
    large = FisherScore(feature_groups=[0] * 7 + [1]).fit(X, y)
    assert large.n_features_ in (1, 7)


def test_a_size_beyond_the_features_and_wrong_groups_are_refused():
    X, y = make_classification(40, 6, random_state=0)
    with pytest.raises(ValueError, match=r"between 1 and the 6 features of X\. Got 7 instead"):
        FisherScore(7).fit(X, y)
    with pytest.raises(ValueError, match=r"one label for each of the 40 samples. Got shape \(39,\)"):
        SelectorCV(FisherScore(), cv=3).fit(X, y, groups=np.arange(39))
    with pytest.raises(ValueError, match=r"at least two classes in y\. Got one class only"):
        FisherScore().fit(as_design(X), np.ones(40))
    with pytest.raises(ValueError, match=r"needs at least two samples\. Got 1 sample"):
        FisherScore().fit(as_design(X[:1]), [1])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[40, 39\]"):
        FisherScore().fit(as_design(X), y[:39])
    with pytest.raises(
        TypeError, match=r"unexpected arguments .'depth'.: they would be passed to 'estimator'"
    ):
        FisherScore().fit(X, y, depth=3)


def test_feature_names_are_those_of_the_last_design():
    X, y = make_classification(40, 3, n_informative=2, n_redundant=0, random_state=0)
    fitted = FisherScore().fit(as_design(X, feature_names=["a", "b", "c"]), y)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(fitted.fit(as_design(X), y), "feature_names_in_")
    assert fitted.n_features_in_ == 3


def test_samples_of_weight_zero_have_no_effect():
    X, y = make_classification(40, 5, random_state=0)
    weight = np.where(np.arange(40) < 30, 1.5, 0.0)
    whole = FisherScore(2, estimator=LogisticRegression()).fit(X, y, sample_weight=weight)
    part = FisherScore(2, estimator=LogisticRegression()).fit(X[:30], y[:30], sample_weight=weight[:30])
    np.testing.assert_allclose(whole.scores_, part.scores_)
    np.testing.assert_allclose(whole.estimator_.coef_, part.estimator_.coef_)
    alone = LogisticRegression().fit(X[:30][:, part.support_], y[:30], sample_weight=weight[:30])
    np.testing.assert_allclose(part.estimator_.coef_, alone.coef_)


def test_labels_keep_their_type_and_targets_become_floats():
    X, y = make_classification(40, 5, random_state=0)
    named = FisherScore().fit(X, np.where(y, "yes", "no").astype(object))
    assert named.classes_.tolist() == ["no", "yes"]
    numbers = X[:, 0] + X[:, 1]
    wanted = LassoSelector(task="regression").fit(X, numbers).scores_
    np.testing.assert_array_equal(
        LassoSelector(task="regression").fit(X, numbers.astype(object)).scores_, wanted
    )


# -- Boundary cases of arrays, labels and weights --


@pytest.mark.parametrize(
    ("X", "y", "is_plain"),
    [
        (np.zeros((2, 1)), np.array([0, 1]), True),
        (np.zeros((3, 2), dtype=np.float32), np.array([True, False, True]), True),
        (np.zeros((3, 2)), np.array([1, 2, 1], dtype=np.uint8), True),
        (np.zeros((1, 1)), np.array([0]), False),
        (np.zeros((3, 0)), np.array([0, 1, 0]), False),
        (np.zeros((3, 2)), np.array([0, 1]), False),
        (np.zeros((2, 2)), np.array([0, 1, 1]), False),
        (np.zeros((3, 2)), np.array([[0], [1], [0]]), False),
        (np.zeros((3, 2, 1)), np.array([0, 1, 0]), False),
        (np.zeros(3), np.array([0, 1, 0]), False),
        (np.zeros((3, 2), dtype=int), np.array([0, 1, 0]), False),
        (np.zeros((3, 2)), np.array([0.0, 1.0, 0.0]), False),
        (np.zeros((3, 2)), np.array(["a", "b", "a"]), False),
        (np.zeros((3, 2)), [0, 1, 0], False),
        ([[0.0], [1.0]], np.array([0, 1]), False),
        (np.zeros((3, 2)).view(np.matrix), np.array([0, 1, 0]), False),
    ],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_which_arrays_need_no_checks_of_scikit_learn(X, y, is_plain):
    assert base._is_plain(X, y) is is_plain


@pytest.mark.parametrize(
    ("y", "found"),
    [
        ([0, None, 1], "None: first found in row 1"),
        (("a", "b", None), "None: first found in row 2"),
        (np.array(["a", np.nan, "b"], dtype=object), "NaN: first found in row 1"),
        ([0, 1, np.nan], None),  # numbers are checked with the others
        (np.array(["a", "b"], dtype=object), None),
    ],
)
def test_the_first_label_that_is_missing_is_named(y, found):
    if found is None:
        require_labels(y)
    else:
        with pytest.raises(ValueError, match=found):
            require_labels(y)


def test_weights_that_are_zero_or_beyond_all_bounds():
    X, y = noise(6), np.arange(6) % 2
    wanted = FisherScore().fit(X[1:5], y[1:5], sample_weight=[2.0, 3.0, 1.0, 1.0]).scores_
    found = FisherScore().fit(X, y, sample_weight=[0.0, 2.0, 3.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(found.scores_, wanted)
    FisherScore().fit(X, y, sample_weight=[1e150, 1e150, 1e150, 1e-150, 1e-150, 1.0])
    with pytest.raises(ValueError, match=r"two samples must have a positive weight\. Got 1"):
        FisherScore().fit(X, y, sample_weight=[0.0, 2.0, 0.0, 0.0, 0.0, 0.0])
    for wrong in (1.1e150, 0.9e-150):
        with pytest.raises(ValueError, match=r"must be zero or between 1e-150 and 1e\+150"):
            FisherScore().fit(X, y, sample_weight=[1.0, 1.0, wrong, 1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="Negative values"):
        FisherScore().fit(X, y, sample_weight=[1.0, 1.0, -1.0, 1.0, 1.0, 1.0])


def test_targets_that_are_too_large_to_square():
    X = np.random.default_rng(0).normal(size=(8, 2))
    y = np.where(np.arange(8) % 2, 1.0, -1.0)
    LassoSelector(task="regression").fit(X, 1e150 * y)
    y[3] = -2.0
    with pytest.raises(ValueError, match=r"Input y contains -2e\+150\. Squares of values beyond 1e\+150"):
        LassoSelector(task="regression").fit(X, 1e150 * y)


@pytest.mark.parametrize("backend", ["dense", "sparse", "design"])
def test_the_estimator_gets_the_columns_as_the_method_used_them(backend):
    """Standardised where the method standardises; sparse columns keep their zeros."""
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, size=(40, 5)) * rng.uniform(0.5, 2.0, size=(40, 5))
    y = (X[:, 1] - X[:, 3] > 0).astype(int)
    data = {"dense": X, "sparse": sparse.csr_matrix(X), "design": as_design(X)}[backend]
    fitted = SVMWeights(2, estimator=LogisticRegression()).fit(data, y)
    seen = X[:, fitted.support_]
    seen = (seen - (0.0 if backend == "sparse" else seen.mean(axis=0))) / seen.std(axis=0)
    alone = LogisticRegression().fit(seen, y)
    np.testing.assert_allclose(fitted.estimator_.coef_, alone.coef_, rtol=1e-4)
    np.testing.assert_allclose(
        fitted.decision_function(data), alone.decision_function(seen), rtol=1e-3, atol=1e-4
    )
    np.testing.assert_allclose(fitted.predict_proba(data), alone.predict_proba(seen), atol=1e-4)
    assert fitted.score(data, y) == alone.score(seen, y)
    plain = SVMWeights(2, standardize=False, estimator=LogisticRegression()).fit(data, y)
    alone = LogisticRegression().fit(X[:, plain.support_], y)
    np.testing.assert_allclose(plain.estimator_.coef_, alone.coef_, rtol=1e-4)


def test_methods_that_the_estimator_lacks_are_missing_in_the_selector():
    X, y = make_classification(40, 5, random_state=0)
    for estimator, has in (
        (None, ()),
        (LinearSVC(), ("predict", "score", "decision_function")),
        (GaussianNB(), ("predict", "score", "predict_proba")),
    ):
        selector = FisherScore(2, estimator=estimator)
        for name in ("predict", "score", "decision_function", "predict_proba"):
            assert hasattr(selector, name) == (name in has)
        kind = get_tags(selector).estimator_type
        assert kind == (None if estimator is None else "classifier")
    neighbours = FisherScore(2, estimator=KNeighborsClassifier())  # which takes no weights
    neighbours.fit(X, y, sample_weight=np.ones(40))
    assert neighbours.predict(X).shape == (40,)
    with pytest.raises(ValueError, match="NaN"):
        neighbours.predict(np.where(X[0, 0] == X, np.nan, X))
    regressor = FisherScore(2, estimator=Ridge(), task="regression")
    assert get_tags(regressor).estimator_type == "regressor"


def test_groups_of_samples_do_not_outlive_the_fit():
    X, y = make_classification(40, 5, random_state=0)
    selector, groups = SelectorCV(FisherScore(), cv=2), np.arange(40) // 4
    before = set(vars(selector))
    with pytest.raises(ValueError, match="one label for each"):
        selector.fit(X, y, groups=groups[1:])
    assert {name for name in set(vars(selector)) - before if name.startswith("_")} == set()
    selector.fit(X, y, groups=groups)
    assert not any(np.array_equal(value, groups) for value in vars(selector).values())


def test_a_path_without_steps_counts_one_and_the_warning_has_a_remedy():
    selector = FisherScore(2)
    path = SelectionPath.from_scores([1.0, 3.0, 2.0])
    constrained = path.constrained(None, np.empty(0, dtype=np.intp))
    problem = SimpleNamespace(n_features_to_select=2)
    selector._store(replace(constrained, n_iter=0), problem)
    assert (selector.n_iter_, selector.n_features_, selector.converged_) == (1, 2, True)
    for remedy, text in (("add samples.", "add samples."), ("", "raise max_iter or loosen tol.")):
        with pytest.warns(ConvergenceWarning, match=f"FisherScore did not converge: {text}"):
            selector._store(replace(constrained, converged=False, remedy=remedy), problem)


@pytest.mark.parametrize(
    ("selected_size", "kept", "groups", "size"),
    [
        (None, [], None, 3),
        (5, [], None, 5),
        (0, [], None, 1),
        (2, [0, 1, 4], None, 3),
        (None, [], [0, 0, 1, 1, 1, 2, 2], 2),  # of the sizes 2, 5 and 7 the largest that is at most three
        (1, [], [0, 0, 1, 1, 1, 2, 2], 2),  # none fits, so the smallest
        (5, [], [0, 0, 1, 1, 1, 2, 2], 5),
        (6, [], [0, 0, 1, 1, 1, 2, 2], 5),
    ],
)
def test_the_size_that_a_method_chooses(selected_size, kept, groups, size):
    path = SelectionPath.from_scores([7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], selected_size=selected_size)
    codes = None if groups is None else np.asarray(groups)
    path = path.constrained(codes, np.asarray(kept, dtype=np.intp))
    assert FisherScore._default_size(path) == size


@pytest.mark.parametrize("name", ["interval", "gflip", "grafting"])
def test_steps_of_unknown_number_are_counted_one_by_one(name, monkeypatch):
    steps = []

    @contextmanager
    def bar(description, total):
        assert total is None
        yield SimpleNamespace(advance=lambda count=0, text="": steps.append(count))

    monkeypatch.setattr(problem, "_bar", bar)
    X, y = noise(30, 6), np.arange(30) % 2
    selector = (
        get_method(name).instances()[0].set_params(verbose=True).fit(X + 2.0 * y[:, None] * np.eye(6)[0], y)
    )
    assert set(steps) == {1}
    if name == "interval":
        assert len(steps) == len(selector.intervals_) - 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda X: FisherScore().get_support(),
        lambda X: FisherScore().transform(X),
        lambda X: zeronorm.WelchScore().pvalues_,
        lambda X: Consensus([FisherScore()], n_subsamples=4).false_selections(),
        lambda X: OptimalFeatureWeighting().mean_error(X, X[:, 0] > 0),
    ],
)
def test_methods_raise_an_error_before_the_fit(ask):
    with pytest.raises(NotFittedError):
        ask(noise(8))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("gram-schmidt-relief", {"level": 0.003}),
        ("gram-schmidt", {"level": 1e-6}),
        ("max-entropy-discrimination", {"inclusion_prior": 1e-6, "C": 1.1}),
        ("l1-svm", {"C": 1e-6}),
        ("svm-weights", {"norm": "l1", "C": 1e-6}),
        ("fsv", {"sparsity": 0.99, "alpha": 1.0}),
    ],
)
def test_an_empty_selection_warns_with_a_remedy(name, params):
    """Noise, and parameters so strict that nothing passes; with a requested number there is no warning."""
    X, y = noise(20, 4, 5), np.arange(20) % 2
    cls = get_method(name).cls
    with pytest.warns(UserWarning, match=f"{cls.__name__}.*(raise|lower)"):
        cls(**params).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cls(n_features_to_select=2, **params).fit(X, y).n_features_ == 2


@pytest.mark.parametrize("backend", [np.asarray, as_design])
def test_samples_of_weight_zero_are_absent_from_the_estimator_too(backend):
    X, y = noise(40, 12), np.arange(40) % 2
    weight = np.ones(40)
    weight[:10] = 0.0
    s = SVMWeights(n_features_to_select=3, estimator=LogisticRegression()).fit(
        backend(X), y, sample_weight=weight
    )
    alone = SVMWeights(n_features_to_select=3, estimator=LogisticRegression()).fit(X[10:], y[10:])
    np.testing.assert_allclose(s.estimator_.coef_, alone.estimator_.coef_)
