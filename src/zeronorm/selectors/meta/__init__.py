"""Selectors that wrap other selectors: choice of method and size, consensus, error control."""
