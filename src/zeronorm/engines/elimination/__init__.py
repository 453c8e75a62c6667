"""Train, remove the features that matter least, train again from where the last machine ended.

Serves RFE, BoundElimination, PerceptronRFE, OptimalBrainDamage, SensitivityElimination and RadiusMarginScaling.
"""
