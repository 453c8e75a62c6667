"""Sparsity terms: a penalty on the weights of a linear model."""
