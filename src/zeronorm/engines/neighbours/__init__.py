"""Nearest samples of the same and of other classes, and the differences to them.

Serves Relief, GramSchmidtRelief and GFlip.
"""
