"""The command `zeronorm study`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zeronorm.cli import options as o


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("study", epilog=o.examples("zeronorm study weston2003-linear --quick"))(study)


def study(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Name of the study.", show_default=False)] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the studies and their costs.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run the small version, which takes seconds.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the page and the journal.")] = Path(
        "zeronorm-study"
    ),
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of processes.")] = 1,
    cap: Annotated[
        float | None,
        typer.Option("--cap", min=0.001, help="Time limit for one task of the study, in seconds."),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            "--limit",
            min=0.0,
            help="Time limit for this run, in seconds; 0 only writes the page of the journal.",
        ),
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Leave out methods that are not installed, with a note.")
    ] = False,
    dask: o.DaskAddress = None,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Repeat a published experiment and compare the results with the published ones.

    Finished tasks are kept in a journal: a run that was stopped continues when it is started again.
    """
    from zeronorm.cli.printing import print_json

    if show_list:
        _list(as_json)
        return
    if name is None:
        raise ValueError("Name a study, or pass --list.")
    from zeronorm.workflow._backends import on_cluster

    with on_cluster(dask):
        findings, files = _run(
            context.obj.command,
            name,
            quick,
            out,
            jobs,
            cap,
            limit,
            allow_missing,
            quiet or as_json,
            dask is not None,
        )
    if as_json:
        print_json({"files": files, "findings": findings})
    elif not quiet:
        _print(name, findings, files)


def _run(
    command: str,
    name: str,
    quick: bool,
    out: Path,
    jobs: int,
    cap: float | None,
    limit: float | None,
    allow_missing: bool,
    quiet: bool,
    elsewhere: bool,
) -> tuple[list[dict[str, str]], list[str]]:
    from dataclasses import asdict

    from zeronorm.cli.printing import shows_progress
    from zeronorm.result import Clock, provenance
    from zeronorm_studies.pages import build_page, compare_all, write_study
    from zeronorm_studies.runner import run_study
    from zeronorm_studies.study import get_study

    clock, found = Clock(), get_study(name)
    results = run_study(
        found,
        quick=quick,
        journal=out / "journal",
        n_jobs=jobs,
        cap_s=cap,
        limit_s=limit,
        allow_missing=allow_missing,
        elsewhere=elsewhere,
        verbose=shows_progress(quiet, False),
    )
    run = provenance(clock, command)
    packages = ", ".join(f"{package} {version}" for package, version in run["packages"].items())
    shown = [
        ("date", run["started"]),
        ("command", run["command"]),
        ("Python", run["python"]),
        ("packages", packages),
        ("duration of this call (tasks in the journal are not computed again)", f"{run['seconds']} s"),
        ("time of all tasks, added up", f"{results.seconds / 60:.1f} min"),
    ]
    page = build_page(found, results, quick=quick, provenance=shown)
    files = write_study(out, name, page, results)
    return [asdict(f) for f in compare_all(found, results, quick=quick)], [str(file) for file in files]


def _print(name: str, findings: list[dict[str, str]], files: list[str]) -> None:
    from zeronorm.cli.printing import print_table, print_text

    rows = [[f["what"], f["origin"], f["published"], f["ours"], f["verdict"]] for f in findings]
    print_table(name, ["what", "origin", "published", "ours", "verdict"], rows)
    for file in files:
        print_text(f"wrote {file}")


def _list(as_json: bool) -> None:
    from zeronorm.cli.printing import print_json, print_table
    from zeronorm_studies.study import all_studies

    found = [{"name": s.name, "title": s.title, "source": s.source, "cost": s.cost} for s in all_studies()]
    if as_json:
        print_json(found)
        return
    print_table("Studies", ["name", "title", "cost"], [[s["name"], s["title"], s["cost"]] for s in found])
