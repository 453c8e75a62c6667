"""Transformers that make features: spectra and images."""

from zeronorm._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
