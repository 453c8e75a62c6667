"""zeronorm select and zeronorm compare: from a file to a report"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zeronorm.cli import options as o
from zeronorm.workflow import _run as run
from zeronorm.workflow._kinds import options_of
from zeronorm.workflow._options import CompareOptions, PanelOptions, SelectOptions

if TYPE_CHECKING:
    from zeronorm.workflow._result import Result

OF_SELECT = o.examples(
    "zeronorm select genes.csv --target tumour --features 20",
    "zeronorm select genes.tsv --transpose -t label --method rfe -p C=10",
    "zeronorm select genes.csv.gz --transpose --samples patients.xlsx --id sample -t outcome",
)
OF_COMPARE = o.examples(
    "zeronorm compare genes.csv --target tumour --methods fisher,rfe,l1-svm --features 20",
    "zeronorm compare genes.csv -t tumour -m rfe,l1-svm -p rfe.C=3",
)
OF_TEST_PANEL = o.examples(
    "zeronorm test-panel signature.txt genes.csv --target tumour",
    "zeronorm test-panel signature.txt genes.csv -t tumour --method rfe --extend 5 --out panel",
)
FOLDER_KINDS = {"select": "", "compare": "comparison", "test-panel": "panel"}  # in the names of new folders
PANEL = options_of(PanelOptions)["panel"]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("select", epilog=OF_SELECT)(select)
    app.command("compare", epilog=OF_COMPARE)(compare)
    app.command("test-panel", epilog=OF_TEST_PANEL)(test_panel)


def names_of_options(function: Callable[..., Any]) -> list[str]:
    """Names of the options of a function that its command has too."""
    return [
        name
        for name in inspect.signature(function).parameters
        if name not in ("data", "panel", "seed", "verbose")
    ]


@o.takes(SelectOptions, names_of_options(run.select))
def select(
    context: typer.Context,
    data: o.Data,
    options: dict[str, Any],
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Select the features that predict the target, and estimate the error on new samples.

    Selection is repeated inside every fold, so the error is that of the whole procedure.
    Writes selected.csv, result.json, records.parquet, figures.parquet and report.html to the output folder.
    """
    from zeronorm.cli.printing import print_selection, print_text

    result = _run(context, data, options, as_json, quiet)
    if as_json or quiet:
        return
    out = options["out"]
    print_selection(result, out)
    if options["save_model"]:
        print_text(f"model: {out / 'model.json'} (to predict new samples: zeronorm apply {out} NEW.csv)")
    if options["write_table"] is not None:
        print_text(f"table: {options['write_table']}")


@o.takes(CompareOptions, names_of_options(run.compare))
def compare(
    context: typer.Context,
    data: o.Data,
    options: dict[str, Any],
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare methods on the same folds, with random features and no features for reference.

    Writes result.json, records.parquet and report.html to the output folder.
    """
    from zeronorm.cli.printing import print_comparison

    options["params"] = by_method(options["params"])
    result = _run(context, data, options, as_json, quiet)
    if not as_json and not quiet:
        print_comparison(result, options["out"])


@o.takes(PanelOptions, names_of_options(run.test_panel))
def test_panel(
    context: typer.Context,
    panel: Annotated[str, typer.Argument(metavar=PANEL.usage, help=PANEL.help, show_default=False)],
    data: o.Data,
    options: dict[str, Any],
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Measure the error of a list of features that somebody else chose.

    Compares it with random lists of the same size, with a list selected inside the folds and, with --extend, with the
    list and more features. Writes result.json, records.parquet and report.html to the output folder.
    """
    from zeronorm.cli.printing import print_comparison

    options["panel"] = panel
    result = _run(context, data, options, as_json, quiet)
    if not as_json and not quiet:
        print_comparison(result, options["out"])


def _run(context: typer.Context, data: str, options: dict[str, Any], as_json: bool, quiet: bool) -> Result:
    from zeronorm.cli.printing import print_json, shows_progress

    verbose = shows_progress(quiet, as_json)
    if verbose:  # imports take a second; the progress bar replaces this line
        sys.stderr.write("Starting …\r")
        sys.stderr.flush()
    from zeronorm.result._folder import folder_named_after
    from zeronorm.workflow import _job as job

    if options["out"] is None:
        kind = FOLDER_KINDS[str(context.info_name)]
        options["out"] = folder_named_after(data, kind, resume=options["resume"])
    arguments = {"data": data, **options, "verbose": verbose}
    result = job.run_job(str(context.info_name).replace("-", "_"), arguments, context.obj)
    if as_json:
        print_json({"folder": str(options["out"]), **result.to_dict()})
    return result


def by_method(parameters: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Parameters named "method.parameter", by method."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in parameters.items():
        method, dot, name = key.partition(".")
        if not dot or not name:
            raise ValueError(
                f"--param of compare takes METHOD.NAME=VALUE, such as rfe.C=3. Got {key!r} instead."
            )
        found.setdefault(method, {})[name] = value
    return found
