"""Entry point: runs a command and turns every outcome into an exit code.

0 success, 1 an unexpected failure, 2 bad input or usage (one line on the error stream), 130 Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import typer

from zeronorm.cli.commands import compare, datasets, demo, methods, report, select, study, warmup
from zeronorm.workflow.errors import FAILED, INTERRUPTED, INVALID, UsageProblem, one_line

TERMINATED = 143

app = typer.Typer(
    name="zeronorm",
    help="Find the few features that matter in very wide data, and prove it honestly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (select, compare, methods, datasets, report, study, warmup, demo):
    command.add_to(app)


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

    Start with: zeronorm select DATA.csv --target COLUMN
    """


def main() -> NoReturn:
    """Run the command line of this process."""
    signal.signal(signal.SIGTERM, _terminate)
    # Worker processes stay silent: what they warn about is summed up at the end.
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sys.exit(run(sys.argv[1:]))


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that temporary folders are removed on the way out.
    raise SystemExit(TERMINATED)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        result = typer.main.get_command(app)(arguments, prog_name="zeronorm", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away (for example `| head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _explain(error)
    if result == INTERRUPTED:  # some versions of the parser turn Ctrl-C into this code themselves
        return _complain("Interrupted. Nothing was written.", INTERRUPTED)
    return int(result) if isinstance(result, int) else 0


def _explain(error: Exception) -> int:
    if os.environ.get("ZERONORM_TRACEBACK"):
        import traceback

        traceback.print_exc()
    message: Any = getattr(error, "format_message", None)
    if message is not None:  # a usage error of the command-line parser
        return _complain(f"{message()} Try `zeronorm --help`.", INVALID)
    if isinstance(error, (UsageProblem, ValueError)):
        return _complain(str(error), INVALID)
    return _complain(
        f"{type(error).__name__}: {error}. This is not a problem of the input; set ZERONORM_TRACEBACK=1 to see "
        "where it happened, and report it.",
        FAILED,
    )


def _complain(message: str, code: int) -> int:
    print(f"zeronorm: {one_line(message)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
