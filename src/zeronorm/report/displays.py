"""Matplotlib figures from the same figure data as the report."""
