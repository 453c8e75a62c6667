"""Names of methods to selectors, through the registry only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from zeronorm.workflow.errors import UsageProblem

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.registry import MethodInfo

# Preferred methods when the user names none: the first that serves the task.
PREFERRED = ("zeronorm-svm", "rfe", "fisher", "lasso")
# Unlike methods that `--method auto` compares.
ROSTER = ("fisher", "rfe", "lasso", "l1-svm", "zeronorm-svm")
# Families whose methods look at each feature once or solve one convex problem.
FAST_FAMILIES = ("filters", "sparsity")
# Above this many cells, elimination removes a tenth of the features at a time while many remain.
LARGE_TABLE = 2_000_000


def task_kind(table: Table) -> str:
    """The task in the registry's words."""
    if table.task == "regression":
        return "regression"
    return "binary" if len(table.class_counts) == 2 else "multiclass"


def usable_methods(table: Table) -> dict[str, MethodInfo]:
    """Selectors that serve the task of the table, by name."""
    from zeronorm.registry import all_methods

    return {info.name: info for info in all_methods("selector") if task_kind(table) in info.tasks}


def default_method(table: Table) -> str:
    """The method used when none is named."""
    usable = usable_methods(table)
    return next(name for name in (*PREFERRED, *usable) if name in usable)


def roster(table: Table) -> list[str]:
    """The methods compared by ``--method auto``."""
    usable = usable_methods(table)
    return [name for name in ROSTER if name in usable]


def named_methods(text: str, table: Table) -> list[str]:
    """The methods of ``--methods``: a comma-separated list, or "all-fast"."""
    usable = usable_methods(table)
    if text == "all-fast":
        return [name for name, info in usable.items() if info.family in FAST_FAMILIES]
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageProblem("--methods is empty. Name methods, such as fisher,rfe, or all-fast.")
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise UsageProblem(f"--methods names {sorted(repeated)[0]!r} twice. Name each method once.")
    return names


def build_selector(
    name: str,
    table: Table,
    settings: dict[str, Any],
    parameters: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
) -> Any:
    """A selector set up for the table.

    ``settings`` are offered to every method and used where it has the parameter; those in ``required`` and
    the user's own ``parameters``, such as "C=10", must fit.
    """
    from zeronorm.registry import get_method

    info = get_method(name)
    if info.kind != "selector":
        raise UsageProblem(
            f"{name!r} is a {info.kind}, not a selector. `zeronorm methods` lists the selectors."
        )
    if task_kind(table) not in info.tasks:
        raise UsageProblem(
            f"The method {name!r} serves {', '.join(info.tasks)}, but the task is {task_kind(table)}. "
            f"Use one of {', '.join(list(usable_methods(table))[:8])}."
        )
    selector = info.cls()
    known = selector.get_params(deep=False)
    wanted = {key: value for key, value in settings.items() if value is not None}
    lacking = [key for key in required if key in wanted and key not in known]
    if lacking:
        raise UsageProblem(
            f"The method {name!r} has no {lacking[0]}, so this option does not apply. Choose another method."
        )
    if "step" in known and table.n_samples * table.n_features > LARGE_TABLE:
        wanted.setdefault("step", 0.1)
    wanted |= parse_parameters(parameters, known, name)
    return selector.set_params(**{key: value for key, value in wanted.items() if key in known})


def parse_parameters(parameters: tuple[str, ...], known: dict[str, Any], name: str) -> dict[str, Any]:
    """Values of ``--param NAME=VALUE``: numbers, True, False, None, or text."""
    parsed: dict[str, Any] = {}
    for item in parameters:
        key, sign, text = item.partition("=")
        if not sign or not key:
            raise UsageProblem(f"--param takes NAME=VALUE, such as C=10. Got {item!r} instead.")
        if key not in known:
            raise UsageProblem(
                f"The method {name!r} has no parameter {key!r}. It has {', '.join(sorted(known))}."
            )
        try:
            parsed[key] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            parsed[key] = text
    return parsed
