"""Checks for selectors and backends of this package and of other packages."""

from zeronorm.testing._design_checks import check_design
from zeronorm.testing._selector_checks import check_selector, selector_checks

__all__ = ["check_design", "check_selector", "selector_checks"]
