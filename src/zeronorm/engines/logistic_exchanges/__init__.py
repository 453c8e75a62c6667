"""Best-subset selection for logistic regression by exchanging features.

Used by ZeroNormLogistic; LogisticLasso uses its models.
"""
