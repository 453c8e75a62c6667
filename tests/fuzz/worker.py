"""Runs cases one after the other in a process of its own: a case per line in, an outcome per line out.

``python -m fuzz.worker matrix`` (or ``files``, ``ordinary``) reads JSON lines, the arguments of a case, and answers
each with ``["start"]`` and ``["end", outcome, what was seen]``. The parent stops it when an answer is late.
"""

from __future__ import annotations

import json
import os
import resource
import sys

ADDRESS_SPACE = 12 * 2**30  # what is asked for beyond is an allocation that nobody has checked


def _matrix():
    from fuzz.attempt import attempt, instances

    selectors = instances()
    return lambda selector, row: attempt(selectors[selector], row)


def _ordinary():
    from fuzz.ordinary import attempt_default

    return attempt_default


def _files():
    from fuzz.files import attempt_file
    from fuzz.reading import read_in_a_fork
    from zeronorm.datasets.readers import _matrices as matrices

    matrices._read_elsewhere = read_in_a_fork
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    return attempt_file


def main(kind: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    run = {"matrix": _matrix, "files": _files, "ordinary": _ordinary}[kind]()
    for line in sys.stdin:
        print(json.dumps(["start"]), file=answers, flush=True)
        outcome, seen = run(*json.loads(line))
        print(json.dumps(["end", outcome, seen[:600]]), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
