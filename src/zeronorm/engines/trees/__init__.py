"""Decision trees as arrays: growth by the number of errors and by information, and pruning.

Used by TreeSelector.
"""
