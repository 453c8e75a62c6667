"""Optimisation, ignorant of features: support vector machines, linear programs, projections."""
