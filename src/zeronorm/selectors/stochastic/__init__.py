"""Selectors that learn a probability distribution over features by stochastic search."""
