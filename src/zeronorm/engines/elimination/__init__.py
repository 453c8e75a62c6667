"""Train, remove the features that matter least, train again from where the last model ended.

Serves RFE, BoundElimination, PerceptronRFE, OptimalBrainDamage, SensitivityElimination and RadiusMarginScaling.
"""
