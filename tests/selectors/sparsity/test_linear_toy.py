"""The linear toy problem of Weston et al. (2003): zero-norm methods against the others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wilcoxon
from sklearn.svm import SVC

from zeronorm import AROM, FSV, RFE, FisherScore
from zeronorm.datasets._generators import make_linear_toy

N_TRAIN, N_TEST = 30, 500
ZERO_NORM = {"l1-AROM": AROM(2, norm="l1", C=np.inf), "l2-AROM": AROM(2, C=np.inf), "FSV": FSV(2)}
OTHERS = {"RFE": RFE(n_features_to_select=2, C=np.inf), "corr": FisherScore(2)}


def errors_of_one_draw(seed):
    """Test error (%) of a linear SVM on the two features that each method selects, and on all of them."""
    data = make_linear_toy(N_TRAIN + N_TEST, standardize=False, random_state=seed)
    train, test = slice(0, N_TRAIN), slice(N_TRAIN, None)
    # Scaled by the training samples, as in every method.
    X = (data.X - data.X[train].mean(axis=0)) / data.X[train].std(axis=0)
    errors, both_triples = {}, {}
    for name, selector in (ZERO_NORM | OTHERS).items():
        chosen = np.flatnonzero(selector.fit(X[train], data.y[train]).support_)
        errors[name] = error(X[:, chosen], data.y, train, test)
        both_triples[name] = chosen[0] in (0, 1, 2) and chosen[1] in (3, 4, 5)
    errors["SVM"] = error(X, data.y, train, test)
    return errors, both_triples


def error(X, y, train, test):
    return 100.0 * (1.0 - SVC(kernel="linear", C=1e3).fit(X[train], y[train]).score(X[test], y[test]))


def run(n_trials):
    draws = [errors_of_one_draw(seed) for seed in range(n_trials)]
    errors = {name: np.array([e[name] for e, _ in draws]) for name in draws[0][0]}
    both = {name: sum(b[name] for _, b in draws) for name in draws[0][1]}
    return errors, both


def test_zero_norm_methods_do_better_on_a_few_draws():
    errors, _ = run(12)
    means = {name: values.mean() for name, values in errors.items()}
    for name in ZERO_NORM:
        assert means[name] < means["corr"] - 3.0
        assert means[name] < means["SVM"] - 10.0


@pytest.mark.slow
def test_zero_norm_methods_are_significantly_better():
    """100 draws of 30 points: better than RFE, corr and the plain SVM (paired Wilcoxon, level 0.05)."""
    errors, both = run(100)
    print("\nerror %, standard error, draws with one feature of each triple")
    for name, values in errors.items():
        scale = values.std(ddof=1) / np.sqrt(values.size)
        print(f"{name:8s} {values.mean():6.2f} ± {scale:.2f}   {both.get(name, '')}")
    for name in ZERO_NORM:
        for other in (*OTHERS, "SVM"):
            p_value = wilcoxon(errors[name], errors[other], alternative="less").pvalue
            print(f"{name} better than {other}: p = {p_value:.2g}")
            assert p_value < 0.05
