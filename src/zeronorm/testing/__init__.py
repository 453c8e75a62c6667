"""Contract suites that are shipped with the package, for our own backends and methods and for yours."""

from zeronorm.testing._design_checks import check_design
from zeronorm.testing._selector_checks import check_selector, selector_checks

__all__ = ["check_design", "check_selector", "selector_checks"]
