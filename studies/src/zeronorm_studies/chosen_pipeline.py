"""Units, ranking, number of features and SVM, all chosen by cross-validation on the training samples."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import LinearSVC

from zeronorm import FCBF, FisherScore, GFlip, OptimalFeatureWeighting
from zeronorm_studies.models import CommonScale, GaussianSVC, as_dense

FOLDS = 5
STANDARDIZED, COMMON, ROWS = "standardised", "one common scale", "unit rows of square roots"
LINEAR_GRID = {"linearsvc__C": [0.1, 1.0, 10.0]}
GAUSSIAN_GRID = {"gaussiansvc__C": [1.0, 10.0], "gaussiansvc__width": [0.25, 1.0, 4.0]}


class ChosenPipeline(BaseEstimator):  # type: ignore[misc]
    """A ranking whose units, number of features and SVM are chosen on the training samples.

    The units are chosen first, with Fisher scores: standardised columns, unless others have a balanced accuracy that is
    better by more than one standard error of the paired differences of the folds. Then come the number of features and
    the kernel of the SVM, at last its cost and width.

    Parameters
    ----------
    ranking : "all" (no selection), "fisher", "ofw", "gflip" or "fcbf"; the last two choose their number themselves.
    sizes : numbers of features to try; None: all.
    weighting : parameters of OFW.
    naive_bayes : whether a naive Bayes classifier takes the place of the SVM, as with FCBF in the paper's table.
    """

    def __init__(
        self,
        ranking: str,
        sizes: tuple[int | None, ...] = (),
        *,
        weighting: dict[str, Any] | None = None,
        naive_bayes: bool = False,
    ) -> None:
        self.ranking = ranking
        self.sizes = sizes
        self.weighting = weighting
        self.naive_bayes = naive_bayes

    def fit(self, X: Any, y: Any) -> Self:
        """Choose units, features and predictor."""
        self.units_ = choose_units(X, y, self.sizes)
        if self.naive_bayes:
            order, size = self._order(X, y), None
            dense = FunctionTransformer(as_dense, accept_sparse=True)
            self.predictor_ = make_pipeline(_units(self.units_, X), dense, GaussianNB())
        else:
            scores = [self._scores(X, y, *rows) for rows in _splits(X, y)]
            order = self._order(X, y)
            size, model = _best(scores)
            self.predictor_ = _tuned(self.units_, model, X, y, order[:size])
        mask = np.zeros(X.shape[1], dtype=bool)
        mask[order[:size]] = True
        self.scores_ = mask.astype(float)
        return self

    def get_support(self) -> NDArray[np.bool_]:
        """Mask of the chosen features."""
        return np.asarray(self.scores_ > 0.0)

    def _order(self, X: Any, y: Any) -> NDArray[np.intp]:
        """The features, best first; only the selected ones for a method that chooses their number."""
        if self.ranking == "all":
            return np.arange(X.shape[1])
        Z = _units(self.units_, X).fit_transform(X)
        if self.ranking in ("gflip", "fcbf"):
            fitted = (GFlip(random_state=0) if self.ranking == "gflip" else FCBF()).fit(Z, y)
            return np.flatnonzero(fitted.get_support())
        if self.ranking == "fisher":
            return np.asarray(FisherScore().fit(Z, y).path_.order)
        settings = {"cost": "balanced", "standardize": False, "random_state": 0, **(self.weighting or {})}
        return np.asarray(OptimalFeatureWeighting(**settings).fit(Z, y).path_.order)

    def _scores(self, X: Any, y: Any, train: Any, test: Any) -> dict[tuple[int | None, str], float]:
        order = self._order(X[train], y[train])
        sizes = self.sizes if self.ranking in ("fisher", "ofw") else (None,)
        return _fold_scores(self.units_, X, y, train, test, order, sizes)


def choose_units(X: Any, y: Any, sizes: tuple[int | None, ...]) -> str:
    """The units of the best balanced accuracy with Fisher scores; standardised unless others are clearly better."""
    names = [STANDARDIZED, COMMON] + ([ROWS] if X.min() >= 0.0 else [])
    best: dict[str, NDArray[np.float64]] = {}
    for name in names:
        folds = []
        for train, test in _splits(X, y):
            Z = _units(name, X).fit_transform(X[train])
            order = np.asarray(FisherScore().fit(Z, y[train]).path_.order)
            folds.append(_fold_scores(name, X, y, train, test, order, sizes))
        key = _best(folds)
        best[name] = np.asarray([fold[key] for fold in folds])
    leader = max(names, key=lambda name: best[name].mean())
    gain = best[leader] - best[STANDARDIZED]
    return leader if gain.mean() > gain.std(ddof=1) / np.sqrt(FOLDS) else STANDARDIZED


def _splits(X: Any, y: Any) -> list[tuple[Any, Any]]:
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(np.zeros(len(y)), y))


def _units(name: str, X: Any) -> Any:
    """The transformer of the columns; sparse columns are not centred."""
    if name == STANDARDIZED:
        return StandardScaler(with_mean=not sp.issparse(X))
    if name == COMMON:
        return CommonScale()
    return make_pipeline(FunctionTransformer(np.sqrt, accept_sparse=True), Normalizer())


def _models(name: str, X: Any) -> dict[str, Any]:
    linear = LinearSVC(class_weight="balanced", dual="auto", max_iter=5000, random_state=0)
    gaussian = GaussianSVC(C=10.0, class_weight="balanced")
    return {
        "linear": make_pipeline(_units(name, X), linear),
        "gaussian": make_pipeline(_units(name, X), gaussian),
    }


def _fold_scores(
    units: str, X: Any, y: Any, train: Any, test: Any, order: Any, sizes: tuple[int | None, ...]
) -> dict[tuple[int | None, str], float]:
    scores = {}
    for size in sizes:
        columns = X[:, order[:size]]
        for kind, model in _models(units, X).items():
            fitted = model.fit(columns[train], y[train])
            scores[size, kind] = float(balanced_accuracy_score(y[test], fitted.predict(columns[test])))
    return scores


def _best(folds: list[dict[tuple[int | None, str], float]]) -> tuple[int | None, str]:
    """The number of features and the model of the best mean score; the earlier on ties."""
    return max(folds[0], key=lambda key: float(np.mean([fold[key] for fold in folds])))


def _tuned(units: str, model: str, X: Any, y: Any, columns: Any) -> Any:
    """The unfitted pipeline with cost and width chosen on the training samples."""
    grid: dict[str, list[float]] = LINEAR_GRID if model == "linear" else GAUSSIAN_GRID
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    search = GridSearchCV(_models(units, X)[model], grid, scoring="balanced_accuracy", cv=folds)
    return clone(search.fit(X[:, columns], y).best_estimator_)
