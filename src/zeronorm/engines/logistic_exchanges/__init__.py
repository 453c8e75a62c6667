"""Best subsets for logistic regression by exchanging features in and out.

Serves ZeroNormLogistic; the machines also serve LogisticLasso.
"""
