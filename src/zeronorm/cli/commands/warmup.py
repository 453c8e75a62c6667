"""zeronorm warmup"""

from __future__ import annotations

import importlib
import time
import warnings
from typing import Any

import typer

from zeronorm.cli import options as o


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("warmup", epilog="Example: zeronorm warmup")(warmup)


def warmup(as_json: o.AsJson = False) -> None:
    """Compile all loops once, so that later runs start at full speed."""
    from zeronorm.cli.commands.warmup import warm_everything
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
