"""Nearest neighbours of each sample in its own and in other classes, and their differences.

Used by Relief, GramSchmidtRelief and GFlip.
"""
