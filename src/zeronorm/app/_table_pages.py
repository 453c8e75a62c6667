"""Pages of tables: the first page, a table with its columns, what a run with it will do, and its start."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from zeronorm.app import _fields as fields
from zeronorm.app._calls import command_text, python_text
from zeronorm.app._context import Context, context_of, html, in_thread, message_of, sent_values
from zeronorm.app._tables import KNOWN_PREFIX, known_tables
from zeronorm.workflow._options import Caller, DataOptions
from zeronorm.workflow._plan import plan
from zeronorm.workflow._preview import Preview

COLUMNS_PER_PAGE = 40
ROWS_SHOWN, COLUMNS_SHOWN = 6, 10
MOST_SUGGESTED = 300  # names of columns for fields that take one


async def first_page(request: Request) -> Response:
    """Tables to start with, and all runs."""
    context, known = context_of(request), known_tables()
    found = context.runs.all()
    return html(
        "first.html.j2",
        title="Start",
        tables=context.tables.names(),
        bundled=[entry for entry in known if entry["where"].startswith("with")],
        others=[entry for entry in known if not entry["where"].startswith("with")],
        known_prefix=KNOWN_PREFIX,
        runs=found,
        finished=[run for run in found if not run.is_active and run.file("result.json")],
        folder=str(context.folder),
        most_megabytes=context.most_bytes >> 20,
    )


async def receive(request: Request) -> Response:
    """Store a file that the browser sends."""
    length = request.headers.get("content-length", "")
    announced = int(length) if length.isdecimal() else None
    name = await context_of(request).tables.receive(
        request.query_params.get("name", ""), request.stream(), announced
    )
    return JSONResponse({"table": name}, 201)


def _file_options(request: Request) -> dict[str, Any]:
    """The options that say how a table is read, from the address of a page."""
    given = {name: request.query_params[name] for name in fields.FILE_OPTIONS if name in request.query_params}
    return fields.options_from("select", given)


def _preview(context: Context, name: str, file_options: Mapping[str, Any]) -> Preview:
    return context.previews.get(context.tables.data(name), DataOptions(**file_options))


async def table_page(request: Request) -> Response:
    """A table as it was read, and the fields of a run with it."""
    context, name = context_of(request), request.path_params["name"]
    file_options = _file_options(request)
    shown: dict[str, Any] = {"preview": None, "problem": "", "sheets": ()}
    context.tables.data(name)
    try:
        found = await in_thread(_preview, context, name, file_options)
    except (ValueError, OSError) as error:  # the page still offers other ways to read it
        shown |= {"problem": message_of(error), "sheets": await in_thread(_sheets, context, name)}
    else:
        shown |= await in_thread(_shown, found)
    sections = {kind: fields.sections(kind) for kind in fields.KINDS}
    return html(
        "table.html.j2",
        title=name.removeprefix(KNOWN_PREFIX),
        name=name,
        is_known=name.startswith(KNOWN_PREFIX),
        file_options={key: request.query_params.get(key, "") for key in fields.FILE_OPTIONS},
        sections=_merged(sections),
        questions={kind: fields.QUESTIONS[kind] for kind in fields.KINDS},
        others=[other for other in context.tables.names() if other != name],
        methods=await in_thread(methods),
        metrics=await in_thread(metrics),
        **shown,
    )


def _shown(found: Preview) -> dict[str, Any]:
    """What the page shows of a preview."""
    positions = found.first_to_see
    raw = found.raw
    in_order = sorted(positions)[:COLUMNS_SHOWN]
    return {
        "preview": found,
        "sheets": found.sheets,
        "head": [raw.names[position] for position in in_order],
        "rows": found.head(in_order, ROWS_SHOWN) if in_order else [],
        "apart": found.apart(),
        "columns": found.columns(positions[:COLUMNS_PER_PAGE]),
        "suggested": [*raw.targets, *(raw.names[position] for position in positions)][:MOST_SUGGESTED],
        "default_target": raw.default_target or "",
        "n_pages": -(-len(positions) // COLUMNS_PER_PAGE),
    }


def _sheets(context: Context, name: str) -> list[str]:
    from pathlib import Path

    from zeronorm.datasets.readers._workbooks import sheets_of

    try:
        return sheets_of(Path(context.tables.data(name)))
    except (ValueError, OSError):
        return []


def _merged(sections: Mapping[str, Mapping[str, list[fields.Field]]]) -> dict[str, list[dict[str, Any]]]:
    """The fields of all kinds of run by section, each with the kinds that have it."""
    merged: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, found in sections.items():
        for title, listed in found.items():
            for field in listed:
                entry = merged.setdefault(title, {}).setdefault(field.name, {"field": field, "kinds": []})
                entry["kinds"].append(kind)
    return {title: list(entries.values()) for title, entries in merged.items()}


@cache
def methods() -> list[tuple[str, str]]:
    """The methods to choose from, each with a sentence."""
    from zeronorm.registry import all_methods

    return [(info.name, info.summary) for info in all_methods("selector")]


@cache
def metrics() -> list[tuple[str, str]]:
    """The measures of the error to choose from."""
    from zeronorm.resampling._metrics import METRICS

    return [(name, metric.text) for name, metric in METRICS.items()]


async def columns(request: Request) -> Response:
    """Some of the columns: those whose names hold a text."""
    context, name = context_of(request), request.path_params["name"]
    found = await in_thread(_preview, context, name, _file_options(request))
    wanted = request.query_params.get("q", "").casefold()
    number = request.query_params.get("page", "1")
    start = (int(number) - 1 if number.isdecimal() and len(number) < 9 else 0) * COLUMNS_PER_PAGE
    names = found.raw.names
    positions = [position for position in found.first_to_see if wanted in names[position].casefold()]
    shown = await in_thread(found.columns, positions[max(0, start) :][:COLUMNS_PER_PAGE])
    return html(
        "columns.html.j2",
        columns=shown,
        apart=[],
        n_found=len(positions),
        n_pages=-(-len(positions) // COLUMNS_PER_PAGE),
        roles=[entry["field"] for entry in _merged({"select": fields.sections("select")})["roles"]],
    )


# -- A run with the table -----------------------------------------------------------------------------


def _asked(context: Context, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kind of run, and its data with the options, that a page asks for."""
    kind, table, values = given.get("kind"), given.get("table"), given.get("options")
    if kind not in fields.KINDS or not isinstance(table, str) or not isinstance(values, dict):
        raise fields.FieldError("The page did not send all of its fields. Reload it.")
    options = fields.options_from(kind, values)
    if kind == "test_panel" and not options.get("panel"):
        raise fields.FieldError(f"“{fields.label_of('panel')}” is empty. Name columns, one per line.")
    for name in fields.FILES:
        if name in options:
            options[name] = str(context.tables.path(options[name]))
    return kind, {"data": context.tables.data(table), **options}


def _planned(context: Context, table: str, kind: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    file_options = {name: arguments[name] for name in fields.FILE_OPTIONS if name in arguments}
    raw = _preview(context, table, file_options).raw
    command = command_text(kind, arguments)
    found = plan(raw, _settings(kind, arguments), Caller(command, fields.in_labels))
    return {
        "steps": found.steps,
        "notes": found.notes,
        "time": found.time,
        "command": command,
        "python": python_text(kind, arguments),
    }


def _settings(kind: str, arguments: Mapping[str, Any]) -> Any:
    """The checked options of a run."""
    return fields.record_of(kind)(**{name: value for name, value in arguments.items() if name != "data"})


async def planned(request: Request) -> Response:
    """What a run will do and how long it takes, or what is wrong with the fields."""
    context, given = context_of(request), await sent_values(request)
    kind, arguments = _asked(context, given)
    return JSONResponse(await in_thread(_planned, context, given["table"], kind, arguments))


async def start(request: Request) -> Response:
    """Start a run."""
    context, given = context_of(request), await sent_values(request)
    kind, arguments = _asked(context, given)
    _settings(kind, arguments)
    run = await in_thread(context.runs.start, kind, given["table"], arguments)
    return JSONResponse({"run": run.name}, 201)


ROUTES = [
    Route("/", first_page),
    Route("/tables", receive, methods=["PUT"]),
    Route("/tables/{name}", table_page),
    Route("/tables/{name}/columns", columns),
    Route("/plan", planned, methods=["POST"]),
    Route("/runs", start, methods=["POST"]),
]
