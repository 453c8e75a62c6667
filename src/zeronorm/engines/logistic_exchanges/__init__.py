"""Best-subset selection for logistic regression and Cox models by exchanging features.

Used by ZeroNormLogistic; LogisticLasso uses its models.
"""
