"""Scores of known rankings: the first features of each, for all sizes, on the test samples of all folds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from zeronorm._types import FloatArray
from zeronorm.resampling._folds import FoldPlan, FoldTask, run_tasks, smallest_size
from zeronorm.resampling._splits import Split
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Progress

Paths = dict[str, SelectionPath]  # by name of the ranking


class KnownPath(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit returns a known path."""

    def __init__(self, path: SelectionPath) -> None:
        self.path = path

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: Any, y: Any) -> Self:
        """Set ``path_`` to the known path."""
        self.path_ = self.path
        return self


def score_paths(
    plan: FoldPlan, ranked: list[Paths], splits: list[Split], n_jobs: int | None, progress: Progress
) -> tuple[dict[str, FloatArray], dict[str, list[Any]]]:
    """Scores (greater is better) and subsets of all rankings: one row per fold, one column per size."""
    metric = plan.metrics[0]
    tasks, scored = [], []
    for split, paths in zip(splits, ranked, strict=True):
        seen: dict[bytes, tuple[str, int]] = {}
        scorers = first_to_name(paths, plan.sizes, seen)
        scored.append(scorers)
        covariates = [path.covariates for path in paths.values()]
        columns = np.unique(np.concatenate([np.frombuffer(b"".join(seen), dtype=np.intp), *covariates]))
        for name, path in paths.items():
            mine = tuple(size for at, size in enumerate(plan.sizes) if scorers[name][at] == (name, at))
            tasks.append(FoldTask("", KnownPath(path), [], split, f"{name}\n{split.index}", mine, columns))
    tasks = [task for task in tasks if task.sizes]
    results = run_tasks(plan, tasks, n_jobs=n_jobs, progress=progress, description="Cross-validating")
    found = {
        (task.key, plan.sizes.index(size)): result
        for task in tasks
        for size, result in zip(task.sizes or (), results[task.key]["sizes"], strict=True)
    }
    scores, selected = {}, {}
    for name in ranked[0]:
        rows = [
            [found[f"{scorer}\n{split.index}", at] for scorer, at in scorers[name]]
            for split, scorers in zip(splits, scored, strict=True)
        ]
        scores[name] = np.asarray(
            [[metric.score(result["metrics"][metric.name]) for result in row] for row in rows],
            dtype=np.float64,
        )
        selected[name] = [[np.asarray(result["selected"], dtype=np.intp) for result in row] for row in rows]
    return scores, selected


def first_to_name(
    paths: Paths,
    sizes: tuple[int | None, ...],
    seen: dict[bytes, tuple[str, int]] | None = None,
) -> dict[str, list[tuple[str, int]]]:
    """For each ranking and size, the ranking and the index of the size that selected the same features first.

    ``seen`` is filled with all subsets.
    """
    seen = {} if seen is None else seen
    return {
        name: [
            seen.setdefault(path.support(max(int(size or 0), smallest_size(path))).tobytes(), (name, at))
            for at, size in enumerate(sizes)
        ]
        for name, path in paths.items()
    }
