"""Data sets by name: from this package, scikit-learn, the folder ``ZERONORM_DATA``, the cache, or OpenML."""

from __future__ import annotations

import csv
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

from zeronorm.datasets._assemble import build_table
from zeronorm.datasets._generators import GENERATORS
from zeronorm.datasets._raw import RawTable
from zeronorm.datasets._table import DataError, Table, shown, shown_list
from zeronorm.datasets._table_options import TableOptions
from zeronorm.datasets.readers import read_raw

DATA_VARIABLE = "ZERONORM_DATA"
FILES = Path(__file__).parent / "files"  # with their origin and licence in LICENCES.md


@dataclass(frozen=True)
class KnownData:
    """One data set of the list: its description, origin, size (to check a copy) and number at OpenML, if any."""

    name: str
    about: str
    n_samples: int
    n_features: int
    origin: str
    openml: int | None = None


def _entries() -> dict[str, KnownData]:
    with (FILES / "elsewhere.csv").open(encoding="utf-8", newline="") as stream:
        return {
            row["name"]: KnownData(
                name=row["name"],
                about=row["about"],
                n_samples=int(row["n_samples"]),
                n_features=int(row["n_features"]),
                origin=row["origin"],
                openml=int(row["openml"]) if row["openml"] else None,
            )
            for row in csv.DictReader(stream)
        }


KNOWN = _entries()


@dataclass(frozen=True)
class Bundled:
    """A real data set that needs no download: in the files of this package, or of scikit-learn."""

    about: str
    target: str
    n_samples: int
    n_features: int
    loader: str = ""  # the function of scikit-learn; none for a file of this package
    file: str = ""
    classes: tuple[
        tuple[str, str], ...
    ] = ()  # these classes of the file, with shorter names; none: all of it
    origin: str = ""


_CELLS = (
    "Part of the 68,000 blood cells of a healthy donor of Zheng et al. 2017 (Nature Communications 8, 14049), "
    "published by 10x Genomics under CC BY 4.0, as reduced in the package scanpy (BSD 3-Clause): logarithm of the "
    "counts of 765 genes, scaled to the same total for each cell. The types of the cells follow from their genes."
)
_CHEMOTOOLS = "It is from the package chemotools of Pau Cabaneros Lopez (MIT licence)."

BUNDLED = {
    "t-cells": Bundled(
        "cytotoxic or regulatory T cells, from genes",
        "cell type",
        122,
        765,
        file="blood-cells.npz",
        classes=(("CD8+ Cytotoxic T", "cytotoxic"), ("CD4+/CD25 T Reg", "regulatory")),
        origin=_CELLS,
    ),
    "blood-cells": Bundled(
        "ten types of blood cells, from genes", "cell type", 700, 765, file="blood-cells.npz", origin=_CELLS
    ),
    "coffee-spectra": Bundled(
        "country of a coffee, from infrared spectra",
        "country",
        60,
        1_841,
        file="coffee-spectra.npz",
        origin=f"Mid-infrared spectra of brewed coffee from three countries. {_CHEMOTOOLS} Its guide says that not all "
        "were brewed in the same way, so the classes may differ in more than the country.",
    ),
    "fermentation-spectra": Bundled(
        "glucose from infrared spectra (regression)",
        "glucose",
        21,
        1_047,
        file="fermentation-spectra.npz",
        origin=f"Mid-infrared spectra of mixtures made in the laboratory, with glucose in g/L by liquid "
        f"chromatography. {_CHEMOTOOLS} Described by Cabaneros Lopez et al. 2020 (doi:10.1002/bit.27586).",
    ),
    "breast-cancer": Bundled(
        "benign or malignant, from images of cells", "diagnosis", 569, 30, loader="load_breast_cancer"
    ),
    "diabetes": Bundled(
        "progression after a year (regression)", "progression", 442, 10, loader="load_diabetes"
    ),
    "digits": Bundled("handwritten digits 8 x 8", "digit", 1_797, 64, loader="load_digits"),
    "iris": Bundled("three species of iris", "species", 150, 4, loader="load_iris"),
    "wine": Bundled("three cultivars, from chemical analyses", "cultivar", 178, 13, loader="load_wine"),
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
    >>> load_dataset("coffee-spectra").X.shape
    (60, 1841)
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
    """The error for a name that is not in the list, with similar names."""
    close = difflib.get_close_matches(name, known_names(), n=3)
    hint = f"Did you mean {shown_list(close)}?" if close else "`zeronorm datasets` lists them."
    return DataError(f"There is no data set named {shown(name)}. {hint}")


def _generated(name: str, random_state: int | None, options: dict[str, Any]) -> Table:
    data = GENERATORS[name](random_state=random_state)
    raw = RawTable.from_matrix(data.X, targets={"y": data.y}, default_target="y")
    return build_table(raw, TableOptions(**options), source=f"{name} (seed {random_state})")


def _bundled(name: str, options: dict[str, Any]) -> Table:
    entry = BUNDLED[name]
    X, y, names = _of_scikit_learn(entry) if entry.loader else _of_this_package(entry)
    raw = RawTable.from_matrix(
        X, [str(feature) for feature in names], targets={entry.target: y}, default_target=entry.target
    )
    source = f"{name} (of scikit-learn)" if entry.loader else name
    return build_table(raw, TableOptions(**options), source=source)


def _of_scikit_learn(entry: Bundled) -> tuple[Any, Any, Any]:
    import sklearn.datasets

    data = getattr(sklearn.datasets, entry.loader)()
    classes = getattr(data, "target_names", None)
    y = data.target if classes is None else np.asarray(classes).astype(str)[data.target]
    return data.data, y, data.feature_names


def _of_this_package(entry: Bundled) -> tuple[Any, Any, Any]:
    with np.load(FILES / entry.file, allow_pickle=False) as arrays:
        X, y, names = arrays["X"] / arrays["scale"], arrays["y"], arrays["feature_names"]
    if entry.classes:
        names_of = dict(entry.classes)
        kept = np.isin(y, list(names_of))
        X, y = X[kept], np.asarray([names_of[label] for label in y[kept]])
    return X, y, names


def how_to_get(entry: KnownData) -> str:
    """Instructions for a data set that is not on this machine."""
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
    """The description of one data set for the list of data sets."""
    if name in GENERATORS:
        doc = (GENERATORS[name].__doc__ or "").strip().splitlines()[0]
        return _row(name, doc, None, None, "synthetic", "It is drawn anew from the seed.")
    if name in BUNDLED:
        found = BUNDLED[name]
        provider = "scikit-learn" if found.loader else "zeronorm"
        how = f"It comes with {provider}. {found.origin}".rstrip()
        return _row(name, found.about, found.n_samples, found.n_features, f"with {provider}", how)
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
    """The cause as a text, without class names and error numbers."""
    cause = getattr(error, "reason", error)
    return str(getattr(cause, "strerror", None) or cause or "no answer").rstrip(".")
