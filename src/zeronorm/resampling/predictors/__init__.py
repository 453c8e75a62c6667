"""Predictors that score a subset of the features: pairwise SVM and ridge regression, on standardised columns."""
