"""Write the picture of the page about proofs: ``python docs/proof_picture.py``, about half a minute."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from zeronorm import BestSubset, optimality_gap

N_SAMPLES, N_FEATURES, N_EFFECTS = 300, 1000, 10
FACTORS = (10.0, 20.0, 40.0)  # C times the number of samples


def planted() -> tuple[np.ndarray, np.ndarray]:
    """Columns with correlation 0.5 to the power of their distance; ten equal effects, noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, N_FEATURES))
    for j in range(1, N_FEATURES):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    signal = X[:, :: N_FEATURES // N_EFFECTS].sum(axis=1)
    return X, signal + rng.normal(size=N_SAMPLES) * signal.std() / np.sqrt(5.0)


def main() -> None:
    X, y = planted()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2))
    first = np.flatnonzero(np.arange(N_FEATURES) % (N_FEATURES // N_EFFECTS) == 0)
    settings = {"task": "regression", "loss": "squared_error", "C": FACTORS[-1] / N_SAMPLES}
    for label, largest in (("no bound of the weights", None), ("weights of at most 1.5", 1.5)):
        found = optimality_gap(
            X, y, first, max_weight=largest, time_limit=np.inf, max_nodes=400, gap_tol=0.0, **settings
        )
        _, bounds, _objectives = zip(*found.history, strict=True)
        left.plot(np.array(bounds) / found.objective, label=label)
    left.axhline(1.0, color="black", linewidth=0.8)
    left.set(
        xlabel="nodes of branch and bound", ylabel="bound / objective of the best subset", ylim=(None, 1.02)
    )
    left.legend()
    for factor in FACTORS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            best = BestSubset(
                N_EFFECTS, task="regression", C=factor / N_SAMPLES, max_nodes=50, time_limit=600.0
            ).fit(X, y)
        gaps = [100 * found.gap for found in best.certificates_.values()]
        right.plot(list(best.certificates_), gaps, marker="o", label=f"C = {factor:g} / n")
    right.set(xlabel="features", ylabel="gap, %")
    right.set_ylim(bottom=0)
    right.legend()
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "images" / "proof.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
