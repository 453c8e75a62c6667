"""Optimisation problems that the methods share: support vector machines, linear programs, projections."""

from __future__ import annotations


def warmup() -> None:
    """Call every compiled loop of the solvers once, with the array types of real use.

    The compiled code is cached on disk where a folder is writable, and later processes only load it.
    """
    import numpy as np

    from zeronorm.solvers._geometry import project_in_place
    from zeronorm.solvers.svm._dual import solve_svm_dual
    from zeronorm.solvers.svm._smo import refresh

    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    solution = solve_svm_dual(K, [1, -1])
    problem = solution.problem
    refresh(K, problem.ridge, problem.sample, problem.sign, solution.alpha, solution.f)
    project_in_place(np.array([0.2, 1.4]))
