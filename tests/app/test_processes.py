"""A run is a process of its own: it can be stopped, goes on from its finished folds, and gives the same result."""

from __future__ import annotations

import json
import os
import signal
import time

import zeronorm
from app.conftest import OURS
from zeronorm.app import _runs as runs
from zeronorm.result._folder import RUNNING, is_running
from zeronorm.workflow._result import Result

PATIENCE_S = 120  # on a busy computer
LONG = {
    "target": "state",
    "method": "fisher",
    "features": 2,
    "cv": 3,
    "repeats": 40,
    "permutations": 0,
    "n_jobs": 1,
}


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_goes_on_after_a_crash_and_after_a_stop_and_gives_the_same_result(client, context, table):
    arguments = {"data": context.tables.data(table), **LONG}
    run = context.runs.start("select", table, arguments)
    assert run.state == "starting"
    until(lambda: run.n_finished >= 3)
    assert run.state == "running"
    os.kill(int((run.folder / RUNNING).read_text().split()[1]), signal.SIGKILL)
    os.utime(run.folder / runs.HEARTBEAT, (0, 0))  # as if it had been killed a while ago
    until(lambda: not is_running(run.folder))
    settings = json.loads((run.folder / runs.SETTINGS).read_text())
    (run.folder / runs.SETTINGS).write_text(json.dumps({**settings, "started": 0}))
    assert (run.state, run.can_continue) == ("stopped", True)

    after_crash = run.n_finished
    assert client.post(f"/runs/{run.name}/continue", json={}, headers=OURS).status_code == 200
    until(lambda: run.n_finished >= after_crash + 3)
    assert client.post(f"/runs/{run.name}/stop", json={}, headers=OURS).status_code == 200
    until(lambda: not run.is_active)
    assert (run.state, run.outcome) == ("stopped", {"message": ""})
    assert after_crash < run.n_finished < 3 * LONG["repeats"]
    assert f"{run.n_finished} finished folds" in client.get(f"/runs/{run.name}").text

    assert client.post(f"/runs/{run.name}/continue", json={}, headers=OURS).status_code == 200
    until(lambda: run.state == "finished" and not (run.folder / runs.HEARTBEAT).exists())
    found, expected = Result.load(run.folder), zeronorm.select(**arguments)
    assert found.features == expected.features
    assert found.records["predictions"].to_list() == expected.records["predictions"].to_list()
    assert run.file("model.json") is not None
