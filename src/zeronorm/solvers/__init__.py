"""Optimisation, ignorant of features: support vector machines, linear programs, projections."""

from zeronorm.solvers.warmup import warmup

__all__ = ["warmup"]
