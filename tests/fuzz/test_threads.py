"""Several fits at once, forks, nested workers, and Ctrl-C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

from fuzz.attempt import instances
from fuzz.inputs import clean_data, is_regression

SELECTORS = instances()
# One of each kind of inner loop: compiled, linear programs, BLAS, scikit-learn's trees, folds.
KINDS = [
    "RFE-0",
    "L1SVM-0",
    "Relief-0",
    "AROM-1",
    "MarginLP-0",
    "LassoSelector-0",
    "TreeSelector-2",
    "SelectorCV-0",
]
HEARD_WITHIN_S = 2.0

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def _order(selector, seed):
    regression = is_regression(selector)
    return clone(selector).fit(*clean_data(regression, n=60, p=40, seed=seed)).path_.order


@pytest.mark.parametrize("name", KINDS)
def test_four_fits_at_once_are_four_fits(name):
    selector, seeds = SELECTORS[name], (1, 2, 1, 2)
    expected = [_order(selector, seed) for seed in seeds]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: _order(selector, seed), seeds))
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_different_methods_at_once():
    expected = [_order(SELECTORS[name], 3) for name in KINDS]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: _order(SELECTORS[name], 3), KINDS))
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def _run(code_or_module, *arguments, timeout):
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *code_or_module, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FORKS_AND_INTERRUPTS = """
    import os, sys, warnings
    import numpy as np
    from fuzz import interrupts
    from fuzz.attempt import instances
    from fuzz.inputs import clean_data
    from zeronorm.execution import stoppable

    warnings.simplefilter("ignore")
    selectors = instances()
    for name in sys.argv[1].split() if hasattr(os, "fork") else []:
        data = clean_data(False, n=60, p=40)
        expected = selectors[name].fit(*data).path_.order
        child = os.fork()
        if child == 0:
            same = (selectors[name].fit(*data).path_.order == expected).all()
            os._exit(0 if same else 1)
        print(os.waitpid(child, 0)[1])
    print("interrupts", flush=True)
    interrupts.LONG_S = 1.0
    interrupts.main(sys.argv[2].split())

    A = np.random.default_rng(0).normal(size=(1800, 1800))
    def busy():
        np.linalg.svd(A)  # one call of a second or more, which releases the lock of Python

    class Slow:
        def __init__(self, work):
            self.work = work
        def fit(self, X, y):
            self.work(busy)

    interrupts.LONG_S, interrupts.clone = 0.3, lambda s: s
    interrupts.noisy_data = lambda *_: (None, None)
    print("library")
    for work in (lambda w: w(), stoppable):
        print(interrupts.slowest_answer(Slow(work), 1, 1)[0], flush=True)
    os._exit(0)  # the call that was left still runs, and must not meet an interpreter that is being taken down
"""


@pytest.fixture(scope="module")
def outcomes_of_fits():
    """How forked fits ended, and how long fits and two calls into a library took to stop after Ctrl-C.

    In a process of its own, as the threads that a test run has started must not matter; one for all, as its start
    takes longest.
    """
    names = " ".join(KINDS), "GFlip-0"
    lines = _run(["-c", textwrap.dedent(FORKS_AND_INTERRUPTS)], *names, timeout=900).splitlines()
    first, second = lines.index("interrupts"), lines.index("library")
    fits = [json.loads(line) for line in lines[first + 1 : second]]
    return lines[:first], fits, [float(line) for line in lines[second + 1 :]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_after_a_fit_can_fit(outcomes_of_fits):
    assert outcomes_of_fits[0] == ["0"] * len(KINDS)


def test_workers_inside_workers_give_the_same():
    selector = SELECTORS["SelectorCV-0"]
    expected = [_order(selector, seed) for seed in (1, 2)]
    found = Parallel(n_jobs=2)(delayed(_order)(clone(selector).set_params(n_jobs=2), seed) for seed in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def _interrupted(names):
    lines = _run(["-m", "fuzz.interrupts"], *names, timeout=1500).splitlines()
    return [json.loads(line) for line in lines]


def _late(outcomes):
    return [found for found in outcomes if isinstance(found[3], float) and found[3] > HEARD_WITHIN_S]


def _counted(outcomes):
    print(*outcomes, sep="\n")
    measured = [found for found in outcomes if isinstance(found[3], float)]
    long = [found for found in measured if "ends before" not in found[2]]
    print(
        f"{len(outcomes)} fits: {len(long)} took long, {len(outcomes) - len(measured)} were refused; "
        f"the longest wait is {max((found[3] for found in measured), default=0.0)} s"
    )
    assert not _late(outcomes), _late(outcomes)


def test_ctrl_c_is_heard_in_long_fits(outcomes_of_fits):
    outcomes = outcomes_of_fits[1]
    assert len(outcomes) == 2
    assert sum("ends before" not in found[2] for found in outcomes) >= 1
    _counted(outcomes)


def test_a_long_call_into_a_library_can_be_left(outcomes_of_fits):
    """The listener itself: a call that does not listen is found, and ``stoppable`` makes it listen."""
    plain, heard = outcomes_of_fits[2]
    assert plain > 0.3
    assert heard < 0.7 * plain


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_ctrl_c_is_heard_in_every_method(part):
    _counted(_interrupted(list(SELECTORS)[part::10]))
