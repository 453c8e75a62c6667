"""Entry point: runs a command and turns every outcome into an exit code.

0 success, 1 an unexpected failure, 2 bad input or usage (one line on the error stream), 130 Ctrl-C.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
from functools import cache
from types import FrameType
from typing import Any, NoReturn

from zeronorm._messages import rendered

FAILED, INVALID, INTERRUPTED, TERMINATED = 1, 2, 130, 143
LONGEST_LINE = 600
LEAST_ADDRESS_SPACE = 15 << 27  # bytes; a run on a small table reserves 1.66 GiB with one thread of polars
ROOM_FOR_FRAMES = 70_000  # words of 8 bytes; just above a power of two, so that the chunk has as many again
# Messages about invalid numbers, from several versions of the parser, and a plain message for each.
PARSER_MESSAGES = {
    " is not in the range x>=": " is too small: it must be at least ",
    "is not a valid integer range": "is not a whole number",
    "is not a valid int range": "is not a whole number",
    "Input should be greater than or equal to": "It must be at least",
    "Input should be less than or equal to": "It must be at most",
    "Input should be a valid integer": "It must be a whole number",
    "Input should be a valid number": "It must be a number",
    ", unable to parse string as an integer": "",
    ", unable to parse string as a number": "",
}


def main() -> NoReturn:
    """Run the command line of this process."""
    signal.signal(signal.SIGTERM, _terminate)
    # Worker processes print no warnings: the main process summarises them at the end.
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    # CPython keeps stack frames in chunks of 16 KB and frees a chunk when its first frame returns. A loop whose
    # calls cross the end of a chunk allocates one in every iteration, which takes a fifth of the time to compile
    # the loops of a first run. A function that asks for more than a chunk gets room for all frames above it.
    run.__code__ = run.__code__.replace(co_stacksize=ROOM_FOR_FRAMES)
    sys.exit(_memory_limit() or run(sys.argv[1:]))


def _memory_limit() -> int:
    """An exit code if the address space is limited so much that libraries would abort the process; 0 otherwise."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 0
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return 0
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # each thread reserves 0.1 GiB more
    if limit >= LEAST_ADDRESS_SPACE:
        return 0
    return _complain(
        f"The memory limit of this shell is {limit / 2**30:.1f} GiB of address space, but the libraries reserve up to "
        f"{LEAST_ADDRESS_SPACE / 2**30:.1f} GiB, of which they use 0.4 GiB. Raise it: "
        f"ulimit -v {LEAST_ADDRESS_SPACE // 1024}",
        INVALID,
    )


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that temporary folders are removed on the way out.
    raise SystemExit(TERMINATED)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        import typer

        _command()
    except ModuleNotFoundError as error:
        return _complain(
            f"The command line needs the package {error.name!r}. Install it with: pip install 'zeronorm[app]'",
            INVALID,
        )
    from zeronorm.cli.options import in_flags
    from zeronorm.workflow._options import Caller

    caller = Caller(shlex.join(["zeronorm", *arguments]), in_flags)
    try:
        result = _command()(arguments or ["--help"], prog_name="zeronorm", standalone_mode=False, obj=caller)
    except (KeyboardInterrupt, typer.Abort):
        result = INTERRUPTED
    except BrokenPipeError:
        # The pipe that takes the output was closed (for example by `| head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _explain(error, caller)
    if result == INTERRUPTED:  # some versions of the parser return this code after Ctrl-C
        return _complain(
            "Interrupted. No result was written. If folds were finished, the same command with --resume continues.",
            INTERRUPTED,
        )
    return int(result) if isinstance(result, int) else 0


@cache
def _command() -> Any:
    """All commands with their options."""
    import typer

    from zeronorm.cli.commands import app

    return typer.main.get_command(app)


def _explain(error: Exception, caller: Any) -> int:
    if os.environ.get("ZERONORM_TRACEBACK"):
        import traceback

        traceback.print_exc()
    message: Any = getattr(error, "format_message", None)
    if message is not None:  # a usage error of the command-line parser
        command = getattr(getattr(error, "ctx", None), "command_path", "zeronorm")
        return _complain(f"{_sentence(message())} Try `{command} --help`.", INVALID)
    if isinstance(error, ValueError) or type(error).__name__ == "DataFileError":
        return _complain(rendered(getattr(error, "message", str(error)), caller.naming), INVALID)
    if isinstance(error, ModuleNotFoundError) and error.name in ("polars", "jinja2", "markupsafe", "rich"):
        return _complain(
            f"This command needs the package {error.name!r}. Install it with: pip install 'zeronorm[app]'",
            INVALID,
        )
    if (cause := _limit_of_the_system(error)) is not None:
        return _complain(cause, FAILED)
    return _complain(
        f"{type(error).__name__}: {error}. This is not a problem of the input; set ZERONORM_TRACEBACK=1 to see "
        "where it happened, and report it.",
        FAILED,
    )


def _limit_of_the_system(error: Exception) -> str | None:
    """The message for a full disk or too little memory, which are no faults of the program; None for other errors."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        about = text if text.endswith(".") else f"There is not enough memory{': ' * bool(text)}{text}."
        return (
            f"{about} Close other programs or raise the memory limit; for large tables, set --memory-budget, or "
            "convert them with `zeronorm pack`."
        )
    codes = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
    if (isinstance(error, OSError) and error.errno in codes) or os.strerror(errno.ENOSPC) in text:
        return (
            f"The disk is full: {text}. Free some space or choose another folder (--out). If folds were finished, the "
            "same command with --resume continues."
        )
    return None


def _sentence(message: str) -> str:
    """The message of the parser without the prefix of its checks, and with a full stop."""
    from zeronorm.cli.options import former_values

    text = message.replace("Value error, ", "").strip()
    for message_of_parser, plain in {**PARSER_MESSAGES, **former_values()}.items():
        text = text.replace(message_of_parser, plain)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def one_line(message: str) -> str:
    """Text for one line of a terminal: no line breaks or control characters, cut when very long."""
    text = " ".join(message.split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


def _complain(message: str, code: int) -> int:
    print(f"zeronorm: {one_line(message)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
