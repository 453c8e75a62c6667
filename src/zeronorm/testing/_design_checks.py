"""Checks of a `Design` backend: each operation is compared with NumPy on the dense matrix."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._types import FloatArray
from zeronorm.design import ColumnStats, Design

MakeDesign = Callable[[], Design]


def check_design(
    make_design: MakeDesign, X_dense: ArrayLike, *, rtol: float = 1e-9, random_state: int = 0
) -> None:
    """Check that a design behaves as the matrix ``X_dense`` does.

    Parameters
    ----------
    make_design : callable
        Function without arguments that returns the design to be checked.
    X_dense : array-like
        The same numbers as a plain array.
    rtol : float, default=1e-09
        Allowed error, relative to the sum of the absolute values of the terms.
    random_state : int, default=0
        Seed of the vectors and matrices that the design is multiplied with.

    Raises
    ------
    AssertionError
        At the first operation that disagrees with NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import as_design
    >>> from zeronorm.testing import check_design
    >>> X = np.random.default_rng(0).normal(size=(7, 4))
    >>> check_design(lambda: as_design(X), X)
    """
    X = np.asarray(X_dense, dtype=np.float64)
    check = _Check(make_design, X, rtol, np.random.default_rng(random_state))
    check.describes_itself(make_design(), X)
    check.operations(make_design(), X)
    check.refuses_wrong_shapes(make_design(), X)
    check.column_selections()
    check.row_selections()
    check.statistics()
    check.survives_pickling()


class _Check:
    def __init__(self, make_design: MakeDesign, X: FloatArray, rtol: float, rng: np.random.Generator) -> None:
        self.make_design = make_design
        self.X = X
        self.rtol = rtol
        self.rng = rng

    def close(self, found: Any, expected: Any, magnitude: Any, what: str) -> None:
        """Compare with an error bound relative to the sum of absolute values, as rounding errors are."""
        found = np.asarray(found)
        assert found.dtype == np.float64, f"{what} has type {found.dtype}, not float64"
        assert found.shape == np.shape(expected), f"{what}: shape {found.shape}, not {np.shape(expected)}"
        excess = np.abs(found - expected) - self.rtol * np.asarray(magnitude) - 1e-300
        assert np.all(excess <= 0.0), f"{what} differs from NumPy by {np.abs(found - expected).max()}"

    def describes_itself(self, design: Design, X: FloatArray) -> None:
        assert design.shape == X.shape
        assert (design.n_samples, design.n_features) == X.shape
        assert design.dtype in (np.float32, np.float64)
        assert isinstance(design.is_sparse, bool)
        if design.feature_names is not None:
            assert design.feature_names.shape == (X.shape[1],)

    def operations(self, design: Design, X: FloatArray) -> None:
        self.blocks(design, X)
        self.gram(design, X)
        self.cross_gram(design, X)
        self.adjoint_distribution(design, X)
        self.vector_products(design, X)
        if X.shape[1] <= 500:
            self.sandwich(design, X)

    def blocks(self, design: Design, X: FloatArray) -> None:
        whole = design.block(slice(None))
        assert whole.flags.f_contiguous, "a block is not in Fortran order"
        self.close(whole, X, np.abs(X), "block")
        whole[...] = np.nan  # a block belongs to the caller
        for size in (None, 1 + X.shape[1] // 3):
            end = 0
            for columns, block in list(design.iter_blocks(size)):
                assert columns.start == end, "iter_blocks leaves out or repeats columns"
                assert block.flags.f_contiguous, "iter_blocks gives a block that is not in Fortran order"
                self.close(block, X[:, columns], np.abs(X[:, columns]), "iter_blocks")
                end = columns.stop
            assert end == X.shape[1], "iter_blocks does not cover all columns"
        some = self.rng.integers(0, X.shape[1], size=min(4, X.shape[1])) if X.shape[1] else np.arange(0)
        self.close(design.block(some), X[:, some], np.abs(X[:, some]), "block of an index array")

    def gram(self, design: Design, X: FloatArray) -> None:
        size = np.abs(X)
        self.close(design.gram(), X @ X.T, size @ size.T, "gram")
        for name, scale_sq in self.scales(X.shape[1]).items():
            expected = (X * scale_sq) @ X.T
            magnitude = (size * np.abs(scale_sq)) @ size.T
            self.close(design.gram(scale_sq), expected, magnitude, f"gram with {name} scales")

    def scales(self, p: int) -> dict[str, FloatArray]:
        positive = self.rng.uniform(0.1, 2.0, size=p)
        rare = np.where(self.rng.uniform(size=p) < 0.2, positive, 0.0)
        return {"positive": positive, "signed": self.rng.standard_normal(p), "mostly zero": rare}

    def cross_gram(self, design: Design, X: FloatArray) -> None:
        rows = self.rng.integers(0, X.shape[0], size=3) if X.shape[0] else np.arange(0)
        other, Z = design.take_rows(rows), X[rows]
        scale_sq = self.rng.standard_normal(X.shape[1])
        magnitude = np.abs(X) @ np.abs(Z).T
        self.close(design.cross_gram(other), X @ Z.T, magnitude, "cross_gram")
        magnitude = (np.abs(X) * np.abs(scale_sq)) @ np.abs(Z).T
        self.close(design.cross_gram(other, scale_sq), (X * scale_sq) @ Z.T, magnitude, "scaled cross_gram")

    def adjoint_distribution(self, design: Design, X: FloatArray) -> None:
        r"""Compare `gram_adjoint` with NumPy and check :math:`\langle M, G(s)\rangle = \langle s, G^*(M)\rangle`."""
        n, p = X.shape
        M, scale_sq = self.rng.standard_normal((n, n)), self.rng.standard_normal(p)
        size, found = np.abs(X), design.gram_adjoint(M)
        magnitude = np.einsum("ik,ik->k", size, np.abs(M) @ size)
        self.close(found, np.einsum("ik,ik->k", X, M @ X), magnitude, "gram_adjoint")
        left = np.asarray((M * design.gram(scale_sq)).sum())
        self.close(left, scale_sq @ found, np.abs(scale_sq) @ magnitude, "the adjoint law")

    def vector_products(self, design: Design, X: FloatArray) -> None:
        n, p = X.shape
        size = np.abs(X)
        for shape in ((), (3,), (1,)):
            w, V = self.rng.standard_normal((p, *shape)), self.rng.standard_normal((n, *shape))
            self.close(design.dot(w), X @ w, size @ np.abs(w), "dot")
            self.close(design.transpose_dot(V), X.T @ V, size.T @ np.abs(V), "transpose_dot")
            columns = V.reshape(n, *(shape or (1,)))
            largest = np.abs(X.T @ columns).max(axis=1)
            magnitude = (size.T @ np.abs(columns)).max(axis=1)
            rounding = 1e7 if design.dtype == np.float32 else 1.0  # of single over double precision
            self.close(design.largest_products(V), largest, rounding * magnitude, "largest_products")
        whole_numbers = np.arange(p)
        self.close(design.dot(whole_numbers), X @ whole_numbers, size @ whole_numbers, "dot with integers")
        self.close(design.squared_norms(), (X**2).sum(axis=0), (X**2).sum(axis=0), "squared_norms")

    def sandwich(self, design: Design, X: FloatArray) -> None:
        size = np.abs(X)
        for d in (self.rng.uniform(0.1, 2.0, size=X.shape[0]), self.rng.standard_normal(X.shape[0])):
            self.close(design.sandwich(d), (X.T * d) @ X, (size.T * np.abs(d)) @ size, "sandwich")

    def refuses_wrong_shapes(self, design: Design, X: FloatArray) -> None:
        n, p = X.shape
        wrong: list[Callable[[], object]] = [
            lambda: design.gram(np.ones(p + 1)),
            lambda: design.gram_adjoint(np.ones((n, n + 1))),
            lambda: design.dot(np.ones(p + 1)),
            lambda: design.transpose_dot(np.ones(n + 1)),
            lambda: design.sandwich(np.ones(n + 1)),
            lambda: design.column_stats(sample_weight=np.ones(n + 1)),
        ]
        for call in wrong:
            _must_raise(ValueError, call)
        _must_raise(IndexError, lambda: design.take([p]))
        _must_raise(IndexError, lambda: design.take_rows([n]))
        _must_raise(IndexError, lambda: design.take(np.ones(p + 1, dtype=bool)))

    def column_selections(self) -> None:
        p = self.X.shape[1]
        for turn, first in enumerate(self.selections(p)):
            taken = self.make_design().take(first)
            X = self.X[:, first]
            self.names_follow(taken, first)
            self.operations(taken, X)
            second = self.selections(X.shape[1])[turn % 3]  # each kind after some other
            self.operations(taken.take(second), X[:, second])
        empty = self.make_design().take([])
        assert empty.shape == (self.X.shape[0], 0)
        self.operations(empty, self.X[:, :0])
        assert empty.column_stats().mean.shape == (0,), "statistics of no columns"

    def row_selections(self) -> None:
        for turn, first in enumerate(self.selections(self.X.shape[0])):
            taken = self.make_design().take_rows(first)
            self.operations(taken, self.X[first])
            columns = self.selections(self.X.shape[1])[(turn + 1) % 3]
            self.operations(taken.take(columns), self.X[first][:, columns])
        some = np.arange(self.X.shape[0])[::2]
        twice = self.make_design().take_rows(some).take_rows(slice(0, 2))
        self.operations(twice, self.X[some][:2])

    def selections(self, size: int) -> list[Any]:
        """Return ways to select from an axis: slices, repeated positions, a mask."""
        mask = self.rng.uniform(size=size) < 0.5
        positions = self.rng.integers(-size, size, size=min(size, 12))
        return [positions, slice(size // 4, None), mask, slice(None, None, 2), slice(None, None, -1)]

    def names_follow(self, taken: Design, columns: Any) -> None:
        names = self.make_design().feature_names
        if names is not None:
            assert taken.feature_names is not None, "take loses the names of the features"
            assert list(taken.feature_names) == list(names[columns]), "take mixes up names of features"

    def statistics(self) -> None:
        n = self.X.shape[0]
        y: NDArray[Any] = np.asarray(self.rng.integers(0, 3, size=n))
        weights = np.floor(4.0 * self.rng.uniform(size=n))
        weights[0] = 1.0
        for classes in (None, y):
            self.stats_match(self.make_design().column_stats(classes), self.X, classes, np.ones(n))
            weighted = self.make_design().column_stats(classes, sample_weight=0.5 * weights)
            self.stats_match(weighted, self.X, classes, 0.5 * weights)
        repeated = np.repeat(np.arange(n), weights.astype(int))
        duplicated = self.make_design().take_rows(repeated).column_stats(y[repeated])
        self.stats_match(duplicated, self.X, y, weights)
        part = self.make_design().take(slice(0, None, 2)).column_stats(y)
        self.stats_match(part, self.X[:, ::2], y, np.ones(n))

    def stats_match(
        self, stats: ColumnStats, X: FloatArray, y: NDArray[Any] | None, weights: FloatArray
    ) -> None:
        counted = weights > 0.0
        X, weights = X[counted], weights[counted]
        codes = np.zeros(len(X), dtype=int) if y is None else y[counted]
        largest = np.abs(X).max(axis=0)
        self.moments_match(stats.mean, stats.variance, X, weights, largest, "overall")
        for c in range(stats.n_classes):
            members = codes == c
            self.close(stats.weight[c], weights[members].sum(), weights.sum(), "class weight")
            found = stats.class_mean[c], stats.class_variance[c]
            self.moments_match(*found, X[members], weights[members], largest, f"class {c}")
        self.close(stats.minimum, X.min(axis=0), largest, "minimum")
        self.close(stats.maximum, X.max(axis=0), largest, "maximum")

    def moments_match(
        self,
        mean: FloatArray,
        variance: FloatArray,
        X: FloatArray,
        weights: FloatArray,
        largest: FloatArray,
        what: str,
    ) -> None:
        if len(X) == 0:
            assert not np.concatenate([mean, variance]).any(), f"{what}: an empty class has moments"
            return
        expected = np.average(X, axis=0, weights=weights)
        deviations = np.average((X - expected) ** 2, axis=0, weights=weights)
        self.close(mean, expected, largest, f"mean, {what}")
        self.close(variance, deviations, deviations + self.rtol * largest**2, f"variance, {what}")

    def survives_pickling(self) -> None:
        design = self.make_design()
        self.operations(pickle.loads(pickle.dumps(design)), self.X)
        taken = pickle.loads(pickle.dumps(design.take(slice(0, None, 2))))
        self.close(taken.block(slice(None)), self.X[:, ::2], np.abs(self.X[:, ::2]), "a pickled selection")


def _must_raise(expected: type[Exception], call: Callable[[], object]) -> None:
    try:
        call()
    except expected:
        return
    raise AssertionError(
        f"{expected.__name__} expected for an argument of the wrong size, but none was raised"
    )
