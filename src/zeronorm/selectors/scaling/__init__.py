"""Selectors that learn one scaling factor for each feature."""
