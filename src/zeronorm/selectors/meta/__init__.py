"""Selectors on top of selectors: choice of size, error control."""
