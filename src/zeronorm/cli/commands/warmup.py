"""zeronorm warmup"""

from __future__ import annotations

import typer

from zeronorm.cli import options as o


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("warmup", epilog="Example: zeronorm warmup")(warmup)


def warmup(as_json: o.AsJson = False) -> None:
    """Compile all loops once, so that later runs start at full speed."""
    from zeronorm.cli.printing import print_json, say
    from zeronorm.cli.warming import warm_everything

    seconds, problems = warm_everything()
    if as_json:
        print_json({"seconds": seconds, "problems": problems})
        return
    for problem in problems:
        say(f"note: {problem}")
    say(f"Compiled in {seconds:.1f} s.")
