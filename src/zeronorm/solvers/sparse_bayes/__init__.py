"""Sparse Bayesian learning: type-II maximum likelihood."""
