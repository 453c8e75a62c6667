"""Pages of runs: progress, result, downloads, predictions for new samples, and two results side by side."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from zeronorm.app import _fields as fields
from zeronorm.app import _runs as runs
from zeronorm.app._calls import command_text, python_text
from zeronorm.app._context import Context, context_of, html, in_thread, sent_values
from zeronorm.app._runs import RunError, WatchedRun
from zeronorm.app._security import REPORT_POLICY
from zeronorm.app._side_by_side import side_by_side
from zeronorm.app._templates import event
from zeronorm.workflow._cohort import run_apply
from zeronorm.workflow._options import Caller
from zeronorm.workflow._result import Result

LOOK_S = 0.5  # between two looks at a run that is watched


def _run(request: Request) -> WatchedRun:
    return context_of(request).runs.get(request.path_params["name"])


def _calls(run: WatchedRun) -> dict[str, str]:
    """The command and the call in Python that do the same as the run."""
    if not run.settings:
        return {"command": "", "python": ""}
    kind, arguments = run.settings["kind"], run.arguments
    with_model = kind == "select" and run.file("model.json") is not None
    return {
        "command": command_text(kind, arguments, with_model=with_model),
        "python": python_text(kind, arguments, with_model=with_model),
    }


async def run_page(request: Request) -> Response:
    """A run: how far it is, or its result."""
    context, run = context_of(request), _run(request)
    result = await in_thread(summary_of, run)
    others = [
        other.name for other in context.runs.all() if other.name != run.name and other.file("result.json")
    ]
    return html(
        "run.html.j2",
        title=run.name,
        run=run,
        state=run.state,
        progress=run.progress(),
        result=result,
        others=others,
        tables=context.tables.names(),
        prediction_fields=list(fields.fields_of("apply").values()),
        calls=_calls(run),
    )


def summary_of(run: WatchedRun) -> dict[str, Any]:
    """The headline, the warnings and the command of a finished run; the problem of an unreadable one."""
    file = run.file("result.json") or run.file("cohort.json")
    if file is None:
        return {"headline": "", "warnings": [], "command": ""}
    try:
        found = _cohort(file) if file.name == "cohort.json" else Result.read(file)
    except ValueError as error:
        return {"headline": "The result cannot be read", "warnings": [str(error)], "command": ""}
    return {
        "headline": found.headline,
        "warnings": found.warnings,
        "command": found.provenance.get("command", ""),
    }


def _cohort(file: Path) -> SimpleNamespace:
    """What a page shows of predictions for new samples."""
    found = json.loads(file.read_text(encoding="utf-8"))
    try:
        shown = {name: found[name] for name in ("headline", "warnings", "provenance")}
        dict(shown["provenance"]), [str(warning) for warning in shown["warnings"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"The file {file.name!r} is damaged. Predict the samples again.") from error
    return SimpleNamespace(**shown)


async def events(request: Request) -> Response:
    """The progress of a run, as long as it lasts and somebody watches."""
    run = _run(request)

    async def watched() -> AsyncIterator[str]:
        last = None
        while True:
            state = await anyio.to_thread.run_sync(lambda: run.state)
            progress = await anyio.to_thread.run_sync(run.progress)
            if (state, progress) != last:
                last = (state, progress)
                yield event("progress", {"state": state, **progress})
            if state not in (runs.STARTING, runs.RUNNING):
                yield event("end", {"state": state})
                return
            await anyio.sleep(LOOK_S)

    return StreamingResponse(watched(), media_type="text/event-stream")


async def stop(request: Request) -> Response:
    """Stop a run; its finished folds are kept."""
    runs.stop(_run(request))
    return JSONResponse({"state": "stopping"})


async def go_on(request: Request) -> Response:
    """Continue a run from its finished folds."""
    await in_thread(runs.go_on, _run(request))
    return JSONResponse({"state": runs.STARTING})


# -- Files --------------------------------------------------------------------------------------------


async def report(request: Request) -> Response:
    """The report, which may run its own scripts and nothing else."""
    file = _run(request).file("report.html")
    if file is None:
        raise RunError("There is no report yet. Wait until the run has finished.", 404)
    return FileResponse(file, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})


async def download(request: Request) -> Response:
    """One file of a result."""
    run, name = _run(request), request.path_params["file"]
    file = run.file(name)
    if file is None:
        raise RunError(f"The run {run.name!r} has no file {name!r}. Choose one of its list.", 404)
    return FileResponse(file, media_type="application/octet-stream", filename=f"{run.name}-{name}")


async def everything(request: Request) -> Response:
    """All files of a result as one archive."""
    run = _run(request)
    archive = await in_thread(_archive, run)
    return FileResponse(
        archive,
        media_type="application/zip",
        filename=f"{run.name}.zip",
        background=BackgroundTask(archive.unlink, missing_ok=True),
    )


def _archive(run: WatchedRun) -> Path:
    number, name = tempfile.mkstemp(suffix=".zip", prefix="zeronorm-")
    with os.fdopen(number, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in run.files():
            archive.write(file, f"{run.name}/{file.name}")
    return Path(name)


# -- New samples, and two results ---------------------------------------------------------------------


async def apply(request: Request) -> Response:
    """Predict the samples of a table with the model of a run, and score them where their outcome is known."""
    run, given = _run(request), await sent_values(request)
    table, values = given.get("table"), given.get("options", {})
    if not isinstance(table, str) or not isinstance(values, dict):
        raise fields.FieldError("The page did not send all of its fields. Reload it.")
    options = fields.options_from("apply", values)
    found = await in_thread(_predicted, context_of(request), run, table, options)
    return JSONResponse({"run": found.name}, 201)


def _predicted(context: Context, run: WatchedRun, table: str, options: dict[str, Any]) -> WatchedRun:
    """A new run that holds the predictions."""
    model = run.file("model.json")
    if model is None:
        raise RunError("This run has no model: nothing was selected, or it was run without saving one.")
    if "samples" in options:
        options["samples"] = str(context.tables.path(options["samples"]))
    arguments = {"model": str(model), "data": str(context.tables.path(table)), **options}
    cohort = run_apply(arguments, Caller(command_text("apply", arguments), fields.in_labels))
    made = context.runs.new("apply", table, arguments)
    cohort.save(made.folder)
    return made


async def compared(request: Request) -> Response:
    """Two results side by side."""
    found = context_of(request).runs
    names = [request.query_params.get(side, "") for side in ("first", "second")]
    pair = [found.get(name) for name in names]
    table = await in_thread(side_by_side, *pair)
    return html("side_by_side.html.j2", title="Two results", runs=pair, found=table)


ROUTES = [
    Route("/runs/{name}", run_page),
    Route("/runs/{name}/events", events),
    Route("/runs/{name}/stop", stop, methods=["POST"]),
    Route("/runs/{name}/continue", go_on, methods=["POST"]),
    Route("/runs/{name}/apply", apply, methods=["POST"]),
    Route("/runs/{name}/report", report),
    Route("/runs/{name}/files/{file}", download),
    Route("/runs/{name}/all.zip", everything),
    Route("/compare", compared),
]
