"""No sample group is in both the training and the test samples of a fold, inner folds included."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, GroupShuffleSplit
from sklearn.svm import LinearSVC

import zeronorm
from zeronorm import (
    AROM,
    L1SVM,
    RFE,
    RFECV,
    AutoSelector,
    Consensus,
    FisherScore,
    IntervalSelector,
    KernelMultiplicativeUpdate,
    RadiusMarginScaling,
    SelectorCV,
    SVMWeights,
    ZeroNormSVM,
)
from zeronorm.engines import _cost as cost
from zeronorm.resampling import _folds as folds

N_PATIENTS, VISITS = 15, 4


def visits():
    """The first column names the patient, whose visits resemble each other; the next two carry the label."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(N_PATIENTS), VISITS)
    y = patient % 2
    X = rng.normal(size=(N_PATIENTS, 6))[patient] + 0.1 * rng.normal(size=(patient.size, 6))
    X[:, 0] = patient
    X[:, 1:3] += 2.0 * y[:, None]
    mixed = rng.permutation(patient.size)
    return X[mixed], y[mixed], patient[mixed]


def _patients(X):
    column = X.block(slice(0, 1)) if hasattr(X, "block") else np.asarray(X)[:, :1]
    return set(np.round(column.ravel(), 9))


class Seen:
    """Records the patients among the training and the test samples of every fold."""

    def __init__(self):
        self.costs, self.scored = [], []

    def left_out(self, problem, epsilon, is_test, n_steps):
        sides = (problem.design.take_rows(np.flatnonzero(rows)) for rows in (~is_test, is_test))
        self.costs.append(tuple(_patients(side) for side in sides))
        return REAL_LEFT_OUT(problem, epsilon, is_test, n_steps)

    def score(self, result, plan, model, train, test, *rest):
        sides = _patients(train[0]), _patients(test[0])
        if sides != ({0.0}, {0.0}):  # the prediction without features uses zeros, in the same folds
            self.scored.append(sides)
        return REAL_SCORE(result, plan, model, train, test, *rest)

    def shared(self):
        return [train & test for train, test in [*self.costs, *self.scored] if train & test]


REAL_LEFT_OUT, REAL_SCORE = cost._LeftOut, folds._score


@pytest.fixture
def seen(monkeypatch):
    found = Seen()
    monkeypatch.setattr(cost, "_LeftOut", found.left_out)
    monkeypatch.setattr(folds, "_score", found.score)
    monkeypatch.setattr(folds, "MOST_READ_ONCE", 0)  # training and test samples with all their columns
    return found


@pytest.mark.parametrize(
    "selector", [L1SVM(), AROM(norm="l1"), SVMWeights(norm="l1")], ids=lambda s: type(s).__name__
)
def test_the_cost_is_chosen_on_whole_patients(seen, selector):
    X, y, patient = visits()
    selector.fit(X, y, groups=patient)
    assert len(seen.costs) == cost.FOLDS
    assert not seen.shared()
    seen.costs.clear()
    selector.fit(X, y)
    assert seen.shared()  # without the groups they would be divided


@pytest.mark.parametrize(
    "selector",
    [AROM(), SVMWeights(), ZeroNormSVM(), KernelMultiplicativeUpdate(), RFE()],
    ids=lambda s: type(s).__name__,
)
def test_the_cost_of_the_other_norm_leaves_out_whole_patients(monkeypatch, selector):
    X, y, patient = visits()
    given, members = [], cost._members

    def noted(groups):
        given.append(groups)
        return members(groups)

    monkeypatch.setattr(cost, "_members", noted)
    selector.fit(X, y, groups=patient)
    assert [np.array_equal(groups, patient) for groups in given] == [True]


def test_an_estimator_gets_groups_only_if_it_takes_them():
    X, y, patient = visits()
    given = []

    class Noting(LinearSVC):
        def fit(self, X, y, groups=None):
            given.append(groups)
            return super().fit(X, y)

    plain = RFE(LinearSVC(), n_features_to_select=2).fit(X, y, groups=patient)
    noting = RFE(Noting(), n_features_to_select=2).fit(X, y, groups=patient)
    assert all(np.array_equal(groups, patient) for groups in given)
    assert given
    np.testing.assert_array_equal(plain.support_, noting.support_)


def test_groups_of_samples_without_weight_are_left_out(seen):
    X, y, patient = visits()
    weight = np.where(patient < 3, 0.0, 1.0)
    L1SVM().fit(X, y, sample_weight=weight, groups=patient)
    assert not seen.shared()
    assert sum(len(test) for _, test in seen.costs) == N_PATIENTS - 3


@pytest.mark.parametrize(
    "selector",
    [
        SelectorCV(L1SVM(), cv=3, sizes=[2, 3], random_state=0),
        SelectorCV(SelectorCV(FisherScore(), cv=3, sizes=[2, 3]), cv=3, sizes=[2, 3], random_state=0),
        AutoSelector(["l1-svm", "fisher"], cv=3, sizes=[2, 3], random_state=0),
        Consensus([L1SVM(), SelectorCV(FisherScore(), cv=3, sizes=[2, 3])], random_state=0),
        Consensus([L1SVM(), FisherScore()], n_subsamples=2, random_state=0),
    ],
    ids=["SelectorCV", "nested", "AutoSelector", "Consensus", "halves"],
)
def test_inner_folds_hold_whole_patients(seen, selector):
    X, y, patient = visits()
    selector.fit(X, y, groups=patient)
    assert seen.costs or seen.scored
    assert not seen.shared()


@pytest.mark.parametrize(("method", "features"), [("l1-svm", 2), ("l1-svm", "auto"), ("auto", "auto")])
def test_select_divides_no_patient(seen, method, features):
    X, y, patient = visits()
    zeronorm.select(
        X, y, method=method, features=features, cv=3, sample_groups=patient, permutations=0, n_jobs=1
    )
    assert seen.costs or method == "auto"  # its methods leave out samples without fits
    assert seen.scored
    assert not seen.shared()


def _no_patient_is_divided(splits, patient):
    assert len(splits) > 1
    assert not [1 for train, test in splits if set(patient[train]) & set(patient[test])]


def test_intervals_are_scored_on_whole_patients():
    X, y, patient = visits()
    made = []

    class Noted(IntervalSelector):
        def _splits(self, problem, y):
            made.extend(super()._splits(problem, y))
            return made

    Noted(random_state=0).fit(X, y, groups=patient)
    _no_patient_is_divided(made, patient)


def test_scalings_are_validated_on_whole_patients():
    X, y, patient = visits()
    made = []

    class Noted(RadiusMarginScaling):
        def _splits(self, problem):
            made.extend(super()._splits(problem))
            return made

    Noted(bound="validation", cv=3).fit(X, y, groups=patient)
    _no_patient_is_divided(made, patient)


@pytest.mark.parametrize(
    ("cv", "task"), [(3, "classification"), (None, "regression"), (GroupKFold(3), "regression")]
)
def test_recursive_elimination_is_validated_on_whole_patients(monkeypatch, cv, task):
    X, y, patient = visits()
    made, one_fold = [], RFECV._one_fold

    def noted(self, X, y, train, test, fewest, routed):
        made.append((train, test))
        return one_fold(self, X, y, train, test, fewest, routed)

    monkeypatch.setattr(RFECV, "_one_fold", noted)
    RFECV(cv=cv, task=task, min_features_to_select=4).fit(
        X, y + 0.1 * X[:, 5] * (task == "regression"), groups=patient
    )
    _no_patient_is_divided(made, patient)


def test_a_splitter_of_groups_is_given_them(seen):
    X, y, patient = visits()
    inner = RFECV(cv=GroupKFold(3), min_features_to_select=2)
    SelectorCV(inner, cv=GroupShuffleSplit(2, random_state=0), sizes=[2], random_state=0).fit(
        X, y, groups=patient
    )
    assert seen.scored
    assert not seen.shared()


@pytest.mark.parametrize("selector", [L1SVM(), AutoSelector(["fisher"], random_state=0)])
def test_groups_of_another_length_are_refused(selector):
    X, y, patient = visits()
    with pytest.raises(ValueError, match=r"'groups' of \w+ must hold one label for each of the 60 samples"):
        selector.fit(X, y, groups=patient[:-1])
