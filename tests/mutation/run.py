"""Puts one fault at a time into the package and runs the tests that reach it.

``python tests/mutation/run.py`` first learns which lines each test runs (once for each state of the sources), then
tries the named faults of ``faults.py`` and random ones in the packages given. A fault that no test notices survives;
survivors are listed with their position, to be examined: ``no_change.py`` holds those that change no result. Some
trials have no fault and must survive. Learning is faster with Python 3.12 or newer.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import hashlib
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import forked
from faults import NAMED_FAULTS
from mutants import Mutant, Reach, is_program, mutants_of
from no_change import CHANGES_NOTHING

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "zeronorm"
CACHE = ROOT / ".cache" / "mutation"
PACKAGES = ("design", "solvers", "selectors", "evaluation", "workflow")
KILLED, LATE, SURVIVED, UNREACHED, JUDGED = "killed", "killed by time", "survived", "unreached", "no change"
LOST, CONTROL, ALARM = "lost", "control", "false alarm"
# They read texts, not results, or look whether compiled code comes from the cache, which a fault is kept from.
TESTS_LEFT_OUT = (
    "test_compiled_loops.py",
    "test_docs.py",
    "test_readme.py",
    "test_supply_chain.py",
    "test_layers.py",
    "test_browser.py",
)
# They look at the defaults of a function or class, whose name ends their own, without calling it.
TESTS_OF_DEFAULTS = (
    "tests/solvers/test_solver_defaults.py::test_the_defaults",
    "tests/test_docstrings.py::test_every_parameter_has_type_default_and_text",
    "tests/test_parameters.py::test_the_docstring_describes_every_parameter_with_type_and_default",
)
TESTS_AT_A_TIME = 120
MEMORY_LIMIT = 8 << 30  # bytes of one trial: a fault may ask for more than there is
CONTROL_EVERY = 12  # faults, one trial without
FORKING = multiprocessing.get_context("forkserver")
RUNNING: set[int] = set()  # processes that run tests, each with a group of its own
STOPPED = threading.Event()


@dataclass(frozen=True)
class Trial:
    """A change of one file and the tests that may notice it, each with the seconds it takes without the change."""

    package: str
    name: str
    key: tuple[str, str, str, str]
    file: str
    text: str
    tests: dict[str, float]
    n_reaching: int
    compiled: bool


@dataclass(frozen=True)
class Outcome:
    package: str
    name: str
    key: tuple[str, str, str, str]
    outcome: str
    killer: str
    n_tests: int
    n_reaching: int
    seconds: float


# -- Running tests --


def environment(**more: str) -> dict[str, str]:
    inside = Path(__file__).parent / "inside"
    path = os.pathsep.join([str(inside), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    settings = {
        **os.environ,
        "PYTHONPATH": path,
        "NUMBA_CACHE_DIR": str(CACHE / f"numba-{fingerprint('src')}"),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **more,
    }
    # Otherwise the sources of Python would be compiled anew for each fault.
    settings.pop("PYTHONDONTWRITEBYTECODE", None)
    return settings


def pytest(
    files: Iterable[str], orders: dict, folder: Path, limit_s: float, **more: str
) -> tuple[int, str, float]:
    """The status, the output and the time of chosen tests; minus a signal where it ended them."""
    (folder / "orders.json").write_text(json.dumps(orders), encoding="utf-8")
    arguments = ["-q", "-x", "-m", "not slow", "--tb=no"]
    arguments += ["-p", "no:cacheprovider", "-p", "mutation_plugin", f"--basetemp={folder / 'temporary'}"]
    arguments += [
        f"--rootdir={ROOT}",
        "-c",
        str(ROOT / "pyproject.toml"),
        *(str(ROOT / file) for file in files),
    ]
    if orders["ran"] is not None:
        arguments.remove("-x")
    started = time.monotonic()
    settings = environment(ZERONORM_TRIAL=str(folder / "orders.json"), **more)
    output, standing = folder / "output", folder / "standing"
    standing.mkdir(exist_ok=True)  # a fault may let a test write where it stands
    folders = (str(ROOT), str(standing))
    process = FORKING.Process(
        target=forked.run, args=(arguments, settings, folders, MEMORY_LIMIT, str(output))
    )
    process.start()
    assert process.pid is not None
    RUNNING.add(process.pid)
    try:
        process.join(0.0 if STOPPED.is_set() else limit_s)
        status = -signal.SIGALRM if process.exitcode is None else process.exitcode
    finally:
        RUNNING.discard(process.pid)
        end_with_children(process.pid)
        process.join()
        process.close()
    return status, forked.text_of(output), time.monotonic() - started


def end_with_children(pid: int) -> None:
    """With whatever the tests have started; a process that has just begun has no group yet."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            end(pid, signal.SIGKILL)
            return


def end_when_asked() -> None:
    """On a signal to end, also end the processes that run tests, which do not get the signal."""

    def end(number: int, _: object) -> None:
        STOPPED.set()
        for pid in tuple(RUNNING):
            end_with_children(pid)
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)


@functools.cache  # sources that change meanwhile count from the next run on
def fingerprint(*names: str) -> str:
    found = hashlib.sha256(sys.version.encode())
    for name in names:
        found.update(name.encode())
        for path in sorted((ROOT / name).rglob("*.py")) or [ROOT / name]:
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


# -- Which test runs which line --


@dataclass(frozen=True)
class Map:
    tests: list[str]
    seconds: list[float]
    ran: dict[str, dict[int, set[int]]]  # by file and line
    others: list[str]  # tests that were skipped or do not pass here


def lines_of_tests(jobs: int, chosen: list[str]) -> Map:
    """From the cache or by running the tests; a test file is run again when it or the sources have changed."""
    kept = CACHE / f"lines-{fingerprint('src', 'tests/mutation/inside')}"
    kept.mkdir(parents=True, exist_ok=True)
    parts = _parts_of_tests(chosen)
    print(f"{sum(len(tests) for _, tests in parts)} tests in {len(parts)} parts", flush=True)
    tests: list[str] = []
    seconds: list[float] = []
    ran: dict[str, dict[int, set[int]]] = {}
    others: list[str] = []
    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda part: _lines_of_part(*part, kept), parts):
            others += found["others"]
            for entry in found["passed"]:
                for name, lines in entry["lines"].items():
                    for line in lines:
                        ran.setdefault(name, {}).setdefault(line, set()).add(len(tests))
                tests.append(entry["test"])
                seconds.append(entry["seconds"])
    print(f"{len(tests)} pass in {sum(seconds):.0f} s, {len(others)} do not or are skipped", flush=True)
    return Map(tests, seconds, ran, others)


def _parts_of_tests(chosen: list[str]) -> list[tuple[str, list[str]]]:
    """Test files with their tests, large files in several parts, the largest first."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not slow"]
    command += ["-p", "no:cacheprovider", *chosen]
    listed = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True).stdout
    by_file: dict[str, list[str]] = {}
    for line in listed.splitlines():
        if "::" in line and line.startswith("tests/"):
            by_file.setdefault(line.partition("::")[0], []).append(line)
    if not by_file:
        raise RuntimeError(f"No tests were found:\n{listed[-2000:]}")
    parts = [
        (file, tests[first : first + TESTS_AT_A_TIME])
        for file, tests in by_file.items()
        if Path(file).name not in TESTS_LEFT_OUT
        for first in range(0, len(tests), TESTS_AT_A_TIME)
    ]
    return sorted(parts, key=lambda part: -len(part[1]))


def _lines_of_part(file: str, tests: list[str], kept: Path) -> dict:
    key = hashlib.sha256("\n".join([(ROOT / file).read_text("utf-8"), *tests]).encode()).hexdigest()[:16]
    stored = kept / f"{key}.json.gz"
    if stored.exists():
        return json.loads(gzip.decompress(stored.read_bytes()))
    with tempfile.TemporaryDirectory(prefix="zeronorm-lines-") as folder:
        ran = Path(folder) / "ran.json"
        orders = {"tests": dict.fromkeys(tests, 0.0), "ran": str(ran)}
        _, output, _ = pytest([file], orders, Path(folder), 900.0, ZERONORM_WATCH=str(SOURCE))
        if ran.exists():
            found = ran.read_bytes()
            stored.write_bytes(gzip.compress(found, 1))
            return json.loads(found)
    print(f"lost: {file}\n{output[-2000:]}", flush=True)
    return {"passed": [], "others": tests}


def chosen_tests(numbers: set[int], known: Map, file: str, budget_s: float) -> dict[str, float]:
    """First those of its package, of which those of files that bear its name, the quickest first, within the time."""
    module, package = Path(file).stem, file.partition("/")[0]
    words = {module.strip("_"), module.replace("_", "")}

    def order(number: int) -> tuple[int, float]:
        path = known.tests[number].partition("::")[0]
        far = 0 if f"/{package}/" in path else 2
        return far + (not any(word in Path(path).stem for word in words)), known.seconds[number]

    chosen: dict[str, float] = {}
    files: set[str] = set()
    total = 0.0
    for number in sorted(numbers, key=order):
        path = known.tests[number].partition("::")[0]
        if total > budget_s:
            break
        if len(files | {path}) > 15:  # each is read by each trial
            continue
        files.add(path)
        chosen[known.tests[number]] = known.seconds[number]
        total += known.seconds[number]
    return chosen


def tests_of_defaults(function: str, known: Map) -> dict[str, float]:
    names = set(function.split("."))
    pairs = zip(known.tests, known.seconds, strict=True)
    return {
        test: seconds
        for test, seconds in pairs
        if test.startswith(TESTS_OF_DEFAULTS) and re.split(r"[.\[\]]", test)[-2] in names
    }


# -- Trials --


def outcome_of(trial: Trial) -> Outcome:
    started = time.monotonic()
    if not trial.tests:
        return Outcome(trial.package, trial.name, trial.key, UNREACHED, "", 0, 0, 0.0)
    extra = 75.0 if trial.compiled else 15.0
    limits = {name: 5.0 * seconds + extra for name, seconds in trial.tests.items()}
    files = dict.fromkeys(name.partition("::")[0] for name in trial.tests)
    module = ".".join(("zeronorm", *Path(trial.file).with_suffix("").parts)).removesuffix(".__init__")
    with tempfile.TemporaryDirectory(prefix="zeronorm-fault-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "fault.py").write_text(trial.text, encoding="utf-8")
        fault = {"module": module, "file": str(SOURCE / trial.file), "text": str(folder / "fault.py")}
        limit = 10.0 * sum(trial.tests.values()) + 60.0 + 8.0 * extra  # by the clock
        status, output, _ = pytest(
            files, {"tests": limits, "ran": None}, folder, limit, ZERONORM_FAULT=json.dumps(fault)
        )
    killer = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    if status in (-signal.SIGPROF, -signal.SIGALRM, -signal.SIGXCPU):
        outcome = LATE
    elif status == 0:
        outcome = SURVIVED
    else:
        outcome = KILLED
    said = (
        name_of(killer.group(1)) if killer else ("" if status == 0 else f"status {status} {output[-200:]!r}")
    )
    n_tests, seconds = len(trial.tests), round(time.monotonic() - started, 1)
    return Outcome(trial.package, trial.name, trial.key, outcome, said, n_tests, trial.n_reaching, seconds)


def name_of(test: str) -> str:
    """The path of the test in the repository; pytest prints it relative to its working directory."""
    return re.sub(rf"^[./]*{re.escape(str(ROOT)[1:])}/", "", test)


def classified(result: Outcome) -> Outcome:
    """The outcome with survivors that are known to change nothing, and failed trials without a fault, marked."""
    if result.package == CONTROL and result.outcome != SURVIVED:
        return Outcome(**{**asdict(result), "outcome": ALARM})
    if result.outcome in (SURVIVED, UNREACHED) and result.key in CHANGES_NOTHING:
        return Outcome(**{**asdict(result), "outcome": JUDGED, "killer": CHANGES_NOTHING[result.key]})
    return result


def possible(package: str) -> list[Mutant]:
    folder = SOURCE / package
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{package}.py"]
    return [mutant for file in files for mutant in mutants_of(file, SOURCE)]


def drawn(package: str, seed: int, first: int, count: int) -> list[Mutant]:
    pool = possible(package)
    random.Random(f"{seed} {package}").shuffle(pool)
    chosen = pool[first : first + count]
    return [m for m in chosen if is_program(m.applied_to((SOURCE / m.file).read_text("utf-8")))]


def random_trials(mutants: dict[str, list[Mutant]], known: Map, budget_s: float) -> list[Trial]:
    reach = Reach(SOURCE, known.ran)
    trials: list[Trial] = []
    for package, some in mutants.items():
        for number, mutant in enumerate(some):
            numbers = reach.tests(mutant)
            tests = chosen_tests(numbers, known, mutant.file, budget_s)
            if reach.is_definition(mutant):
                tests = tests_of_defaults(mutant.function, known) | tests
            text = (SOURCE / mutant.file).read_text("utf-8")
            compiled = any(file == mutant.file for places in reach.kernels.values() for file, _ in places)
            same = (tests, len(numbers), compiled)
            trials.append(
                Trial(package, mutant.name, mutant.key, mutant.file, mutant.applied_to(text), *same)
            )
            if number % CONTROL_EVERY == 0 and tests:
                trials.append(Trial(CONTROL, mutant.name, mutant.key, mutant.file, text, *same))
    return trials


def named_trials(chosen: str, known: Map) -> tuple[list[Trial], list[Outcome]]:
    trials, lost = [], []
    for fault in NAMED_FAULTS:
        if chosen == "-" or chosen not in fault.meaning:
            continue
        file = SOURCE / fault.file
        text = file.read_text("utf-8") if file.exists() else ""
        name, key = f"{fault.meaning} ({fault.file})", (fault.file, "", fault.text, fault.meaning)
        if text.count(fault.text) != 1:
            lost.append(Outcome("named", name, key, LOST, "", 0, 0, 0.0))
            continue
        pairs = zip(known.tests, known.seconds, strict=True)
        tests = {test: seconds for test, seconds in pairs if is_in(test.partition("::")[0], fault.tests)}
        ordered = dict(sorted(tests.items(), key=lambda pair: pair[1]))
        compiled = "zeronorm._jit" in text
        new = text.replace(fault.text, fault.replacement)
        trials.append(Trial("named", name, key, fault.file, new, ordered, len(tests), compiled))
    return trials, lost


def is_in(file: str, chosen: tuple[str, ...]) -> bool:
    """Whether a test file is one of these, or in one of these folders."""
    return any(file == name or file.startswith(f"{name}/") for name in chosen)


def again(file: Path) -> dict[str, list[Mutant]]:
    """The survivors of an earlier run, as far as their lines still read the same."""
    earlier = [e for e in json.loads(file.read_text("utf-8"))["outcomes"] if e["package"] != CONTROL]
    wanted = {tuple(entry["key"]) for entry in earlier if entry["outcome"] in (SURVIVED, UNREACHED)}
    packages = dict.fromkeys(entry["package"] for entry in earlier if tuple(entry["key"]) in wanted)
    return {
        package: [mutant for mutant in possible(package) if mutant.key in wanted]
        for package in packages
        if package != "named"
    }


def wilson(found: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """Interval of the share of all faults that would be found, from a sample of them."""
    center = (found + z**2 / 2) / (total + z**2)
    half = z / (total + z**2) * (found * (total - found) / total + z**2 / 4) ** 0.5
    return center - half, center + half


def summary(results: list[Outcome]) -> str:
    lines = []
    for package in dict.fromkeys(result.package for result in results):
        counts = Counter(result.outcome for result in results if result.package == package)
        found, missed = counts[KILLED] + counts[LATE], counts[SURVIVED] + counts[UNREACHED]
        said = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        if found + missed:
            low, high = wilson(found, found + missed)
            said = f"{found} of {found + missed} found, 95 % interval {low:.0%} to {high:.0%} ({said})"
        lines.append(f"{package:12} {said}")
    return "\n".join(lines)


def write(results: list[Outcome], file: Path | None) -> None:
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "summary": summary(results).splitlines(),
            "outcomes": [asdict(result) for result in results],
        }
        file.write_text(json.dumps(content, indent=1), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trials side by side")
    parser.add_argument("--minutes", type=float, default=25.0, help="no trial begins later than this")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds of tests for one fault")
    parser.add_argument("--memory", type=int, default=8, help="GiB of addresses that one trial may have")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first random fault of each package to try")
    parser.add_argument("--count", type=int, default=40, help="how many random faults of each package")
    parser.add_argument("--named", default="", help="only named faults with this text; '-' for none")
    parser.add_argument("--again", type=Path, help="the survivors of the run with this output, no others")
    parser.add_argument("--only", default="", help="only random faults whose name has this text")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="folders or files of tests")
    parser.add_argument("--out", type=Path, help="a file for the outcomes")
    options = parser.parse_args()
    end_when_asked()
    deadline = time.monotonic() + 60.0 * options.minutes
    global MEMORY_LIMIT
    MEMORY_LIMIT = options.memory << 30
    os.environ.update(environment())  # of the process that the others fork from
    FORKING.set_forkserver_preload(forked.READ_BEFORE)
    known = lines_of_tests(options.jobs, options.tests)
    trials, results = named_trials("-" if options.again else options.named, known)
    if options.again:
        mutants = again(options.again)
    else:
        mutants = {p: drawn(p, options.seed, options.first, options.count) for p in options.packages}
    mutants = {p: [mutant for mutant in some if options.only in mutant.name] for p, some in mutants.items()}
    trials += random_trials(mutants, known, options.budget)
    # Mixed, so that a run that ends early has tried some of each package.
    random.Random(options.seed).shuffle(trials)
    results += try_all(trials, options.jobs, deadline, options.out)
    write(results, options.out)
    print(summary(results))
    wrong = {LOST, ALARM}
    return int(any(r.outcome in wrong or (r.package == "named" and r.outcome == SURVIVED) for r in results))


def try_all(trials: list[Trial], jobs: int, deadline: float, out: Path | None) -> list[Outcome]:
    results: list[Outcome] = []

    def attempt(trial: Trial) -> Outcome | None:
        if STOPPED.is_set() or time.monotonic() >= deadline:
            return None
        return classified(outcome_of(trial))

    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(attempt, trial) for trial in trials]):
            result = done.result()
            if result is not None:
                results.append(result)
                write(results, out)
                said = f"{result.outcome:15} {result.package}: {result.name}  {result.killer}"
                print(
                    f"{said} ({result.n_tests} of {result.n_reaching} tests, {result.seconds} s)", flush=True
                )
    return results


if __name__ == "__main__":
    sys.exit(main())
