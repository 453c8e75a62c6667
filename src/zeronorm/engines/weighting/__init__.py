"""Probability distributions over features, learned from the errors of classifiers on random subsets.

Used by OptimalFeatureWeighting and OFWClassifier.
"""
