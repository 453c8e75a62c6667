"""Scaling factors: each feature has a weight in [0, 1] that follows a gradient."""
