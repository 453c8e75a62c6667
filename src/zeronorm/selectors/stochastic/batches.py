"""Drawing and testing a batch of subsets, on one worker or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from zeronorm.selectors.stochastic.helpers import Helper, share
from zeronorm.selectors.stochastic.learners.resolve import Learner
from zeronorm.selectors.stochastic.learners.scikit import ScikitLearner, predict_machines
from zeronorm.selectors.stochastic.pool import FloatArray, IntArray
from zeronorm.selectors.stochastic.sampling import MOST_REDRAWS, Draws, draw_batch
from zeronorm.selectors.stochastic.source import Source


class BatchEvaluator:
    """Draws the subsets of a step and measures their errors; the same numbers for any number of workers.

    Compiled learners run on threads, scikit-learn's on the processes of the active joblib backend.
    """

    def __init__(
        self, source: Source, learner: Learner, *, batch_size: int, subset_size: int, bootstrap_size: int
    ) -> None:
        self.source = source
        self.learner = learner
        self.draws = Draws.empty(batch_size, subset_size, bootstrap_size)
        self.errors: FloatArray = np.zeros(batch_size)
        self.last_redrawn = 0
        self._helpers: list[Helper] = []
        self._processes: Any = None

    @contextmanager
    def workers(self, n_jobs: int | None) -> Iterator[None]:
        """Keep ``n_jobs`` workers alive while a run lasts."""
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
        """Errors of the subsets drawn in one step from the law with these cumulative weights."""
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

    def evaluate_given(self, subsets: IntArray, seed: int, step: int) -> FloatArray:
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
            tasks = (
                delayed(predict_machines)(*learner.task(pool, draws, b)) for b in range(self.errors.size)
            )
            for b, predicted in enumerate(self._processes(tasks)):
                self.errors[b] = learner.error(pool, draws, b, predicted)
        else:
            self._share(lambda first, last: learner.errors(pool, draws, first, last, self.errors))

    def _share(self, work: Callable[[int, int], None]) -> None:
        """Run ``work`` on consecutive parts of the batch; whoever is free takes the next part."""
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
                f"No training sample of {self.draws.train.shape[1]} with two classes was found in "
                f"{MOST_REDRAWS} draws: one class is very rare. Raise 'bootstrap_size', or use a base learner "
                "that takes samples of one class (knn, cart, lda, centroid)."
            )
        self.last_redrawn = int(redraws.sum())


def uneven_parts(size: int, n_workers: int) -> list[tuple[int, int]]:
    """Consecutive ranges that cover ``size``: a large one for each worker, then small ones for who is ready first.

    Few parts, since entering a compiled loop costs as much as testing a subset.
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
