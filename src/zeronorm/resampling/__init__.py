"""Splits, seeds, the fold loop and the journal; knows anything with fit, no selector by name."""
