"""The functions ``select`` and ``compare``, for Python and for the command line.

``run`` holds the two functions, ``options`` their options and ``kinds`` the types of option. ``job`` does the work:
``inputs`` turns data into a table, ``checks`` warns of suspicious data, ``procedures`` builds selectors from names,
``backends`` chooses where they are fitted, ``training`` fits them in the folds, ``measured`` computes error, stability
and warnings from the records, ``chance`` adds the baseline and the permutation test, ``features`` and ``models``
describe the final set, and ``result`` draws and writes everything.
"""
