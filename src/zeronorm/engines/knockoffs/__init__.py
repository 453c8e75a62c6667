"""Knockoffs: the model of the columns, the draws, statistics of features against their knockoffs, and the filter.

Used by KnockoffSelector.
"""
