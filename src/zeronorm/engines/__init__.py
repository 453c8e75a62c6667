"""Iterations and estimates that several methods share; the docstring of each module names these methods."""
