"""Data sets by name: with scikit-learn, from the folder ``ZERONORM_DATA``, the user's cache, or OpenML."""

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

import numpy as np

from zeronorm.datasets.assemble import TableOptions, build_table
from zeronorm.datasets.generators import GENERATORS
from zeronorm.datasets.raw import RawTable
from zeronorm.datasets.readers import read_raw
from zeronorm.datasets.table import DataError, Table, shown, shown_list

DATA_VARIABLE = "ZERONORM_DATA"


@dataclass(frozen=True)
class KnownData:
    """One entry: what it is, where it is from, its size for checking a copy, its number at OpenML if it has one."""

    name: str
    about: str
    n_samples: int
    n_features: int
    origin: str
    openml: int | None = None


def _entries() -> dict[str, KnownData]:
    rows = [
        KnownData("arcene", "cancer or normal from mass spectra", 100, 10_000, 'UCI repository, "Arcene"'),
        KnownData(
            "breast_cancer_wisconsin_original",
            "benign or malignant",
            699,
            9,
            'UCI repository, "Breast Cancer Wisconsin (Original)"',
            openml=15,
        ),
        KnownData(
            "brown_yeast",
            "function of yeast genes, 5 classes",
            208,
            79,
            "Brown et al. 2000, in the example data of PyML",
        ),
        KnownData(
            "colon",
            "colon tumour or normal tissue",
            62,
            2_000,
            "Alon et al. 1999, the colon data of Princeton University",
        ),
        KnownData("dexter", "texts about acquisitions (sparse)", 300, 20_000, 'UCI repository, "Dexter"'),
        KnownData("dorothea", "binding to thrombin (sparse)", 800, 100_000, 'UCI repository, "Dorothea"'),
        KnownData(
            "gisette_train_first1000",
            "digits 4 or 9, first 1000 features",
            6_000,
            1_000,
            'UCI repository, "Gisette", features 1 to 1000 of the training part',
        ),
        KnownData(
            "ionosphere", "good or bad radar returns", 351, 34, 'UCI repository, "Ionosphere"', openml=59
        ),
        KnownData(
            "leukemia",
            "ALL or AML, training part",
            38,
            7_129,
            "Golub et al. 1999, in the Bioconductor package golubEsets (training part)",
        ),
        KnownData(
            "lung_gordon",
            "mesothelioma or adenocarcinoma",
            181,
            12_533,
            "Gordon et al. 2002, in the R package datamicroarray",
        ),
        KnownData(
            "lymphoma",
            "lymphoid malignancies, 9 classes, values missing",
            96,
            4_026,
            "Alizadeh et al. 2000, with the classes of Peng et al. 2005",
        ),
        KnownData("lymphoma62", "DLBCL, FL or CLL", 62, 4_026, "Alizadeh et al. 2000, in the R package spls"),
        KnownData("madelon", "artificial XOR-like problem", 2_000, 500, 'UCI repository, "Madelon"'),
        KnownData("mit_cbcl_faces", "face or not, 19 x 19 images", 6_977, 361, "CBCL Face Database 1, MIT"),
        KnownData(
            "prostate_seldi_binned",
            "prostate cancer from smoothed spectra",
            654,
            264,
            "Adam et al. 2002, in the R package gamair",
        ),
        KnownData(
            "prostate_seldi_peaks",
            "prostate cancer from spectral peaks",
            652,
            779,
            "Adam et al. 2002, in the R package msProstate",
        ),
        KnownData(
            "sonar", "mines or rocks", 208, 60, 'UCI repository, "Connectionist Bench (Sonar)"', openml=40
        ),
        KnownData("spambase", "spam e-mail", 4_601, 57, 'UCI repository, "Spambase"', openml=44),
        KnownData(
            "titanic",
            "survival, 3 coded features",
            2_201,
            3,
            "Dawson 1995, in the Delve archive",
            openml=40704,
        ),
        KnownData(
            "twonorm",
            "Breiman's twonorm, Delve sample",
            7_400,
            20,
            "Breiman 1996, in the Delve archive",
            openml=1507,
        ),
        KnownData(
            "usps",
            "handwritten digits 16 x 16",
            7_291,
            256,
            'the web page of The Elements of Statistical Learning, "ZIP code"',
        ),
    ]
    return {row.name: row for row in rows}


KNOWN = _entries()


@dataclass(frozen=True)
class Bundled:
    """A real data set in the files of scikit-learn: no download, free to use."""

    loader: str
    about: str
    target: str
    n_samples: int
    n_features: int


BUNDLED = {
    "breast-cancer": Bundled(
        "load_breast_cancer", "benign or malignant, from images of cells", "diagnosis", 569, 30
    ),
    "diabetes": Bundled("load_diabetes", "progression after a year (regression)", "progression", 442, 10),
    "digits": Bundled("load_digits", "handwritten digits 8 x 8", "digit", 1_797, 64),
    "iris": Bundled("load_iris", "three species of iris", "species", 150, 4),
    "wine": Bundled("load_wine", "three cultivars, from chemical analyses", "cultivar", 178, 13),
}


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
    return [*BUNDLED, *KNOWN, *GENERATORS]


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
    if name in BUNDLED:
        return _bundled(name, options)
    entry = KNOWN.get(name)
    if entry is None:
        raise unknown_name(name)
    file = find_local(name)
    if file is None:
        file = _fetch(entry, download)
    raw = read_raw(file)
    if file.suffix == ".arff":
        options.setdefault("target", _remembered_target(file, raw))
    _check_size(entry, raw, file)
    return build_table(raw, TableOptions(**options), source=name)


def unknown_name(name: str) -> DataError:
    """The error for a name that is not in the list, with those that may be meant."""
    close = difflib.get_close_matches(name, known_names(), n=3)
    hint = f"Did you mean {shown_list(close)}?" if close else "`zeronorm datasets` lists them."
    return DataError(f"There is no data set named {shown(name)}. {hint}")


def _generated(name: str, random_state: int | None, options: dict[str, Any]) -> Table:
    data = GENERATORS[name](random_state=random_state)
    raw = RawTable.from_matrix(data.X, targets={"y": data.y}, default_target="y")
    return build_table(raw, TableOptions(**options), source=f"{name} (seed {random_state})")


def _bundled(name: str, options: dict[str, Any]) -> Table:
    import sklearn.datasets

    entry = BUNDLED[name]
    data = getattr(sklearn.datasets, entry.loader)()
    classes = getattr(data, "target_names", None)
    y = data.target if classes is None else np.asarray(classes).astype(str)[data.target]
    names = [str(feature) for feature in data.feature_names]
    raw = RawTable.from_matrix(data.data, names, targets={entry.target: y}, default_target=entry.target)
    return build_table(raw, TableOptions(**options), source=f"{name} (of scikit-learn)")


def how_to_get(entry: KnownData) -> str:
    """What to do for a data set that is not on this machine."""
    return (
        f"It is from {entry.origin}. Save it with numpy.savez as {entry.name}.npz, with X of {entry.n_samples} samples "
        f"and {entry.n_features} features and the labels y, in the folder that the environment variable "
        f"{DATA_VARIABLE} names."
    )


def _fetch(entry: KnownData, download: bool) -> Path:
    if entry.openml is None or not download:
        reason = "" if entry.openml else " and cannot be downloaded by its name"
        raise DataError(
            f"The data set {shown(entry.name)} is not on this machine{reason}. {how_to_get(entry)} These need no "
            f"download: {', '.join(BUNDLED)}."
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
        return _row(name, doc, None, None, "synthetic", "It is drawn anew from the seed.")
    if name in BUNDLED:
        found = BUNDLED[name]
        how = "It comes with scikit-learn."
        return _row(name, found.about, found.n_samples, found.n_features, "with scikit-learn", how)
    entry, local = KNOWN[name], find_local(name)
    if local is not None:
        where, how = "on this machine", f"It is in {local}. It is from {entry.origin}."
    elif entry.openml:
        where, how = (
            "download",
            f"It is downloaded from OpenML when it is first used. It is from {entry.origin}.",
        )
    else:
        where, how = "not here", how_to_get(entry)
    return _row(name, entry.about, entry.n_samples, entry.n_features, where, how)


def _row(
    name: str, about: str, n_samples: int | None, n_features: int | None, where: str, how: str
) -> dict[str, Any]:
    return {
        "name": name,
        "about": about,
        "n_samples": n_samples,
        "n_features": n_features,
        "where": where,
        "how": how,
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
            f"{shown(address)} cannot be downloaded: {_reason(error)}. Check the network, put the file into the folder "
            f"that the environment variable {DATA_VARIABLE} names, or use data that need no download: "
            f"{', '.join(BUNDLED)}."
        ) from error


def _reason(error: Exception) -> str:
    """The cause in words, without the names of classes and the numbers of the system."""
    cause = getattr(error, "reason", error)
    return str(getattr(cause, "strerror", None) or cause or "no answer").rstrip(".")
