"""False discovery rate and power of DummySelector, StabilitySelection and KnockoffSelector beside other packages.

``python docs/trust/discovery_rates.py --sets 20 --methods DummySelector --most-values 1000000`` adds to
``discovery_rates.csv`` until every setting with at most that many values of X has 20 data sets for each of the
methods; a run that is interrupted is continued by the next one. All methods get the same data sets and the same level.
The packages come with ``pip install zeronorm[bench]``; those that are not installed are left out. They know no sample
groups, so they run on independent samples only. ``--summary`` prints, for each method, the settings above the level.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from discovery_settings import DataSet, Setting, draw_data, settings

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
    return np.flatnonzero(found["selected_var"])


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


# -- The table ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Figures of one method in one setting; the names are those of the columns of the file."""

    columns: str
    target: str
    patients: str
    n: int
    features: int
    relevant: int
    snr: float
    method: str
    sets: int
    rate: float
    rate_error: float
    power: float
    power_error: float
    seconds: float

    @property
    def key(self) -> tuple[object, ...]:
        """The setting and the method."""
        return astuple(self)[:8]

    @property
    def exceeds(self) -> bool:
        """Whether the rate is above the level by more than two standard errors."""
        return self.rate > LEVEL + BOUND * self.rate_error


def read(file: Path = FILE) -> dict[tuple[object, ...], Row]:
    """The rows of a file, if there is one."""
    if not file.exists():
        return {}
    kinds = {"int": int, "float": float, "str": str}
    with file.open(encoding="utf-8", newline="") as stream:
        rows = [
            Row(*(kinds[str(field.type)](line[field.name]) for field in fields(Row)))
            for line in csv.DictReader(stream)
        ]
    return {row.key: row for row in rows}


def write(rows: Iterable[Row], file: Path = FILE) -> None:
    """Write all rows, so that an interruption leaves the old or the new file."""
    names = [field.name for field in fields(Row)]
    beside = file.with_suffix(".new")
    with beside.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(astuple(row) for row in sorted(rows, key=lambda row: [str(x) for x in row.key]))
    beside.replace(file)


def key_of(setting: Setting, method: str) -> tuple[object, ...]:
    """The key of a row."""
    target = "classes" if setting.is_class else "real"
    patients = "3 to 5 samples each" if setting.is_repeated else "one sample each"
    sizes = (setting.n, setting.p, setting.relevant, setting.snr)
    return (setting.columns, target, patients, *sizes, method)


def one_set(setting: Setting, number: int, method: str, seed: int) -> tuple[float, float, float]:
    """Share of false features, share of the relevant ones that were found, processor seconds."""
    data = draw_data(setting, (number, seed))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no power, no convergence, and what the other packages warn of
        chosen = METHODS[method](data, setting.is_class, seed)
    seconds = time.process_time() - start
    false = float(np.mean(~np.isin(chosen, data.relevant))) if chosen.size else 0.0
    return false, float(np.isin(data.relevant, chosen).mean()), seconds


def added(row: Row | None, key: tuple[object, ...], found: list[tuple[float, float, float]]) -> Row:
    """A row with further data sets; means and standard errors are pooled."""
    rates, powers, seconds = np.asarray(found).T
    count = len(found)
    if row is None:
        figures = (*_mean_and_error(rates), *_mean_and_error(powers), float(seconds.mean()))
    else:
        old = row.sets
        count += old
        figures = (
            *_pooled(row.rate, row.rate_error, old, rates),
            *_pooled(row.power, row.power_error, old, powers),
            (old * row.seconds + float(seconds.sum())) / count,
        )
    return Row(*key, count, *(round(value, 4) for value in figures))  # type: ignore[arg-type]


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / np.sqrt(values.size))


def _pooled(mean: float, error: float, count: int, values: np.ndarray) -> tuple[float, float]:
    both = count + values.size
    total = (count * mean + values.sum()) / both
    square = (count * (error**2 * count + mean**2) + np.sum(values**2)) / both
    return float(total), float(np.sqrt(max(square - total**2, 0.0) / both))


def run(sets: int, methods: list[str], chosen: Iterable[Setting], file: Path = FILE) -> Iterator[Row]:
    """Add data sets until every setting has ``sets`` of them, smaller settings first; yields each row."""
    numbers = {setting: number for number, setting in enumerate(settings())}
    for setting in sorted(chosen, key=lambda one: (one.n * one.p, numbers[one])):
        for method in methods:
            if method in PEERS and (setting.is_repeated or find_spec(method) is None):
                continue
            rows, key = read(file), key_of(setting, method)
            done = rows[key].sets if key in rows else 0
            if done >= sets:
                continue
            found = [one_set(setting, numbers[setting], method, seed) for seed in range(done, sets)]
            row = added(rows.get(key), key, found)
            write((read(file) | {key: row}).values(), file)
            yield row


def summary(rows: Iterable[Row]) -> Iterator[str]:
    """For each method: settings, those above the level, mean rate and power; then the settings above."""
    rows = list(rows)
    for method in METHODS:
        own = [row for row in rows if row.method == method]
        if own:
            above = [row for row in own if row.exceeds]
            rates, powers = (np.mean([getattr(row, name) for row in own]) for name in ("rate", "power"))
            yield f"{method}: {len(own)} settings, {len(above)} above, rate {rates:.3f}, power {powers:.3f}"
            yield from (f"  {row}" for row in above)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", type=int, default=20, help="data sets per setting and method")
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--columns", nargs="*", help="kinds of columns; all if none is given")
    parser.add_argument("--most-values", type=int, default=10**9, help="largest n times p")
    parser.add_argument("--patients", choices=["one", "repeated", "both"], default="both")
    parser.add_argument("--summary", action="store_true", help="only read the table")
    parser.add_argument("--file", type=Path, default=FILE)
    arguments = parser.parse_args()
    if arguments.summary:
        print("\n".join(summary(read(arguments.file).values())))
        return
    chosen = [
        one
        for one in settings()
        if one.n * one.p <= arguments.most_values
        and (not arguments.columns or one.columns in arguments.columns)
        and (arguments.patients == "both" or one.is_repeated == (arguments.patients == "repeated"))
    ]
    for row in run(arguments.sets, arguments.methods, chosen, arguments.file):
        print(*astuple(row), flush=True)


if __name__ == "__main__":
    main()
