"""Problems with few features and samples, and the error of drawn subsets computed with scikit-learn."""

from __future__ import annotations

import numpy as np

from zeronorm.engines.weighting._sampling import Draws, Pool


def gaussian_classes(n=60, p=6, n_classes=2, seed=0, shift=1.0):
    """Classes that differ in features 0 and 1; the other features are noise."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, p))
    X[:, 0] += shift * y
    X[:, 1] -= shift * (y == n_classes - 1)
    return X, y.astype(np.int64)


def make_pool(X, y, coding=None, class_cost=None, balanced=False):
    """A pool of the values in single precision, multi-class unless a coding is given."""
    n_classes = int(y.max()) + 1
    coding = np.arange(n_classes)[None, :] if coding is None else np.asarray(coding)
    cost = np.ones(n_classes) if class_cost is None else np.asarray(class_cost, dtype=float)
    columns = np.ascontiguousarray(X.T, dtype=np.float32)
    return Pool(columns, y, columns, y, coding, int(coding.max()) + 1, cost, balanced)


def random_draws(n, p, *, batch_size=30, subset_size=4, bootstrap_size=25, seed=0):
    """Draws by NumPy's generator, features ascending."""
    rng = np.random.default_rng(seed)
    draws = Draws.empty(batch_size, subset_size, bootstrap_size)
    draws.features[:] = np.sort(rng.integers(0, p, size=draws.features.shape), axis=1)
    draws.train[:] = rng.integers(0, n, size=draws.train.shape)
    draws.test[:] = rng.integers(0, n, size=draws.test.shape)
    draws.seeds[:] = rng.integers(0, 2**31, size=batch_size)
    return draws


def scikit_errors(estimator, pool, draws):
    """Error of each subset, by fitting a scikit-learn classifier to each binary problem of the coding."""
    errors = []
    for features, train, test in zip(draws.features, draws.train, draws.test, strict=True):
        chosen = np.unique(features)
        values = pool.columns[chosen].astype(np.float64)
        X_train, X_test = values[:, train].T, values[:, test].T
        models = []
        for labels in pool.coding:
            target, truth = labels[pool.codes[train]], labels[pool.test_codes[test]]
            if len(set(target.tolist())) == 1:
                predicted = np.full(len(test), target[0])
            else:
                predicted = estimator.fit(X_train, target).predict(X_test)
            models.append(np.mean(predicted != truth))
        errors.append(np.mean(models))
    return np.asarray(errors)
