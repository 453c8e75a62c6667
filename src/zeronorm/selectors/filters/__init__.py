"""Filters: scores computed from the data without training a model."""
