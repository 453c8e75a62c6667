"""A working folder, a client that has the cookie, and one finished run."""

from __future__ import annotations

import signal

import numpy as np
import pytest

starlette = pytest.importorskip("starlette", reason="starlette is not installed (it is in the web extra)")

from starlette.testclient import TestClient  # noqa: E402

from zeronorm.app import _runs as runs  # noqa: E402
from zeronorm.app import _worker  # noqa: E402
from zeronorm.app._context import Context  # noqa: E402
from zeronorm.app._security import Access  # noqa: E402
from zeronorm.app._server import pages  # noqa: E402

PORT = 8765
ADDRESS = f"http://127.0.0.1:{PORT}"
OURS = {"origin": ADDRESS}
HOSTILE = "<script>alert(1)</script>"
QUICK = {"target": "state", "method": "fisher", "features": "2", "cv": "3", "permutations": "0"}


def table_text(n_samples=36, seed=0):
    """A small table with names of samples, a suspicious cell and a hostile name; two columns carry the outcome."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 5)).round(3).astype(object)
    state = np.where(X[:, 0] - X[:, 1] > 0, "sick", "well")
    X[3, 2] = "k.A."
    lines = [",".join(["sample", "a", "b", "c", "d", HOSTILE, "state"])]
    lines += [
        ",".join([f"s{i}", *map(str, row), label])
        for i, (row, label) in enumerate(zip(X, state, strict=True))
    ]
    return "\n".join(lines) + "\n"


def client_of(context, *, with_cookie=True):
    client = TestClient(pages(context), base_url=ADDRESS, raise_server_exceptions=False)
    if with_cookie:
        client.cookies.set(context.access.cookie, context.access.session)
    return client


@pytest.fixture
def context(tmp_path):
    return Context(tmp_path / "work", Access("127.0.0.1", PORT), most_bytes=1 << 20)


@pytest.fixture
def client(context):
    return client_of(context)


@pytest.fixture
def table(context):
    """The name of a table in the working folder."""
    context.tables.folder.mkdir(parents=True)
    (context.tables.folder / "patients.csv").write_text(table_text(), encoding="utf-8")
    return "patients.csv"


@pytest.fixture
def in_this_process(monkeypatch):
    """WatchedRuns are done at once, without a process of their own."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    monkeypatch.setattr(_worker.signal, "signal", lambda *_: None)
    monkeypatch.setattr(runs, "launch", lambda run: _worker.main(run.folder))
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The context of a working folder with a finished run, and the run."""
    folder = tmp_path_factory.mktemp("finished")
    context = Context(folder, Access("127.0.0.1", PORT), most_bytes=1 << 20)
    context.tables.folder.mkdir()
    (context.tables.folder / "patients.csv").write_text(table_text(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_worker.signal, "signal", lambda *_: None)
        patch.setattr(runs, "launch", lambda run: _worker.main(run.folder))
        options = {"target": "state", "method": "fisher", "features": 2, "cv": 3, "permutations": 0}
        arguments = {"data": str(context.tables.path("patients.csv")), **options}
        run = context.runs.start("select", "patients.csv", arguments)
    assert run.state == "finished", run.outcome
    return context, run
