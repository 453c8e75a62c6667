"""zeronorm demo and zeronorm warmup: a first run, and compilation in advance"""

from __future__ import annotations

import importlib
import time
import warnings
from pathlib import Path
from typing import Any

import typer

from zeronorm.cli import options as o

DEMO_FEATURES = 10
DEMO_PERMUTATIONS = 39  # enough for p = 0.025, and done in seconds


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("demo", epilog=o.examples("zeronorm demo --out demo-report"))(demo)
    app.command("warmup", epilog=o.examples("zeronorm warmup"))(warmup)


def demo(
    context: typer.Context,
    out: o.Out = Path("demo-report"),
    jobs: o.Jobs = 0,
    seed: o.Seed = 0,
    force: o.Force = False,
    quiet: o.Quiet = False,
) -> None:
    """Select ten genes that tell two kinds of blood cells apart, from data that come with this package.

    The data: 122 T cells of a healthy donor, cytotoxic or regulatory, with the expression of 765 genes.
    """
    from zeronorm.cli.printing import print_selection, shows_progress
    from zeronorm.datasets import load_dataset
    from zeronorm.workflow._job import run_job

    arguments = {
        "data": load_dataset("t-cells"),
        "method": "zeronorm-svm",  # quicker than the default, which compares methods
        "features": DEMO_FEATURES,
        "permutations": DEMO_PERMUTATIONS,
        "random_state": seed,
        "n_jobs": jobs or None,
        "out": out,
        "force": force,
        "verbose": shows_progress(quiet, False),
    }
    result = run_job("select", arguments, context.obj)
    if not quiet:
        print_selection(result, out)


def warmup(as_json: o.AsJson = False) -> None:
    """Compile the numerical loops of all methods now, so that later runs start faster."""
    from zeronorm.cli.printing import print_json, print_text

    seconds, problems = warm_everything()
    if as_json:
        print_json({"seconds": seconds, "problems": problems})
        return
    for problem in problems:
        print_text(f"note: {problem}")
    print_text(f"Compiled in {seconds:.1f} s.")


# -- Compile every loop by calling it: the list of the solvers, then each method on a tiny problem --


def warm_everything() -> tuple[float, list[str]]:
    """Compile all loops; return the seconds it took and a message for each method that failed."""
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
            except Exception as error:  # the loops of the other methods are still compiled
                problems.append(f"{info.name}: {type(error).__name__}: {' '.join(str(error).split())}")
    return time.perf_counter() - start, problems


def _instances() -> list[tuple[Any, Any]]:
    from zeronorm.registry import all_methods

    return [(info, instance) for info in all_methods("selector") for instance in info.instances()]


def _tiny_problem(info: Any, instance: Any) -> tuple[Any, Any]:
    import numpy as np

    from zeronorm.selection.target import KINDS, TASKS

    rng = np.random.default_rng(0)
    X = rng.normal(size=(16, 6))
    task = getattr(instance, "task", None) or KINDS[info.tasks[0]].task
    numbers = X[:, 0] + rng.normal(size=16)
    return X, np.arange(16) % 2 if TASKS[task].has_classes else TASKS[task].prepared(np.abs(numbers))
