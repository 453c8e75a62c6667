"""Commands that other packages add, through entry points of the group ``zeronorm.commands``.

Such an entry point is a function that takes a ``typer.Typer`` and adds its command to it.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

import typer
from typer.core import TyperGroup

from zeronorm.registry import COMMANDS, use_entry_points

PACKAGES = {"study": "zeronorm-studies"}  # packages of this project that add a command


class CommandGroup(TyperGroup):
    """The commands of this package, and those of other packages, which are imported only when they are needed."""

    _is_complete = False

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, for the help page and the shell."""
        self._add_those_of_other_packages()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, or None."""
        if cmd_name not in self.commands:
            self._add_those_of_other_packages()
        if cmd_name in PACKAGES and cmd_name not in self.commands and not ctx.resilient_parsing:
            package = PACKAGES[cmd_name]
            raise ValueError(
                f"The command {cmd_name!r} needs the package {package!r}. Install it with: pip install {package} "
                f"(in a copy of the repository: pip install ./{package.removeprefix('zeronorm-')})"
            )
        return super().get_command(ctx, cmd_name)

    def _add_those_of_other_packages(self) -> None:
        if not self._is_complete:
            self._is_complete = True
            use_entry_points(COMMANDS, "command", self._add)

    def _add(self, point: metadata.EntryPoint) -> None:
        holder = typer.Typer(add_completion=False, rich_markup_mode=None)
        point.load()(holder)
        show_whole_summaries(holder)
        self.commands.setdefault(point.name, typer.main.get_command(holder))


def show_whole_summaries(app: typer.Typer) -> None:
    """Show the whole first sentence of each command on the help page, which the parser would cut off."""
    for entry in app.registered_commands:
        entry.short_help = (getattr(entry.callback, "__doc__", None) or "").partition("\n")[0]
