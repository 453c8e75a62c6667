"""The commands; heavy imports happen inside them, so that --help stays quick."""

from __future__ import annotations

import typer

from zeronorm.cli.commands import _conversions as conversions
from zeronorm.cli.commands import _explanations as explanations
from zeronorm.cli.commands import _first_steps as first_steps
from zeronorm.cli.commands import _listings as listings
from zeronorm.cli.commands import _page as page
from zeronorm.cli.commands import _runs as runs
from zeronorm.cli.commands._outside import CommandGroup, show_whole_summaries

app = typer.Typer(
    name="zeronorm",
    cls=CommandGroup,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (runs, page, conversions, explanations, listings, first_steps):
    command.add_to(app)
show_whole_summaries(app)


def _version(value: bool) -> None:
    if value:
        from zeronorm import __version__

        typer.echo(f"zeronorm {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Find the few features that matter in very wide data, and prove it honestly.

    Start with: zeronorm select DATA.csv --target COLUMN. To see an example first: zeronorm demo.
    """
