"""Find the few features that matter in very wide data, and prove it honestly."""

__version__ = "0.1.0"
