"""Scores that look at the data without a learner."""
