"""Data sets by name: from the folder ``ZERONORM_DATA``, the user's cache, or OpenML."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zeronorm.datasets.assemble import TableOptions, build_table
from zeronorm.datasets.generators import GENERATORS
from zeronorm.datasets.raw import RawTable
from zeronorm.datasets.readers import read_raw
from zeronorm.datasets.table import DataError, Table, shown, shown_list

DATA_VARIABLE = "ZERONORM_DATA"


@dataclass(frozen=True)
class KnownData:
    """One entry: what it is, its size for checking a copy, and its number at OpenML if it has one."""

    name: str
    about: str
    n_samples: int
    n_features: int
    openml: int | None = None


def _entries() -> dict[str, KnownData]:
    rows = [
        KnownData("arcene", "cancer or normal from mass spectra", 100, 10_000),
        KnownData("breast_cancer_wisconsin_original", "benign or malignant", 699, 9, openml=15),
        KnownData("brown_yeast", "function of yeast genes, 5 classes", 208, 79),
        KnownData("colon", "colon tumour or normal tissue", 62, 2_000),
        KnownData("dexter", "texts about acquisitions (sparse)", 300, 20_000),
        KnownData("dorothea", "binding to thrombin (sparse)", 800, 100_000),
        KnownData("gisette_train_first1000", "digits 4 or 9, first 1000 features", 6_000, 1_000),
        KnownData("ionosphere", "good or bad radar returns", 351, 34, openml=59),
        KnownData("leukemia", "ALL or AML, training part", 38, 7_129),
        KnownData("lung_gordon", "mesothelioma or adenocarcinoma", 181, 12_533),
        KnownData("lymphoma", "lymphoid malignancies, 9 classes, values missing", 96, 4_026),
        KnownData("lymphoma62", "DLBCL, FL or CLL", 62, 4_026),
        KnownData("madelon", "artificial XOR-like problem", 2_000, 500),
        KnownData("mit_cbcl_faces", "face or not, 19 x 19 images", 6_977, 361),
        KnownData("prostate_seldi_binned", "prostate cancer from smoothed spectra", 654, 264),
        KnownData("prostate_seldi_peaks", "prostate cancer from spectral peaks", 652, 779),
        KnownData("sonar", "mines or rocks", 208, 60, openml=40),
        KnownData("spambase", "spam e-mail", 4_601, 57, openml=44),
        KnownData("titanic", "survival, 3 coded features", 2_201, 3, openml=40704),
        KnownData("twonorm", "Breiman's twonorm, Delve sample", 7_400, 20, openml=1507),
        KnownData("usps", "handwritten digits 16 x 16", 7_291, 256),
    ]
    return {row.name: row for row in rows}


KNOWN = _entries()


def known_names() -> list[str]:
    """All names that ``load_dataset`` takes.

    Returns
    -------
    list of str
        The names, in alphabetical order within each kind.

    Examples
    --------
    >>> from zeronorm.datasets import known_names
    >>> "linear-toy" in known_names()
    True
    """
    return [*KNOWN, *GENERATORS]


def find_local(name: str) -> Path | None:
    """The file of a data set on this machine, in the order data folder, cache."""
    folders = [Path(os.environ[DATA_VARIABLE])] if os.environ.get(DATA_VARIABLE) else []
    for folder in [*folders, cache_folder()]:
        for ending in (".npz", ".arff"):
            file = folder / f"{name}{ending}"
            if file.is_file():
                return file
    return None


def load_dataset(name: str, *, download: bool = True, random_state: int | None = 0, **options: Any) -> Table:
    """A data set or synthetic problem by name.

    Parameters
    ----------
    name : str
        One of ``known_names()``.
    download : bool, default=True
        Whether data that are not on this machine may be fetched from OpenML.
    random_state : int or None, default=0
        Seed of a synthetic problem.
    **options : object
        The fields of ``TableOptions``.

    Returns
    -------
    Table
        The features, the target and notes about what was decided.

    Examples
    --------
    >>> from zeronorm.datasets import load_dataset
    >>> load_dataset("linear-toy").X.shape
    (30, 202)
    """
    if name in GENERATORS:
        return _generated(name, random_state, options)
    entry = KNOWN.get(name)
    if entry is None:
        close = difflib.get_close_matches(name, known_names(), n=3)
        hint = f"Did you mean {shown_list(close)}?" if close else "`zeronorm datasets` lists them."
        raise DataError(f"There is no data set named {shown(name)}. {hint}")
    file = find_local(name)
    if file is None:
        file = _fetch(entry, download)
    raw = read_raw(file)
    if file.suffix == ".arff":
        options.setdefault("target", _remembered_target(file, raw))
    _check_size(entry, raw, file)
    return build_table(raw, TableOptions(**options), source=name)


def _generated(name: str, random_state: int | None, options: dict[str, Any]) -> Table:
    data = GENERATORS[name](random_state=random_state)
    raw = RawTable.from_matrix(data.X, targets={"y": data.y}, default_target="y")
    return build_table(raw, TableOptions(**options), source=f"{name} (seed {random_state})")


def _fetch(entry: KnownData, download: bool) -> Path:
    if entry.openml is None or not download:
        raise DataError(
            f"The data set {shown(entry.name)} is not on this machine. Put {entry.name}.npz into a folder and name "
            f"that folder in the environment variable {DATA_VARIABLE}."
        )
    file = cache_folder() / f"{entry.name}.arff"
    target = fetch(entry.openml, file)
    _target_note(file).write_text(json.dumps({"target": target}), encoding="utf-8")
    return file


def _target_note(file: Path) -> Path:
    return file.with_suffix(".json")


def _remembered_target(file: Path, raw: RawTable) -> str:
    """The target column OpenML named, or the last column, as is usual in ARFF files."""
    note = _target_note(file)
    if note.is_file():
        target = json.loads(note.read_text(encoding="utf-8")).get("target")
        if target:
            return str(target)
    return raw.names[-1]


def _check_size(entry: KnownData, raw: RawTable, file: Path) -> None:
    n_features = len(raw.names) - (1 if file.suffix == ".arff" else 0)
    found = (raw.n_samples, n_features)
    if found != (entry.n_samples, entry.n_features):
        raise DataError(
            f"The file {shown(str(file))} holds {found[0]} samples and {found[1]} features, but {entry.name} has "
            f"{entry.n_samples} and {entry.n_features}. Replace or remove the file."
        )


def describe(name: str) -> dict[str, Any]:
    """What the list of data sets shows about one of them."""
    if name in GENERATORS:
        doc = (GENERATORS[name].__doc__ or "").strip().splitlines()[0]
        return {"name": name, "about": doc, "n_samples": None, "n_features": None, "where": "synthetic"}
    entry = KNOWN[name]
    local = find_local(name)
    where = str(local) if local else ("OpenML" if entry.openml else f"needs {DATA_VARIABLE}")
    return {
        "name": name,
        "about": entry.about,
        "n_samples": entry.n_samples,
        "n_features": entry.n_features,
        "where": where,
    }


# -- Data sets of openml.org, downloaded once, checked against the published checksum, kept in the cache --


API = "https://www.openml.org/api/v1/json/data/"
TIMEOUT_S = 60


def cache_folder() -> Path:
    """Where downloads are kept: ``ZERONORM_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("ZERONORM_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache") / "zeronorm"


def fetch(identifier: int, file: Path, api: str = API) -> str:
    """Download the ARFF file of an OpenML data set to ``file``; return the name of its target column."""
    description = json.loads(_download(f"{api}{identifier}"))["data_set_description"]
    content = _download(description["url"])
    checksum = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if checksum != description["md5_checksum"]:
        raise DataError(
            f"The download of OpenML data set {identifier} is damaged: its MD5 is {checksum}, "
            f"{description['md5_checksum']} was published. Try again."
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}.part")
    partial.write_bytes(content)
    partial.replace(file)
    return str(description.get("default_target_attribute", ""))


def _download(address: str) -> Any:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            return answer.read()
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise DataError(
            f"{shown(address)} cannot be downloaded: {error}. Check the network, or put the file into the folder "
            "that the environment variable ZERONORM_DATA names."
        ) from error
