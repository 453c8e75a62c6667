"""Stochastic search: a probability distribution over features is learned."""
