"""Filters: Relief against its peers, one-pass scores against reading the matrix, Gram-Schmidt Relief."""

from __future__ import annotations

import tracemalloc
from typing import Literal

import numpy as np
import scipy.sparse as sp

from harness import Measurement, against, job, load, timed, under, wide_problem
from zeronorm import FisherScore, GolubScore, GramSchmidtRelief, MutualInformation, Relief, WelchScore

N_NEIGHBORS = 10


def _colon() -> tuple[np.ndarray, np.ndarray]:
    return load("colon")


def _madelon() -> tuple[np.ndarray, np.ndarray]:
    X, y = load("madelon")
    return X[:2000], y[:2000]


def _spectra() -> tuple[np.ndarray, np.ndarray]:
    """As many samples as the prostate study and 2000 positions; the values do not matter for the time."""
    return wide_problem(326, 2000)


def _against_skrebate(X: np.ndarray, y: np.ndarray, ratio: float) -> Measurement:
    from skrebate import ReliefF

    # One core each: its worker processes would cost the peer more than they gain on small data.
    ours = Relief(10, n_neighbors=N_NEIGHBORS, contrast="difference")
    peer = ReliefF(n_features_to_select=10, n_neighbors=N_NEIGHBORS)
    return against(ratio, lambda: ours.fit(X, y), lambda: peer.fit(X, y), "skrebate ReliefF", repeat=5)


def _against_fast_select(X: np.ndarray, y: np.ndarray) -> Measurement:
    from fast_select import ReliefF

    ours = Relief(10, n_neighbors=N_NEIGHBORS, contrast="difference", n_jobs=-1)
    # No column is taken for discrete on either side: then both compute the same scores.
    peer = ReliefF(
        n_features_to_select=10, n_neighbors=N_NEIGHBORS, backend="cpu", n_jobs=-1, discrete_limit=0
    )
    peer.fit(X, y)  # compiled, as ours is
    ours.fit(X, y)
    np.testing.assert_allclose(ours.scores_, peer.feature_importances_, atol=1e-5)  # its floats are short
    # One after the other, not in turns: the peer's threads keep a core busy for a while after each call.
    ours_s, peer_s = (
        float(np.median([timed(run)[0] for _ in range(20)]))
        for run in (lambda: ours.fit(X, y), lambda: peer.fit(X, y))
    )
    name = "fast-select ReliefF"
    return Measurement(ours_s, f"no slower than {name} (warm)", ours_s <= peer_s, name, peer_s)


@job("relief 62x2000 against skrebate")
def relief_colon() -> Measurement:
    return _against_skrebate(*_colon(), 300.0)


@job("relief 326x2000 against skrebate")
def relief_spectra() -> Measurement:
    return _against_skrebate(*_spectra(), 100.0)


@job("relief 2000x500 against skrebate")
def relief_madelon() -> Measurement:
    return _against_skrebate(*_madelon(), 100.0)


@job("relief 62x2000 against fast-select")
def relief_colon_compiled() -> Measurement:
    return _against_fast_select(*_colon())


@job("relief 326x2000 against fast-select")
def relief_spectra_compiled() -> Measurement:
    return _against_fast_select(*_spectra())


@job("relief 2000x500 against fast-select")
def relief_madelon_compiled() -> Measurement:
    return _against_fast_select(*_madelon())


@job("relief memory 6000x200")
def relief_memory() -> Measurement:
    """Far below n x n distances (288 MB): tiles of distances and blocks of columns only."""
    X, y = wide_problem(6000, 200)
    selector = Relief(10).fit(X[:100], y[:100])
    tracemalloc.start()
    seconds, _ = timed(lambda: selector.fit(X, y))
    peak_mb = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    limit_mb = 100.0
    target = f"less than {limit_mb:g} MB besides the data"
    return Measurement(
        seconds, target, peak_mb < limit_mb, note=f"peak {peak_mb:.0f} MB, data {X.nbytes / 2**20:.0f} MB"
    )


@job("gram-schmidt relief 7 features of 326x9500")
def gram_schmidt_relief() -> Measurement:
    X, y = wide_problem(326, 9500)
    GramSchmidtRelief(1).fit(X[:, :50], y)  # compile
    return under(10.0, lambda: GramSchmidtRelief(7).fit(X, y))


@job("mutual information 200x10000 against scikit-learn")
def mutual_information() -> Measurement:
    from sklearn.feature_selection import mutual_info_classif

    X, y = wide_problem(200, 10_000)
    ours = MutualInformation(10, random_state=0)
    return against(
        10.0,
        lambda: ours.fit(X, y),
        lambda: mutual_info_classif(X, y, random_state=0),
        "scikit-learn mutual_info_classif",
    )


def _one_pass(method: type, order: Literal["C", "F"] = "C", dtype: type = np.float64) -> Measurement:
    """At most twice the time of one pass over the matrix, the fastest one there is: its sum."""
    X = np.array(np.random.default_rng(0).random((1000, 100_000)), dtype=dtype, order=order)
    y = np.arange(1000) % 2
    selector = method(10).fit(X[:, :50].copy(order), y)
    # In turn, so that both meet the same load of the computer.
    pairs = [(timed(lambda: selector.fit(X, y))[0], timed(X.sum)[0]) for _ in range(5)]
    ours_s, read_s = (float(np.median(seconds)) for seconds in zip(*pairs, strict=True))
    target = "at most 2 × the time of reading the matrix once"
    return Measurement(ours_s, target, ours_s <= 2.0 * read_s, "X.sum()", read_s)


@job("fisher 1000x100000 dense")
def fisher_dense() -> Measurement:
    return _one_pass(FisherScore)


@job("golub 1000x100000 dense")
def golub_dense() -> Measurement:
    return _one_pass(GolubScore)


@job("welch 1000x100000 dense")
def welch_dense() -> Measurement:
    return _one_pass(WelchScore)


@job("fisher 1000x100000 dense, float32")
def fisher_dense_short() -> Measurement:
    return _one_pass(FisherScore, dtype=np.float32)


@job("fisher 1000x100000 dense, column by column in memory")
def fisher_dense_by_column() -> Measurement:
    return _one_pass(FisherScore, order="F")


@job("fisher 1000x100000 dense, float32, column by column in memory")
def fisher_dense_short_by_column() -> Measurement:
    return _one_pass(FisherScore, order="F", dtype=np.float32)


def _sparse(method: type) -> Measurement:
    X = sp.random(500, 1_000_000, density=0.005, format="csr", rng=np.random.default_rng(0))
    y = np.arange(500) % 2
    selector = method(10).fit(X[:, :50].tocsr(), y)
    return under(2.0, lambda: selector.fit(X, y), note=f"{X.nnz} stored values")


@job("fisher 10^6 sparse columns")
def fisher_sparse() -> Measurement:
    return _sparse(FisherScore)


@job("golub 10^6 sparse columns")
def golub_sparse() -> Measurement:
    return _sparse(GolubScore)


@job("welch 10^6 sparse columns")
def welch_sparse() -> Measurement:
    return _sparse(WelchScore)
