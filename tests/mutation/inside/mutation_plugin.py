"""A plugin of pytest for trials: chosen tests in a chosen order, each with a limit of time, and the lines it ran."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

# {"tests": {nodeid: seconds allowed} or null for all, "ran": file to write or null}
ORDERS = json.loads(Path(os.environ["ZERONORM_TRIAL"]).read_text("utf-8"))
LIMITS = ORDERS["tests"]
FOUND: list[dict] = []
SOURCE = os.environ.get("ZERONORM_WATCH", "")
# Processor time; a test that waits has eight times as long, because on a busy machine all tests wait.
TIMERS = ((signal.SIGPROF, signal.ITIMER_PROF, 1.0), (signal.SIGALRM, signal.ITIMER_REAL, 8.0))


@pytest.hookimpl(tryfirst=True)
def pytest_collection():
    """A failure is enough: hypothesis need not look for the simplest one."""
    from hypothesis import Phase, settings

    settings.register_profile("mutation", settings.default, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutation")


def pytest_collection_modifyitems(config, items):
    if LIMITS is not None:
        order = {name: number for number, name in enumerate(LIMITS)}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
        items[:] = sorted((i for i in items if i.nodeid in order), key=lambda i: order[i.nodeid])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if ORDERS["ran"] is not None:
        return (yield from _watched(item))
    # The system ends the process: a loop in compiled code would not hear an exception.
    for number, timer, factor in TIMERS:
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, factor * LIMITS[item.nodeid])
    try:
        return (yield)
    finally:
        for _, timer, _ in TIMERS:
            signal.setitimer(timer, 0.0)


def _watched(item):
    import sitecustomize

    sitecustomize.RAN.clear()
    if sys.version_info >= (3, 12):
        sys.monitoring.restart_events()
    started = time.perf_counter()
    try:
        return (yield)
    finally:
        lines: dict[str, list[int]] = {}
        for file, line in list(sitecustomize.RAN):
            if file.startswith(SOURCE):
                lines.setdefault(os.path.relpath(file, SOURCE), []).append(line)
        FOUND.append({"test": item.nodeid, "seconds": time.perf_counter() - started, "lines": lines})


FAILED: set[str] = set()


def pytest_runtest_logreport(report):
    if not report.passed:  # skipped ones show nothing either
        FAILED.add(report.nodeid)


def pytest_sessionfinish():
    if ORDERS["ran"] is not None:
        passed = [found for found in FOUND if found["test"] not in FAILED]
        result = {"passed": passed, "others": sorted(FAILED)}
        Path(ORDERS["ran"]).write_text(json.dumps(result), encoding="utf-8")
