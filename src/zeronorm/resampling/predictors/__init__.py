"""Predictors that score a subset of the features: default, pairwise SVM, ridge; all on standardised columns."""
