"""Reproductions of published experiments: declared as tables, run with a journal, told on a result page."""
