"""Backward elimination: train, remove the least important features, train again from the last solution.

Used by RFE, BoundElimination, PerceptronRFE, OptimalBrainDamage, SensitivityElimination and RadiusMarginScaling.
"""
