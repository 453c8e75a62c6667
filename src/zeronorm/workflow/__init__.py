"""The functions ``select``, ``compare``, ``test_panel`` and ``apply``, for Python and for the command line.

``run`` holds the functions, ``options`` their options and ``kinds`` the types of option. ``job`` does the work:
``inputs`` turns data into a table, ``checks`` warns of suspicious data, ``procedures`` builds selectors from names,
``backends`` chooses where they are fitted, ``training`` fits them in the folds, ``measured`` computes error, stability
and warnings from the records, ``chance`` adds the baseline and the permutation test, ``features`` and ``models``
describe the final set, and ``result`` draws and writes everything. ``held_out`` and ``moments`` complete the saved
model; ``cohort`` applies it to new samples, with ``new_features`` and ``outcomes`` for what the new table lacks or
writes otherwise.
"""
