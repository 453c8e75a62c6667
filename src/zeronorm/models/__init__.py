"""Predictors that do not select input features."""

from zeronorm._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
