"""The work of an elimination, by which callers choose its settings and the samples they give it."""

from __future__ import annotations

from zeronorm.selection._problem import Problem


def work_of_elimination(problem: Problem) -> float:
    """Approximate number of multiplications in an elimination of one feature at a time."""
    n, p = problem.n_samples, problem.n_features
    return float(n * p * min(n, p) * problem.target.columns().shape[1])
