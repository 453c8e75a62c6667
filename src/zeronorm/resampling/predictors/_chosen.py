"""The predictor that a selector has chosen together with its features."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from zeronorm.resampling._fitted_path import chosen_predictor


class ChosenPredictor(BaseEstimator):  # type: ignore[misc]
    """The predictor that a fitted selector has chosen (``predictor_``), or a default for selectors that choose none.

    Parameters
    ----------
    default : unfitted predictor.
    """

    def __init__(self, default: Any) -> None:
        self.default = default

    def for_selector(self, selector: Any) -> Any:
        """The unfitted predictor for the features of a fitted selector."""
        own = chosen_predictor(selector)
        return self.default if own is None else own
