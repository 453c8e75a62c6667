"""The error of a whole procedure against the number of samples, and what more samples would change.

``subsets`` draws nested training sets, ``power_law`` fits the inverse power law, ``curve`` has the function and its
result.
"""
