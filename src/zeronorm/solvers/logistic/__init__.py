"""Logistic regression: on a Gram matrix, and with an ℓ1 penalty."""
