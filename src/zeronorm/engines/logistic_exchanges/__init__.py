"""Best subsets for logistic regression by exchanging features in and out.

Serves ZeroNormLogistic; the models also serve LogisticLasso.
"""
