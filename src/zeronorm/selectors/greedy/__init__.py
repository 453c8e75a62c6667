"""Greedy search: features enter or leave one at a time or in groups."""
