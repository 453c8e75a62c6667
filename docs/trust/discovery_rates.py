"""False discovery rate and power of DummySelector, StabilitySelection and KnockoffSelector beside other packages.

``python docs/trust/discovery_rates.py --sets 20 --processes 16 --seconds 400 --draws draws.csv`` appends one line for
each data set and method to ``draws.csv``, and can be interrupted and continued: every setting gets its first data set
before any gets its second; large ones and those with repeated patients get a third as many. ``--summary`` makes
``discovery_rates.csv`` of such files and prints, for each method, the settings above the level. All methods get the
same data sets and the same level. The packages come with ``pip install zeronorm[bench]``; those that are not installed
are left out. They know no sample groups, so they run on independent samples only.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from discovery_settings import DataSet, Setting, draw_data, settings
from parallel_tasks import results

from zeronorm import DummySelector, KnockoffSelector, StabilitySelection
from zeronorm.registry import get_method

FILE = Path(__file__).with_name("discovery_rates.csv")
LEVEL = 0.2
Select = Callable[[DataSet, bool, int], np.ndarray]
BOUND = 2.0  # standard errors by which a rate may exceed the level before it counts


# -- Methods ------------------------------------------------------------------------------------------


def _task(is_class: bool) -> str:
    return "classification" if is_class else "regression"


def dummies(**options: object) -> Select:
    """DummySelector with these options."""

    def select(data: DataSet, is_class: bool, seed: int) -> np.ndarray:
        selector = DummySelector(level=LEVEL, task=_task(is_class), random_state=seed, **options)
        return selector.fit(data.X, data.y, groups=data.groups).get_support(indices=True)

    return select


def knockoffs(data: DataSet, is_class: bool, seed: int) -> np.ndarray:
    """KnockoffSelector with its own statistic."""
    selector = KnockoffSelector(level=LEVEL, task=_task(is_class), random_state=seed)
    return selector.fit(data.X, data.y, groups=data.groups).get_support(indices=True)


def stability(data: DataSet, is_class: bool, seed: int) -> np.ndarray:
    """StabilitySelection with the integrated bound, around least-angle regression."""
    wrapped = get_method("lasso").cls(method="lars", task=_task(is_class))
    selector = StabilitySelection(wrapped, bound="integrated", level=LEVEL, random_state=seed)
    return selector.fit(data.X, data.y, groups=data.groups).get_support(indices=True)


def t_rex(data: DataSet, is_class: bool, seed: int) -> np.ndarray:
    """The T-Rex selector of its authors; its variants for groups of correlated columns fail in 0.6.18."""
    from trexselector import trex

    with contextlib.redirect_stdout(io.StringIO()):
        found = trex(data.X, data.y.astype(float), tFDR=LEVEL, seed=seed, verbose=False)
    return np.asarray(found["selected_var"], dtype=np.intp)  # positions, not a mask


def authors_ipss(data: DataSet, is_class: bool, seed: int) -> np.ndarray:
    """Integrated path stability selection of its authors, by the l1 norm."""
    from ipss import ipss

    np.random.seed(seed)  # noqa: NPY002  ipss draws from the global generator
    with contextlib.redirect_stdout(io.StringIO()):
        found = ipss(data.X, data.y, selector="l1", target_fdr=LEVEL)
    return np.asarray(found["selected_features"], dtype=np.intp)


def knockpy(data: DataSet, is_class: bool, seed: int) -> np.ndarray:
    """knockpy's minimum-variance knockoffs with masked likelihood ratios, for classes with the Lasso."""
    from knockpy.knockoff_filter import KnockoffFilter

    np.random.seed(seed)  # noqa: NPY002  knockpy draws from the global generator
    peer = KnockoffFilter("lasso" if is_class else "mlr", "gaussian", knockoff_kwargs={"method": "mvr"})
    with contextlib.redirect_stdout(io.StringIO()):
        found = peer.forward(data.X, data.y.astype(float), fdr=LEVEL, shrinkage="ledoitwolf")
    return np.flatnonzero(found)


def hidimstat(data: DataSet, is_class: bool, seed: int) -> np.ndarray:
    """hidimstat's model-X knockoffs."""
    from hidimstat import ModelXKnockoff

    peer = ModelXKnockoff(random_state=seed)
    peer.fit_importance(data.X, np.where(data.y > 0, 1.0, -1.0) if is_class else data.y)
    return np.flatnonzero(peer.fdr_selection(fdr=LEVEL) > 0)


METHODS: dict[str, Select] = {
    "DummySelector": dummies(),
    "KnockoffSelector": knockoffs,
    "StabilitySelection": stability,
    "trexselector": t_rex,
    "ipss": authors_ipss,
    "hidimstat": hidimstat,
    "knockpy": knockpy,
}
PEERS = tuple(name for name in METHODS if name[0].islower())  # named after their packages


# Largest n p of a method, and after how many data sets of DummySelector it gets one: all of them share the time.
MOST_VALUES = {
    "KnockoffSelector": 600_000,
    "StabilitySelection": 200_000,
    "trexselector": 1_000_000,
    "ipss": 1_000_000,
    "hidimstat": 20_000,
    "knockpy": 100_000,
}
TURNS = {"KnockoffSelector": 2, "StabilitySelection": 8}
MANY_VALUES = (
    10_000_000  # n p of settings that get a third as many data sets, as those with repeated patients do
)
MOST_KNOCKOFFS = 1000  # columns


# -- One data set -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """One method on one data set; the names are those of the columns of the file of draws.

    ``selected`` is -1 if the method did not end in time, and -2 if it raised an error.
    """

    columns: str
    target: str
    patients: str
    n: int
    features: int
    relevant: int
    snr: float
    method: str
    seed: int
    selected: int
    false: int
    seconds: float

    @property
    def setting(self) -> tuple[object, ...]:
        """The setting and the method."""
        return astuple(self)[:8]


Task = tuple[int, str, int]  # number of the setting, method, seed


def tasks(chosen: Iterable[int], methods: Iterable[str], sets: int) -> list[Task]:
    """All tasks, the first data sets of all settings before the second ones; long ones begin first."""
    table = settings()
    found = [
        (number, method, seed)
        for number in chosen
        for method in methods
        for seed in range(-(-sets // _turns(table[number], method)))
        if _suits(table[number], method)
    ]
    return sorted(
        found,
        key=lambda one: (
            one[2] * _turns(table[one[0]], one[1]),
            -table[one[0]].n * table[one[0]].p,
            one[0],
            one[1],
        ),
    )


def _turns(setting: Setting, method: str) -> int:
    """After how many data sets of an ordinary setting one of this setting follows."""
    is_dear = setting.n * setting.p >= MANY_VALUES or setting.is_repeated
    return TURNS.get(method, 1) * (3 if is_dear else 1)


def _suits(setting: Setting, method: str) -> bool:
    if setting.n * setting.p > MOST_VALUES.get(method, 10**9):
        return False
    if method in PEERS and (setting.is_repeated or find_spec(method) is None):
        return False
    return method != "KnockoffSelector" or setting.p <= MOST_KNOCKOFFS


def run_task(task: Task) -> tuple[int, int, float]:
    """Number of selected and of false features, processor seconds."""
    number, method, seed = task
    setting = settings()[number]
    data = draw_data(setting, (number, seed))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no power, no convergence, and what the other packages warn of
        chosen = METHODS[method](data, setting.is_class, seed)
    seconds = time.process_time() - start
    return int(chosen.size), int(np.sum(~np.isin(chosen, data.relevant))), round(seconds, 3)


def draw_of(task: Task, result: object) -> Draw:
    """The line for the result of a task."""
    number, method, seed = task
    one = settings()[number]
    target = "classes" if one.is_class else "real"
    patients = "3 to 5 samples each" if one.is_repeated else "one sample each"
    figures = result if isinstance(result, tuple) else (-1 if result is None else -2, 0, 0.0)
    return Draw(one.columns, target, patients, one.n, one.p, one.relevant, one.snr, method, seed, *figures)


def read(file: Path, kind: type) -> list:
    """The rows of a file, as records of this kind; none if there is no file."""
    if not file.exists():
        return []
    convert = {"int": int, "float": float, "str": str}
    with file.open(encoding="utf-8", newline="") as stream:
        return [
            kind(*(convert[str(field.type)](line[field.name]) for field in fields(kind)))
            for line in csv.DictReader(stream)
            if None not in line.values()  # the last line of an interrupted run
        ]


def run(
    todo: list[Task], file: Path, n_processes: int, seconds: float, task_seconds: float
) -> Iterator[Draw]:
    """Run the tasks that the file does not hold yet; append and yield each draw."""
    done = {(one.setting, one.seed) for one in read(file, Draw)}
    left = [task for task in todo if ((one := draw_of(task, None)).setting, one.seed) not in done]
    is_new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        if is_new:
            writer.writerow([field.name for field in fields(Draw)])
        for task, result in results(run_task, left, n_processes, seconds, task_seconds):
            draw = draw_of(task, result)
            writer.writerow(astuple(draw))
            stream.flush()
            yield draw


# -- The table ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Figures of one method in one setting; the names are those of the columns of the published file."""

    columns: str
    target: str
    patients: str
    n: int
    features: int
    relevant: int
    snr: float
    method: str
    sets: int
    failed: int
    rate: float
    rate_error: float
    power: float
    power_error: float
    seconds: float

    @property
    def exceeds(self) -> bool:
        """Whether the rate is above the level by more than two standard errors."""
        return self.rate > LEVEL + BOUND * self.rate_error


def row_of(draws: list[Draw]) -> Row:
    """The row of the draws of one setting and method; what did not end or raised an error is counted beside."""
    ended = [one for one in draws if one.selected >= 0]
    rates = [one.false / max(one.selected, 1) for one in ended]
    powers = [(one.selected - one.false) / one.relevant for one in ended]
    seconds = float(np.mean([one.seconds for one in ended])) if ended else 0.0
    figures = (*_mean_and_error(rates), *_mean_and_error(powers), seconds)
    return Row(
        *draws[0].setting, len(ended), len(draws) - len(ended), *(round(value, 4) for value in figures)
    )  # type: ignore[arg-type]


def _mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean and standard error; that of fewer than two values is 1."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 1.0
    return (float(np.mean(values)) if values else 0.0), error


def tabulate(draws: Iterable[Draw], file: Path = FILE) -> list[Row]:
    """Write the rows of all settings and methods."""
    by_setting: dict[tuple[object, ...], dict[int, Draw]] = defaultdict(dict)
    for draw in draws:
        by_setting[draw.setting][draw.seed] = draw
    rows = [row_of(list(found.values())) for _, found in sorted(by_setting.items(), key=str)]
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        writer.writerows(astuple(row) for row in rows)
    return rows


def tabulate_kinds(draws: Iterable[Draw], file: Path) -> None:
    """Write rate and power over all settings with the same kind of columns, target, patients and method."""
    by_kind: dict[tuple[str, ...], dict[tuple[object, ...], Draw]] = defaultdict(dict)
    for draw in draws:
        kind = (draw.columns, draw.target, draw.patients, draw.method)
        by_kind[kind][(*draw.setting, draw.seed)] = draw
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        names = ("columns", "target", "patients", "method", "settings", "data sets")
        writer.writerow((*names, "rate", "rate error", "power", "power error"))
        for kind, found in sorted(by_kind.items()):
            row = row_of(list(found.values()))
            settings_of_kind = len({draw.setting for draw in found.values()})
            writer.writerow((*kind, settings_of_kind, row.sets, *astuple(row)[10:14]))


def summary(rows: list[Row]) -> Iterator[str]:
    """For each method and kind of samples: settings, those above the level, mean rate and power; then those above."""
    for method in METHODS:
        for patients in sorted({row.patients for row in rows}):
            own = [row for row in rows if (row.method, row.patients) == (method, patients) and row.sets > 1]
            if own:
                above = [row for row in own if row.exceeds]
                rates, powers = (np.mean([getattr(row, name) for row in own]) for name in ("rate", "power"))
                yield (
                    f"{method}, {patients}: {len(own)} settings, {len(above)} above, rate {rates:.3f}, "
                    f"power {powers:.3f}"
                )
                yield from (f"  {row}" for row in above)
    yield from _against_peers(rows)


def _against_peers(rows: list[Row]) -> Iterator[str]:
    """For each other package: mean power of DummySelector in the settings in which both ended."""
    key = {(*astuple(row)[:7], row.method): row for row in rows}
    for method in PEERS:
        pairs = [
            (row, key[(*astuple(row)[:7], "DummySelector")])
            for row in rows
            if row.method == method and (*astuple(row)[:7], "DummySelector") in key and row.sets > 1
        ]
        if pairs:
            theirs, ours = (np.mean([pair[side].power for pair in pairs]) for side in (0, 1))
            kept = [pair for pair in pairs if not pair[0].exceeds]
            theirs_kept, ours_kept = (
                np.mean([pair[side].power for pair in kept]) if kept else 0.0 for side in (0, 1)
            )
            yield (
                f"{method}: {len(pairs)} settings, power {theirs:.3f}, DummySelector {ours:.3f}; "
                f"{len(kept)} within the level, power {theirs_kept:.3f}, DummySelector {ours_kept:.3f}"
            )


def _warm_up(methods: Iterable[str]) -> None:
    """Compile the kernels once, before the processes begin."""
    for method in methods:
        if method not in PEERS:
            for number in (0, 1, settings().index(next(one for one in settings() if one.is_repeated))):
                run_task((number, method, 0))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", type=int, default=20, help="data sets per setting")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--columns", nargs="*", help="kinds of columns; all if none is given")
    parser.add_argument("--most-values", type=int, default=10**9, help="largest n times p")
    parser.add_argument("--patients", choices=["one", "repeated", "both"], default="both")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which the run ends")
    parser.add_argument("--task-seconds", type=float, default=120.0, help="after which one fit is ended")
    parser.add_argument("--draws", type=Path, nargs="+", default=[FILE.with_name("draws.csv")])
    parser.add_argument("--summary", action="store_true", help="make the table of these draws, run nothing")
    parser.add_argument("--file", type=Path, default=FILE, help="the table")
    options = parser.parse_args()
    start = time.monotonic()
    if not options.summary:
        chosen = [
            number
            for number, one in enumerate(settings())
            if one.n * one.p <= options.most_values
            and (not options.columns or one.columns in options.columns)
            and (options.patients == "both" or one.is_repeated == (options.patients == "repeated"))
        ]
        _warm_up(options.methods)
        todo = tasks(chosen, options.methods, options.sets)
        left = options.seconds - (time.monotonic() - start)
        count = sum(1 for _ in run(todo, options.draws[0], options.processes, left, options.task_seconds))
        print(f"{count} of {len(todo)} tasks", flush=True)
    draws = [draw for file in options.draws for draw in read(file, Draw)]
    tabulate_kinds(draws, options.file.with_name(options.file.stem + "_by_kind.csv"))
    print("\n".join(summary(tabulate(draws, options.file))))


if __name__ == "__main__":
    main()
