"""A classification tree grown on a bootstrap sample."""

from __future__ import annotations

from typing import Any

from zeronorm._jit import kernel
from zeronorm.selectors.stochastic.learners.base import CompiledLearner, check_number
from zeronorm.selectors.stochastic.learners.cart_kernels import grow_tree, tree_predict
from zeronorm.selectors.stochastic.pool import FloatArray, Pool, labels_of, machine_cost
from zeronorm.selectors.stochastic.sampling import Draws, distinct, gather

UNLIMITED_DEPTH = 1 << 30


class SubsetCART(CompiledLearner):
    """Binary tree grown with the Gini index and not pruned.

    Among equally good splits the lower feature, then the lower threshold wins.

    Parameters
    ----------
    max_depth : deepest level, or None.
    min_samples_leaf : fewest samples on each side of a split.
    """

    def __init__(self, max_depth: int | None = None, *, min_samples_leaf: int = 1) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf

    def check(self, bootstrap_size: int) -> None:
        if self.max_depth is not None:
            check_number(self, "max_depth", 1)
        check_number(self, "min_samples_leaf", 1)

    def errors(self, pool: Pool, draws: Draws, first: int, last: int, out: FloatArray) -> None:
        depth = UNLIMITED_DEPTH if self.max_depth is None else int(self.max_depth)
        cart_errors(pool, draws, (depth, int(self.min_samples_leaf)), first, last, out)

    def as_estimator(self) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf)


@kernel
def cart_errors(
    pool: Pool, draws: Draws, settings: tuple[int, int], first: int, last: int, out: FloatArray
) -> None:
    """Errors of a range of subsets."""
    max_depth, min_leaf = settings
    n_machines = pool.coding.shape[0]
    for b in range(first, last):
        features = distinct(draws.features[b])
        train = gather(pool.columns, features, draws.train[b])
        test = gather(pool.test_columns, features, draws.test[b])
        total = 0.0
        for m in range(n_machines):
            labels = labels_of(pool.coding[m], pool.codes, draws.train[b])
            tree = grow_tree(train, labels, pool.n_labels, max_depth, min_leaf)
            total += machine_cost(pool, m, draws.test[b], tree_predict(tree, test))
        out[b] = total / n_machines
