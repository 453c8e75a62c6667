"""Lower bounds on the objective of every subset of k features, and the search for a subset that attains them.

``_bounds`` derives the bound, ``_relaxation`` maximises it, ``_branching`` closes the rest of the gap.
"""
