"""zeronorm demo and zeronorm warmup: the first minutes on a new machine"""

from __future__ import annotations

import importlib
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zeronorm.cli import options as o

if TYPE_CHECKING:
    from zeronorm.datasets import Table

N_PROBES = 170
EVERY = 3  # fewer samples than columns, as in the data this package is for, and done in seconds


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("demo", epilog=o.examples("zeronorm demo --out demo-report"))(demo)
    app.command("warmup", epilog=o.examples("zeronorm warmup"))(warmup)


def demo(
    out: o.Out = Path("demo-report"),
    jobs: o.Jobs = 0,
    seed: o.Seed = 0,
    force: o.Force = False,
    quiet: o.Quiet = False,
) -> None:
    """Select features from a small data set that comes with scikit-learn.

    The data: 190 breast tumours (every third of the file) with 30 measurements, and 170 shuffled copies of columns,
    which cannot help to predict the diagnosis.
    """
    from zeronorm.cli.printing import print_selection, shows_progress
    from zeronorm.workflow import run

    result = run.select(
        demo_table(seed),
        method="zeronorm-svm",  # quicker than the default, which compares methods
        random_state=seed,
        n_jobs=jobs or None,
        out=out,
        force=force,
        verbose=shows_progress(quiet, False),
    )
    if not quiet:
        print_selection(result, out)


def demo_table(seed: int) -> Table:
    """Breast tumours with probe columns appended."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    from zeronorm.datasets import TableOptions, append_probes, build_table
    from zeronorm.datasets.raw import RawTable

    data = load_breast_cancer()
    rows = slice(None, None, EVERY)
    X = append_probes(data.data[rows], N_PROBES, random_state=seed)
    names = [*map(str, data.feature_names), *(f"probe {i + 1}" for i in range(N_PROBES))]
    labels = np.asarray(data.target_names)[data.target[rows]]
    raw = RawTable.from_matrix(X, names, targets={"diagnosis": labels}, default_target="diagnosis")
    source = (
        f"every third sample of Breast Cancer Wisconsin (Diagnostic), with {N_PROBES} shuffled columns added"
    )
    return build_table(raw, TableOptions(), source=source)


def warmup(as_json: o.AsJson = False) -> None:
    """Compile the numerical loops of all methods now, so that later runs start faster."""
    from zeronorm.cli.printing import print_json, say

    seconds, problems = warm_everything()
    if as_json:
        print_json({"seconds": seconds, "problems": problems})
        return
    for problem in problems:
        say(f"note: {problem}")
    say(f"Compiled in {seconds:.1f} s.")


# -- Compile every loop by using it: the solvers' own list, then each method on a tiny problem --


def warm_everything() -> tuple[float, list[str]]:
    """Seconds it took, and methods that could not be tried."""
    start = time.perf_counter()
    solvers = importlib.import_module("zeronorm.solvers")
    if hasattr(solvers, "warmup"):
        solvers.warmup()
    problems = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info, instance in _instances():
            try:
                instance.fit(*_tiny_problem(info, instance))
            except Exception as error:  # a method that fails here must not keep the others cold
                problems.append(f"{info.name}: {type(error).__name__}: {' '.join(str(error).split())}")
    return time.perf_counter() - start, problems


def _instances() -> list[tuple[Any, Any]]:
    from zeronorm.registry import all_methods

    return [(info, instance) for info in all_methods("selector") for instance in info.instances()]


def _tiny_problem(info: Any, instance: Any) -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(16, 6))
    is_regression = getattr(instance, "task", None) == "regression" or info.tasks == ("regression",)
    return X, (X[:, 0] + rng.normal(size=16) if is_regression else np.arange(16) % 2)
