"""Estimates of mutual information from nearest neighbours."""
