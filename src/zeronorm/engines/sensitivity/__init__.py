"""How much a trained model changes when a feature is removed or blurred.

Serves SensitivityElimination and OptimalBrainDamage.
"""
