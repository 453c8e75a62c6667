"""The server: the pages with their checks, on a port of this computer, and the browser that shows them."""

from __future__ import annotations

import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from zeronorm._messages import OptionError
from zeronorm.app import _run_pages, _table_pages
from zeronorm.app._context import ANSWERED, Context, explain, explain_fault
from zeronorm.app._security import LOOPBACK, Access, Guard
from zeronorm.app._tables import MEGABYTE
from zeronorm.app._templates import report_style
from zeronorm.result._folder import RESULT_FILES, has_journal, is_running

STATIC = Path(__file__).parent / "static"
PATIENCE_S = 2  # for open connections when the server ends
DEFAULT_FOLDER = Path("~/zeronorm-runs")


async def _style(_request: Request) -> Response:
    return Response(report_style(), media_type="text/css")


def pages(context: Context) -> Guard:
    """All pages, behind the checks of each request; also answers about faults of the program have their headers."""
    made = Starlette(
        routes=[
            *_table_pages.ROUTES,
            *_run_pages.ROUTES,
            Route("/static/report.css", _style),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        exception_handlers={
            **dict.fromkeys(ANSWERED, explain),
            HTTPException: explain,
            500: explain_fault,
        },
    )
    made.state.context = context
    return Guard(made, context.access)


def serve(
    opened: Path | None = None,
    *,
    folder: Path = DEFAULT_FOLDER,
    host: str = "127.0.0.1",
    port: int = 0,
    password: str | None = None,
    with_browser: bool = True,
    most_megabytes: int = 100,
    write: Callable[[str], Any] = print,
) -> None:
    """Serve the pages until Ctrl-C.

    Parameters
    ----------
    opened : a result folder to show, or None.
    folder : the working folder, which is made where it does not exist.
    host : the address to listen on; other computers need a password.
    port : the port; 0 takes a free one.
    password : opens the pages from other computers.
    with_browser : whether to open the browser.
    most_megabytes : size of the largest file that is accepted.
    write : prints a line for the user.
    """
    if host not in LOOPBACK and not password:
        raise OptionError(
            f"Other computers could reach the pages at {host!r}. Set a password (--password, or the variable "
            "ZERONORM_PASSWORD), or leave --host out."
        )
    if opened is not None:
        _check_result_folder(opened)
    listening = _listen(host, port)
    access = Access(host, listening.getsockname()[1], password or None)
    working = folder.expanduser().resolve()
    try:
        working.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(
            f"The folder {str(working)!r} cannot be made: {error.strerror}. Choose another."
        ) from error
    context = Context(working, access, most_megabytes * MEGABYTE, opened and opened.resolve())
    write(f"zeronorm is at {access.link}")
    write(f"Tables and results are kept in {working}. Ctrl-C ends the page; runs go on without it.")
    if host not in LOOPBACK:
        write("The connection is not encrypted: use it in a network that you trust.")
    if with_browser:
        threading.Timer(0.5, webbrowser.open, [access.link]).start()
    settings = uvicorn.Config(
        pages(context),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=PATIENCE_S,
        lifespan="off",
    )
    with suppress(KeyboardInterrupt):  # raised again when the server has ended
        uvicorn.Server(settings).run(sockets=[listening])


def _check_result_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise OptionError(f"There is no folder {str(folder)!r}. Give the folder of a run, or none.")
    is_run = any((folder / name).is_file() for name in RESULT_FILES)
    if not (is_run or has_journal(folder) or is_running(folder)):
        raise OptionError(
            f"The folder {str(folder)!r} holds neither a result nor a run. Give the folder of a run; to choose where "
            "new ones are kept, use --folder."
        )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()  # the link is printed before the server runs: connections wait for it
    except OSError as error:
        listening.close()
        raise OptionError(
            f"The server cannot listen on port {port} of {host!r}: {error.strerror}. Choose another port with "
            "--port, or leave it out for a free one."
        ) from error
    return listening
