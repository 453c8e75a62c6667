"""Drawing and testing a batch of subsets, with one or several workers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from zeronorm._types import FloatArray, Int64Array
from zeronorm.design import Design
from zeronorm.engines.weighting._sampling import MOST_REDRAWS, Draws, Pool, draw_batch
from zeronorm.engines.weighting.learners import Learner
from zeronorm.engines.weighting.learners._base import ScikitLearner, predict_models

# -- Threads that are kept between the steps of a run --
#
# A step takes about a millisecond, so handing over work must take far less: a queue written in C is fast enough,
# a future is not


Work = Callable[[int, int], None]


class Shared:
    """The parts of one batch; every free thread takes the next one."""

    def __init__(self, work: Work, parts: list[tuple[int, int]]) -> None:
        self.work = work
        self.parts: Iterator[tuple[int, int]] = iter(parts)

    def take_parts(self) -> None:
        for first, last in self.parts:
            self.work(first, last)


class Helper:
    """A thread that works on parts of one batch after the other."""

    def __init__(self) -> None:
        self._given: SimpleQueue[Shared | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def give(self, shared: Shared) -> None:
        """Start the thread on the parts of a batch."""
        self._given.put(shared)

    def wait(self) -> None:
        """Wait until its parts are done; an error in them is raised here."""
        error = self._done.get()
        if error is not None:
            raise error

    def end(self) -> None:
        """End the thread."""
        self._given.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (shared := self._given.get()) is not None:
            try:
                shared.take_parts()
            except BaseException as error:  # raised again in the thread that waits
                self._done.put(error)
            else:
                self._done.put(None)


def share(work: Work, parts: list[tuple[int, int]], helpers: list[Helper]) -> None:
    """Do all parts, in this thread and in the helper threads."""
    shared = Shared(work, parts)
    for helper in helpers:
        helper.give(shared)
    try:
        shared.take_parts()
    finally:
        for helper in helpers:
            helper.wait()


# -- The values of the drawn features and samples: in memory, or read for each step --


# Larger data are not copied as a whole: the values of each step are read when they are needed.
LARGEST_COPY_BYTES = 1 << 30


class Source:
    """The features under study, as a pool that compiled code can index.

    Steps touch random features of random samples, so the features are held as one dense copy, one row per
    feature. Where the copy would be too large, ``pool`` has no columns and ``pool_for`` reads a small pool
    for each step. Standardised values are rounded to single precision: their last digits depend on the
    backend of the data, and could change the decision of a learner.
    """

    def __init__(self, design: Design, pool: Pool, *, largest_copy_bytes: int = LARGEST_COPY_BYTES) -> None:
        self.design, self.test_design = design, design
        self.is_held = _bytes_of(design) <= largest_copy_bytes
        if self.is_held:
            columns = _columns_of(design)
            pool = pool._replace(columns=columns, test_columns=columns)
        self.pool = pool

    def tested_on(self, test_design: Design, test_codes: Int64Array) -> Source:
        """The same training samples with separate test samples, in the same units; the training samples are shared."""
        source = copy.copy(self)
        source.test_design = test_design
        source.pool = self.pool._replace(test_codes=np.ascontiguousarray(test_codes, dtype=np.int64))
        if self.is_held:
            source.pool = source.pool._replace(test_columns=_columns_of(test_design))
        return source

    def pool_for(self, draws: Draws) -> tuple[Pool, Draws]:
        """Return a pool with the drawn values, and the draws as positions in it."""
        if self.is_held:
            return self.pool, draws
        features, in_features = _positions(draws.features)
        (rows, train), (test_rows, test) = _positions(draws.train), _positions(draws.test)
        pool = self.pool._replace(
            columns=_columns_of(self.design.take_rows(rows).take(features)),
            codes=self.pool.codes[rows],
            test_columns=_columns_of(self.test_design.take_rows(test_rows).take(features)),
            test_codes=self.pool.test_codes[test_rows],
        )
        return pool, draws._replace(features=in_features, train=train, test=test)


def _dtype_of(design: Design) -> type[np.floating[Any]]:
    return np.float64 if design.affine is None else np.float32


def _bytes_of(design: Design) -> int:
    return design.n_samples * design.n_features * np.dtype(_dtype_of(design)).itemsize


def _columns_of(design: Design) -> NDArray[np.floating[Any]]:
    """All values, one row per feature."""
    columns = np.empty((design.n_features, design.n_samples), dtype=_dtype_of(design))
    for part, block in design.iter_blocks():
        columns[part] = block.T
    return columns


def _positions(drawn: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    values, inverse = np.unique(drawn, return_inverse=True)
    return values, np.ascontiguousarray(inverse.reshape(drawn.shape), dtype=np.int64)


class BatchEvaluator:
    """Draws the subsets of a step and measures their errors; results do not depend on the number of workers.

    Compiled learners run on threads, scikit-learn's on the processes of the active joblib backend.
    """

    def __init__(
        self,
        source: Source,
        learner: Learner,
        *,
        batch_size: int,
        subset_size: int,
        bootstrap_size: int,
        test_size: int | None = None,
        shares_samples: bool = False,
    ) -> None:
        self.source = source
        self.learner = learner
        self.draws = Draws.empty(
            batch_size, subset_size, bootstrap_size, test_size=test_size, shares_samples=shares_samples
        )
        self.errors: FloatArray = np.zeros(batch_size)
        self.last_redrawn = 0
        self._helpers: list[Helper] = []
        self._processes: Any = None

    @contextmanager
    def workers(self, n_jobs: int | None) -> Iterator[None]:
        """Keep ``n_jobs`` workers during a run."""
        n_workers = min(effective_n_jobs(n_jobs), self.errors.size)
        if isinstance(self.learner, ScikitLearner):
            with Parallel(n_jobs=n_workers) as self._processes:
                yield
        elif n_workers > 1:
            self._helpers = [Helper() for _ in range(n_workers - 1)]
            try:
                yield
            finally:
                for helper in self._helpers:
                    helper.end()
                self._helpers = []
        else:
            yield

    def evaluate(self, cumulative: FloatArray, seed: int, step: int) -> FloatArray:
        """Errors of the subsets drawn in one step from the distribution with these cumulative weights."""
        whole, needs_two = self.source.pool, self.learner.needs_two_classes
        word = np.uint64(seed)

        def draw(first: int, last: int) -> None:
            draw_batch(
                cumulative, whole.codes, whole.test_codes, word, step, first, last, needs_two, self.draws
            )

        if isinstance(self.learner, ScikitLearner) or not self.source.is_held:
            draw(0, self.errors.size)
            self._measure()
        else:
            learner, draws = self.learner, self.draws

            def draw_and_measure(first: int, last: int) -> None:
                draw(first, last)
                learner.errors(whole, draws, first, last, self.errors)

            self._share(draw_and_measure)
        self._count_redraws()
        return self.errors

    def evaluate_given(self, subsets: Int64Array, seed: int, step: int) -> FloatArray:
        """Errors of one batch of given subsets (features ascending), on bootstrap samples of this step."""
        whole = self.source.pool
        n_subsets, needs_two = self.errors.size, self.learner.needs_two_classes
        alone = np.ones(1)
        draw_batch(
            alone, whole.codes, whole.test_codes, np.uint64(seed), step, 0, n_subsets, needs_two, self.draws
        )
        self.draws.features[:] = subsets
        self._measure()
        self._count_redraws()
        return self.errors

    def _measure(self) -> None:
        pool, draws = self.source.pool_for(self.draws)
        learner = self.learner
        if isinstance(learner, ScikitLearner):
            tasks = (delayed(predict_models)(*learner.task(pool, draws, b)) for b in range(self.errors.size))
            for b, predicted in enumerate(self._processes(tasks)):
                self.errors[b] = learner.error(pool, draws, b, predicted)
        else:
            self._share(lambda first, last: learner.errors(pool, draws, first, last, self.errors))

    def _share(self, work: Callable[[int, int], None]) -> None:
        """Run ``work`` on consecutive parts of the batch; each free worker takes the next part."""
        if not self._helpers:
            work(0, self.errors.size)
            return
        share(work, uneven_parts(self.errors.size, 1 + len(self._helpers)), self._helpers)

    def _count_redraws(self) -> None:
        redraws = self.draws.redraws
        self.last_redrawn = 0
        if not redraws.any():
            return
        if redraws.min() < 0:
            raise ValueError(
                f"No training set of {self.draws.train.shape[1]} samples with two classes was found in "
                f"{MOST_REDRAWS} draws: one class is very rare. Raise 'bootstrap_size', or use a base learner "
                "that accepts training sets of one class (knn, cart, lda, centroid)."
            )
        self.last_redrawn = int(redraws.sum())


def uneven_parts(size: int, n_workers: int) -> list[tuple[int, int]]:
    """Consecutive ranges that cover ``size``: a large one for each worker, then small ones for the fastest.

    There are few parts, since entering a compiled loop takes as long as testing a subset.
    """
    large, small = max(1, 7 * size // (8 * n_workers)), max(1, size // (8 * n_workers))
    ends = [(i + 1) * large for i in range(n_workers)]
    ends += range(ends[-1] + small, size + small, small)
    parts, first = [], 0
    for end in ends:
        if first < size:
            parts.append((first, min(end, size)))
        first = end
    return parts
