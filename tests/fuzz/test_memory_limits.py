"""Fits under a memory limit: a result, or a message with the size that is needed; never a crash."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

FIT = """
    import resource, sys
    import numpy as np
    import zeronorm, zeronorm.models as models
    from zeronorm.execution import NotEnoughMemoryError

    cls = getattr(zeronorm, sys.argv[1], None) or getattr(models, sys.argv[1])
    X = np.random.default_rng(0).normal(size=(60_000, 20))
    y = (X[:, 0] > 0).astype(int)
    limit = 6 * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        cls().fit(X, y)
        print("right")
    except NotEnoughMemoryError as error:
        print("refused", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["GFlip", "RelevanceVectorClassifier", "RelevanceVectorRegressor", "SparseKernelSVC"]
)
def test_a_memory_limit_is_respected(name):
    code = textwrap.dedent(FIT)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, name], capture_output=True, text=True)
    print(name, done.stdout)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith(("right", "refused"))
    assert "GiB are free; " in done.stdout
