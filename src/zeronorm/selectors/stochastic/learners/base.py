"""What a learner inside the loop must offer."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from zeronorm.selectors.stochastic.pool import FloatArray, Pool
from zeronorm.selectors.stochastic.sampling import Draws


class CompiledLearner(BaseEstimator):
    """A classifier that is trained and tested on whole batches of subsets in compiled code.

    ``is_binary`` learners see more than two classes as one-against-all problems; learners that
    ``need_two_classes`` never get a training sample of one class.
    """

    is_binary: ClassVar[bool] = False
    needs_two_classes: ClassVar[bool] = False

    def check(self, bootstrap_size: int) -> None:
        """Refuse settings that cannot work with training samples of the given size."""

    def errors(self, pool: Pool, draws: Draws, first: int, last: int, out: FloatArray) -> None:
        """Write the error of the subsets ``first`` to ``last`` of a batch into ``out``."""
        raise NotImplementedError

    def as_estimator(self) -> Any:
        """The scikit-learn classifier with the same definition, for full-size training sets."""
        raise NotImplementedError


def check_number(
    learner: Any, name: str, low: float, *, strict: bool = False, high: float | None = None
) -> None:
    """Refuse a parameter that is not a number in its range."""
    value = getattr(learner, name)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and (value > low if strict else value >= low) and (high is None or value <= high):
        return
    bound = f"{'above' if strict else 'at least'} {low:g}" + (
        "" if high is None else f" and at most {high:g}"
    )
    raise ValueError(
        f"The '{name}' parameter of {type(learner).__name__} must be a number {bound}. Got {value!r} instead."
    )
