"""Compiled loops in worker processes, without a writable cache, and warmed up ahead of time."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from joblib import Parallel, delayed
from numba import types

from solvers.problems import classification
from zeronorm._jit import kernel
from zeronorm.solvers import warmup
from zeronorm.solvers.svm._dual import solve_svm_dual


def test_a_worker_takes_a_large_read_only_matrix():
    def solve_in_worker(K, y):
        return solve_svm_dual(K, y).alpha, isinstance(K, np.memmap) and not K.flags.writeable

    X, y = classification(400, 500)
    K = X @ X.T
    assert K.nbytes > 1 << 20
    expected = solve_svm_dual(K, y)
    parallel = Parallel(n_jobs=2, backend="loky", max_nbytes="1M")
    for alpha, was_read_only in parallel(delayed(solve_in_worker)(K, y) for _ in range(2)):
        assert was_read_only
        np.testing.assert_allclose(alpha, expected.alpha, atol=1e-12)


@kernel
def plus(a, b):
    return a + b


@kernel
def plus_one_and_two(a, b):
    return plus(plus(a, b), 2) + plus(1, b)


def test_a_literal_number_does_not_compile_again():
    assert plus_one_and_two(3, plus(2, 2)) == 14
    part = plus._called
    for second in (types.int64, types.literal(2)):
        part.compile((types.int64, second))
    assert len(part.signatures) == 1
    assert plus(1, 1) == 2  # also for Python, after it became a part of another


def run_python(code, **environment):
    """Run code in a fresh process that inherits no setting of numba's cache folder."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_writable_folder_for_the_cache():
    out = run_python(
        """
        import numba.core.caching as caching

        def nowhere(self):
            raise OSError("read-only file system")

        # A superuser may write anywhere, so that the folders are refused one step later.
        caching._CacheLocator.ensure_cache_path = nowhere
        import numpy as np
        from zeronorm.solvers.svm._smo import refresh, smo

        f = np.zeros(2)
        refresh(2.0 * np.eye(2), np.zeros(2), np.arange(2), np.array([1.0, -1.0]), np.ones(2), f)
        print(*f, *(type(k.dispatcher._cache).__name__ for k in (refresh, smo)))
        """
    )
    assert out.split() == ["2.0", "-2.0", "NullCache", "NullCache"]


def test_importing_the_solvers_does_not_import_numba():
    out = run_python(
        """
        import sys
        import zeronorm.solvers.linear, zeronorm.solvers._linear_program
        print("numba" in sys.modules)
        """
    )
    assert out.strip() == "False"


def test_after_a_warmup_nothing_is_compiled_again():
    """Uses the cache of this test run, which other tests need too: a separate folder takes 20 seconds to compile."""
    here = {k: v for k, v in os.environ.items() if k == "NUMBA_CACHE_DIR"}
    code = """
        from zeronorm.solvers import warmup
        from zeronorm.solvers._geometry import project_in_place
        from zeronorm.solvers.svm._smo import refresh, smo
        warmup()
        hits = sum(sum(k.dispatcher.stats.cache_hits.values()) for k in (smo, refresh, project_in_place))
        print(hits)
    """
    warmup()
    assert run_python(code, **here).strip() == "3"


COMPILE_TOGETHER = """
    import sys
    import numpy as np
    from numba.core import event
    from zeronorm.solvers.svm._smo import refresh

    compiled = []

    class Noted(event.Listener):
        def on_start(self, event):
            compiled.append(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event):
            pass

    refresh.dispatcher
    event.register("numba:compile", Noted())
    print("ready", flush=True)
    sys.stdin.readline()
    f = np.zeros(2)
    refresh(2.0 * np.eye(2), np.zeros(2), np.arange(2), np.array([1.0, -1.0]), np.ones(2), f)
    print(*f, compiled.count("refresh"))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of this kind")
def test_of_two_processes_one_compiles_and_the_other_reads(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(COMPILE_TOGETHER)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        print("go", file=process.stdin, flush=True)
    answers = [process.communicate(timeout=600)[0].split() for process in both]
    assert sorted(answers) == [["2.0", "-2.0", "0"], ["2.0", "-2.0", "1"]]
