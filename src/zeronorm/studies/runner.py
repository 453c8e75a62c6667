"""Runs a study: checks that every method exists, recalls finished cells, computes the others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from zeronorm.registry import all_methods
from zeronorm.resampling.journal import Journal
from zeronorm.selection.progress import Progress
from zeronorm.studies.results import Results
from zeronorm.studies.study import Arm, Plan, Study, StudyError
from zeronorm.studies.workers import Cell, Job, cell_key, required_methods, run_capped, run_here


def run_study(
    study: Study,
    *,
    quick: bool = False,
    journal: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    cap_s: float | None = None,
    allow_missing: bool = False,
    in_process: bool | None = None,
    verbose: bool = False,
) -> Results:
    """Compute all cells of a study.

    Parameters
    ----------
    quick : the small version.
    journal : folder of finished cells; run again, only the missing ones are computed.
    n_jobs : processes.
    cap_s : largest time of one cell; None takes the study's. A timeout is a result.
    allow_missing : leave out arms whose method is not registered, and say so on the page, instead of
        refusing to start.
    in_process : compute here and without a cap; by default only the quick version does.
    """
    make_plan = study.quick if quick else study.full
    plan = make_plan()
    missing = missing_arms(plan)
    if missing and not allow_missing:
        shown = "; ".join(f"{label} ({reason})" for label, reason in missing.items())
        raise StudyError(f"Study {study.name!r} needs methods that are not there: {shown}.")
    cap = plan.cap_s if cap_s is None else cap_s
    store = None if journal is None else Journal(journal)
    keys = {job: cell_key(study.name, plan, *_parts(plan, job)) for job in _jobs(plan, missing)}
    cells = _recall(store, keys, cap)
    waiting = [job for job in keys if job not in cells]
    here = quick if in_process is None else in_process
    late = {job[:2] for job, cell in cells.items() if cell.get("cap_s") is not None}
    fresh = run_here(plan, waiting) if here else run_capped(make_plan, waiting, max(1, n_jobs), cap, late)
    with Progress(verbose).task(study.name, len(waiting)) as advance:
        for job, cell in fresh:
            cells[job] = cell
            if store is not None:
                store.write(keys[job], cell)
            advance(1)
    rows = [row for job in keys for row in _rows(plan, job, cells[job])]
    return Results(plan, rows, missing, seconds=sum(cell.get("seconds", 0.0) for cell in cells.values()))


def missing_arms(plan: Plan) -> dict[str, str]:
    """Arms whose methods are not registered, with the reason."""
    known = {method.name for method in all_methods()}
    missing = {}
    for arm in plan.arms:
        absent = sorted(required_methods(arm, plan) - known)
        if absent:
            missing[arm.label] = f"not registered: {', '.join(absent)}"
    return missing


def _jobs(plan: Plan, missing: dict[str, str]) -> Iterator[Job]:
    for d, data in enumerate(plan.data):
        for trial in range(data.n_trials):
            for a, arm in enumerate(plan.arms):
                if arm.label not in missing and (arm.only is None or data.label in arm.only):
                    yield d, a, trial


def _parts(plan: Plan, job: Job) -> tuple[Any, Arm, int]:
    return plan.data[job[0]], plan.arms[job[1]], job[2]


def _recall(store: Journal | None, keys: dict[Job, str], cap_s: float) -> dict[Job, Cell]:
    """Cells in the journal; timeouts under a smaller cap are tried again."""
    if store is None:
        return {}
    finished = store.finished()
    cells = {}
    for job, key in keys.items():
        cell = store.read(key) if key in finished else None
        if cell is not None and (cell.get("cap_s") is None or cell["cap_s"] >= cap_s):
            cells[job] = cell
    return cells


def _rows(plan: Plan, job: Job, cell: Cell) -> list[dict[str, Any]]:
    data, arm, trial = _parts(plan, job)
    return [{"data": data.label, "arm": arm.label, "trial": trial, **row} for row in cell["rows"]]
