"""Find the few features that matter in very wide data, and prove it honestly."""

from zeronorm._lazy import lazy_exports

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_exports(__name__)
