"""Probabilities over features, learned from the errors of classifiers on drawn subsets.

Serves OptimalFeatureWeighting and OFWClassifier.
"""
