"""Sensitivity of a trained model to the removal or perturbation of a feature.

Used by SensitivityElimination and OptimalBrainDamage.
"""
