"""Reproductions of published experiments: each is declared as a table, run with a journal, and reported on a page."""
