"""Iterations and estimates that several methods share; each names the methods it serves."""
