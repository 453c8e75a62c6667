"""Compiled classifiers for many small fits, and a bridge to scikit-learn's classifiers."""
