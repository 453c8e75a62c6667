"""zeronorm methods and zeronorm datasets: what there is to choose from"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from zeronorm.cli import options as o

if TYPE_CHECKING:
    from zeronorm.registry import MethodInfo

# Parameters of a method that have an option of their own, or that can be set in Python only.
NOT_WITH_PARAM = (
    *("n_features_to_select", "task", "feature_groups", "always_keep", "random_state"),
    *("estimator", "importance_getter", "kernel_pieces", "n_jobs", "verbose"),
)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("methods", epilog=o.examples("zeronorm methods --task regression", "zeronorm methods rfe"))(
        methods
    )
    app.command(
        "datasets", epilog=o.examples("zeronorm datasets colon", "zeronorm select t-cells --features 10")
    )(datasets)


def methods(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show the parameters of this method.", show_default=False, autocompletion=o.method_names
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Only methods for binary, multiclass, multilabel, regression or survival."),
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """List the methods, or describe one with its parameters and their defaults."""
    from zeronorm.cli.printing import print_json, print_table, print_text
    from zeronorm.datasets._table import counted
    from zeronorm.registry import all_methods, get_method
    from zeronorm.selection.target import KINDS, Multilabel

    if name is not None:
        _show(get_method(name), as_json)
        return
    found = all_methods(task=task)
    if not found:
        *others, last = KINDS
        raise ValueError(f"No method supports --task {task!r}. Use {', '.join(others)} or {last}.")
    if as_json:
        print_json([_described(info) for info in found])
        return
    usable = [info for info in found if _is_for_select(info)]
    rows = [
        [info.name, info.summary, ", ".join(t for t in info.tasks if t == task or t != Multilabel.kind)]
        for info in usable
    ]
    print_table(counted(len(usable), "method"), ["name", "what it does", "tasks"], rows, longest=200)
    others = [info.name for info in found if not _is_for_select(info)]
    print_text(f"In Python only: {', '.join(others)}." if others else "")
    print_text(
        "Describe one: zeronorm methods NAME. Use one: zeronorm select DATA.csv --target COLUMN --method NAME"
    )


def _is_for_select(info: MethodInfo) -> bool:
    return info.kind in ("selector", "meta") and info.name != "selector-cv"


def _described(info: MethodInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "class": info.cls.__name__,
        "kind": info.kind,
        "family": info.family,
        "tasks": list(info.tasks),
        "reference": info.reference,
        "summary": info.summary,
        "cost": info.cost,
        "avoid": info.avoid,
    }


def _show(info: MethodInfo, as_json: bool) -> None:
    from zeronorm.cli.printing import print_json, print_table, print_text
    from zeronorm.registry import parameters_of

    parameters = parameters_of(info.cls)
    if as_json:
        print_json({**_described(info), "parameters": parameters})
        return
    print_text(f"{info.name} ({info.cls.__name__}): {info.summary}")
    print_text(f"tasks: {', '.join(info.tasks)}; reference: {info.reference}")
    if info.cost:
        print_text(f"cost with n samples and p features: {info.cost}")
    if info.avoid:
        print_text(f"not for: {info.avoid}")
    if not _is_for_select(info):
        print_text(f"use it in Python: from zeronorm import {info.cls.__name__}")
    hidden = NOT_WITH_PARAM if _is_for_select(info) else ()
    rows = [
        [row["name"], row["type"], row["default"], row["text"].replace("``", "")]
        for row in parameters
        if row["name"] not in hidden
    ]
    title = "Parameters, set with -p NAME=VALUE" if hidden else "Parameters"
    print_table(title, ["name", "values", "default", "meaning"], rows, longest=1000)


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Describe this data set and how to get it.",
            show_default=False,
            autocompletion=o.dataset_names,
        ),
    ] = None,
    as_json: o.AsJson = False,
) -> None:
    """List the data sets and synthetic problems that can be used by name, or describe one."""
    from zeronorm.cli.printing import print_json, print_table, print_text
    from zeronorm.datasets._catalogue import describe, known_names, unknown_name

    if name is not None:
        if name not in known_names():
            raise unknown_name(name)
        entry = describe(name)
        if as_json:
            print_json(entry)
        else:
            print_text(f"{name}: {entry['about']}. {entry['how']}")
        return
    found = [describe(name) for name in known_names()]
    if as_json:
        print_json(found)
        return
    rows = [
        [
            entry["name"],
            "" if entry["n_samples"] is None else f"{entry['n_samples']} × {entry['n_features']}",
            entry["about"],
            entry["where"],
        ]
        for entry in found
    ]
    print_table("Data sets", ["name", "samples × features", "about", "where"], rows)
    print_text("How to get one: zeronorm datasets NAME. Use one: zeronorm select t-cells")
