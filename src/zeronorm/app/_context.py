"""What all pages share: the working folder, the access, and how they answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio.to_thread
from anyio.lowlevel import RunVar
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from zeronorm._messages import rendered
from zeronorm.app._fields import FieldError, in_labels
from zeronorm.app._runs import RunError, WatchedRuns
from zeronorm.app._security import Access
from zeronorm.app._tables import MEGABYTE, Previews, TableError, Tables
from zeronorm.app._templates import page

MOST_BYTES_OF_REQUEST = MEGABYTE
N_READERS = 2  # tables that are read at the same time
_LIMITER: RunVar[anyio.CapacityLimiter] = RunVar("zeronorm-readers")


@dataclass(frozen=True)
class Context:
    """The working folder and the access.

    Parameters
    ----------
    folder : the working folder; nothing outside of it is read.
    access : who may see the pages.
    most_bytes : size of the largest file that is accepted.
    opened : a result folder elsewhere that was named when the page was started.
    """

    folder: Path
    access: Access
    most_bytes: int
    opened: Path | None = None
    previews: Previews = field(default_factory=Previews)

    @property
    def tables(self) -> Tables:
        return Tables(self.folder / "tables", self.most_bytes)

    @property
    def runs(self) -> WatchedRuns:
        return WatchedRuns(self.folder / "runs", self.opened)


def context_of(request: Request) -> Context:
    """The context of the pages that answer a request."""
    found: Context = request.app.state.context
    return found


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Work that takes longer than a moment, beside other answers."""
    return await anyio.to_thread.run_sync(lambda: function(*arguments), limiter=_limiter())


def _limiter() -> anyio.CapacityLimiter:
    try:
        return _LIMITER.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(N_READERS)
        _LIMITER.set(limiter)
        return limiter


async def sent_values(request: Request) -> dict[str, Any]:
    """The JSON object that a page sent."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise FieldError("The page sent something else than its fields. Reload it.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES_OF_REQUEST:
            raise FieldError(
                "The fields hold too much text. Use patterns such as AFFX* instead of long lists."
            )
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FieldError("The fields cannot be read. Reload the page.") from error
    if not isinstance(found, dict):
        raise FieldError("The fields cannot be read. Reload the page.")
    return found


def html(template: str, status: int = 200, **values: Any) -> Response:
    """A page as an answer."""
    return HTMLResponse(page(template, **values), status)


def message_of(error: Exception) -> str:
    """The text of an error, with options as the page calls them."""
    return rendered(getattr(error, "message", str(error)), in_labels)


async def explain(request: Request, error: Exception) -> Response:
    """The answer to a request that cannot be met: a page, or JSON for a script."""
    status = int(getattr(error, "status", 0) or getattr(error, "status_code", 400))
    text = str(getattr(error, "detail", "")) or message_of(error)
    if request.method in ("POST", "PUT") or request.url.path.endswith("/columns"):
        return JSONResponse({"error": text}, status)
    return html("error.html.j2", status, text=text, title="This did not work")


async def explain_fault(request: Request, error: Exception) -> Response:
    """The answer to a request that met a fault of the program."""
    text = f"{type(error).__name__}: {error}. This is not a problem of the input; the terminal shows where it happened."
    return await explain(request, RunError(text, 500))


ANSWERED = (TableError, RunError, FieldError, ValueError)
