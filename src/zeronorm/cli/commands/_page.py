"""zeronorm app: the same in a browser"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zeronorm.cli import options as o

WEB_PACKAGES = ("starlette", "uvicorn", "anyio", "jinja2", "markupsafe", "polars")


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command(
        "app", epilog=o.examples("zeronorm app", "zeronorm app result", "zeronorm app --folder study")
    )(page)


def page(
    result: Annotated[
        Path | None,
        typer.Argument(
            metavar="RESULT_FOLDER", help="Folder of a run to show, finished or not.", show_default=False
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option(parser=o.path, metavar="FOLDER", help="Where tables and results are kept.")
    ] = Path("~/zeronorm-runs"),
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port of this computer. Default: a free one.")
    ] = 0,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on; others than this computer need --password."
        ),
    ] = "127.0.0.1",
    password: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="ZERONORM_PASSWORD",
            help="Password that opens the pages from other computers. Better in the variable ZERONORM_PASSWORD.",
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the browser, or only print the link.")
    ] = True,
    max_upload: Annotated[
        int, typer.Option(metavar="MB", min=1, help="Largest file that the page accepts, in megabytes.")
    ] = 100,
) -> None:
    """Open the pages that do the same in a browser: choose a table, run, watch, read the report.

    The pages can be seen on this computer only, through the link that is printed. Nothing leaves the computer.
    """
    from zeronorm.cli.printing import print_text

    try:
        from zeronorm.app._server import serve
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in WEB_PACKAGES:
            raise
        raise ValueError(
            f"The page needs the package {package!r}. Install it with: pip install 'zeronorm[web]'"
        ) from error
    serve(
        result,
        folder=folder,
        host=host,
        port=port,
        password=password,
        with_browser=browser,
        most_megabytes=max_upload,
        write=print_text,
    )
