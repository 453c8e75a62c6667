"""Features that can stand in for selected ones.

``conditional`` has the statistics of one column and its candidates, ``tests`` applies them to a selection, ``swaps``
measures the error with one feature in place of another, ``answers`` holds the result, ``substitutes`` is the function.
"""
