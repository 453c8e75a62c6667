"""Select and compare: from data to a result in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from zeronorm.workflow.job import compare_methods, run_job, select_features
from zeronorm.workflow.result import Result


def select(
    data: Any,
    target: Any = None,
    *,
    method: str | None = None,
    features: int | str = "auto",
    params: Mapping[str, Any] | None = None,
    rule: str = "one_se",
    metric: str | None = None,
    predictor: Any = "linear",
    max_features: int | None = None,
    cv: int = 5,
    repeats: int = 1,
    permutations: int | str = "auto",
    task: str | None = None,
    samples: Any = None,
    id: str | None = None,
    sample_groups: Any = None,
    feature_groups: Any = None,
    keep: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    missing: str = "median",
    drop_unlabelled: bool = False,
    min_class_size: int = 0,
    transpose: bool = False,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    encoding: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    memory_budget: int | None = None,
    device: str | None = None,
    dask: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    resume: bool = False,
    save_model: bool = False,
    write_table: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> Result:
    """Select the features that predict the target, and measure the error of the whole procedure.

    Selection, and the choice of the number of features, are repeated inside every outer fold; the predictor
    without features and permuted targets say what chance would give.

    Parameters
    ----------
    data : array-like, sparse matrix, data frame, Design, path or str
        The data, the path of a file (CSV, Excel, Parquet and others, compressed or not; "-" is standard
        input), or the name of a known data set. Files ending in .npy or .zncols, and .parquet files with a
        separate target, are not loaded into memory as a whole; nor are .zarr folders, and .h5ad files that are
        larger than 512 MiB or for which a memory budget is given.
    target : str, path, array-like or None, default=None
        Name of a column, or an array. For data on disk also the path of a .npy file.
    method : str or None, default=None
        Name of a selector; or "knockoff-selector", "probe-selector" or "stability-selection" around the
        selector named in ``params``. None or "auto": a few methods and their consensus are compared inside the
        training parts, which takes up to ten times as long as one method, more with small tables.
    features : int or "auto", default='auto'
        Number of features. "auto" chooses it inside the folds.
    params : dict or None, default=None
        Parameters of the method.
    rule : {"one_se", "best"}, default='one_se'
        How "auto" chooses the number of features: the best mean score, or the fewest features within one
        standard error of it.
    metric : str or None, default=None
        What is reported and made as good as possible: "balanced_error_rate", "error_rate", "auc", "mse",
        "mae", "r2" or the name of a scikit-learn scorer. None: the balanced error rate, or the mean squared
        error.
    predictor : {"linear", "gaussian"} or estimator, default='linear'
        What predicts the target from the selected features, inside the folds and at the end: a linear support
        vector machine or ridge regression, a machine with a Gaussian kernel (for curved boundaries; its time grows
        with the square of the number of samples), or an estimator of the scikit-learn kind.
    max_features : int or None, default=None
        Largest number of features to try. None: 128.
    cv : int, default=5
        Number of outer folds.
    repeats : int, default=1
        How often the folds are drawn anew.
    permutations : int or "auto", default='auto'
        Number of permuted targets on which the whole procedure is repeated, for a p-value. "auto": up to 99
        if that is estimated to take less than 20 seconds, otherwise none; 19 in up to two minutes where the
        metric has no interval, so that nothing else can test the result.
    task : {"classification", "regression"} or None, default=None
        What the target holds. None infers it from the target; a note says so.
    samples : path, data frame or None, default=None
        A second table with one row per sample that holds the target. It is joined by the names of the
        samples. Its other columns become features only if ``keep``, ``only`` or ``categorical`` name them.
    id : str or None, default=None
        Column with the names of the samples.
    sample_groups : str, array-like or None, default=None
        Column or array that says which samples belong together (patients, batches).
    feature_groups : list, dict, path or None, default=None
        One label per feature, a dict from feature to group, or the path of a file. The features of a group
        are selected together or not at all.
    keep : str or list of str, default=()
        Features that must be selected. Like ``ignore``, ``only`` and ``categorical`` also patterns such as
        "AFFX*" and regular expressions such as "re:^AFFX".
    ignore : str or list of str, default=()
        Columns to leave out.
    only : str or list of str, default=()
        The columns to use as features. Empty: all.
    categorical : str or list of str, default=()
        Columns whose numbers are codes of categories.
    missing : {"median", "error", "drop-rows", "drop-columns"}, default='median'
        What to do with missing values. "median" fills them with the median of the column, computed anew on
        each training part.
    drop_unlabelled : bool, default=False
        Whether to leave out samples without a value in the target. Otherwise they are an error.
    min_class_size : int, default=0
        Classes with fewer samples are left out.
    transpose : bool, default=False
        Whether the samples of a file are in columns.
    delimiter : str or None, default=None
        Character between two cells of a text file. None: the one that fits the file.
    decimal_comma : bool, default=False
        Whether decimals of a text file are written with a comma.
    encoding : str or None, default=None
        Encoding of text files, such as "gb18030". None: detected from the content.
    random_state : int, default=0
        Seed of everything random. Each fold has a seed of its own, which ``provenance`` records.
    n_jobs : int or None, default=None
        Number of processes. None decides by the amount of work. The result does not depend on it.
    memory_budget : int or None, default=None
        Bytes that blocks of data on disk may take in each process. None: 512 MiB.
    device : str or None, default=None
        Device to which the features are copied in blocks and where methods compute, such as "cuda"; needs
        torch or CuPy. None: where the data are.
    dask : str or None, default=None
        Address of a Dask scheduler whose workers do what runs side by side. None: processes of this machine.
    out : path or None, default=None
        Folder for the results. It also keeps finished parts if the run is interrupted.
    force : bool, default=False
        Whether to replace results in ``out``.
    resume : bool, default=False
        Whether to continue with the finished parts in ``out``.
    save_model : bool, default=False
        Whether to write the predictor on the selected features to ``out``, as model.json.
    write_table : path or None, default=None
        File (.csv or .parquet) for the target and the selected columns.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    Result
        Features, records, choice, notes and provenance.

    Examples
    --------
    >>> import zeronorm
    >>> result = zeronorm.select("linear-toy", method="fisher", features=2, permutations=0)
    >>> len(result.features)
    2
    """
    return run_job(select, select_features, dict(locals()))


def compare(
    data: Any,
    target: Any = None,
    *,
    methods: str | Sequence[str] | None = None,
    features: int | str = "auto",
    params: Mapping[str, Mapping[str, Any]] | None = None,
    rule: str = "one_se",
    metric: str | None = None,
    predictor: Any = "linear",
    max_features: int | None = None,
    cv: int = 5,
    repeats: int = 1,
    permutations: int = 0,
    task: str | None = None,
    samples: Any = None,
    id: str | None = None,
    sample_groups: Any = None,
    feature_groups: Any = None,
    keep: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    missing: str = "median",
    drop_unlabelled: bool = False,
    min_class_size: int = 0,
    transpose: bool = False,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    encoding: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    memory_budget: int | None = None,
    device: str | None = None,
    dask: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    resume: bool = False,
    verbose: bool = False,
) -> Result:
    """Compare methods on the same folds, with random features and the predictor without features beside them.

    Parameters
    ----------
    data : array-like, sparse matrix, data frame, Design, path or str
        The data, the path of a file (CSV, Excel, Parquet and others, compressed or not; "-" is standard
        input), or the name of a known data set. Files ending in .npy or .zncols, and .parquet files with a
        separate target, are not loaded into memory as a whole; nor are .zarr folders, and .h5ad files that are
        larger than 512 MiB or for which a memory budget is given.
    target : str, path, array-like or None, default=None
        Name of a column, or an array. For data on disk also the path of a .npy file.
    methods : str, list of str or None, default=None
        Names of methods, a text of names with commas, or "all-fast" for all filters and sparse methods. None:
        fisher and rfe.
    features : int or "auto", default='auto'
        Number of features. "auto" chooses it inside the folds.
    params : dict or None, default=None
        Parameters by method, such as ``{"rfe": {"C": 3}}``.
    rule : {"one_se", "best"}, default='one_se'
        How "auto" chooses the number of features: the best mean score, or the fewest features within one
        standard error of it.
    metric : str or None, default=None
        What is reported and made as good as possible: "balanced_error_rate", "error_rate", "auc", "mse",
        "mae", "r2" or the name of a scikit-learn scorer. None: the balanced error rate, or the mean squared
        error.
    predictor : {"linear", "gaussian"} or estimator, default='linear'
        What predicts the target from the selected features, inside the folds and at the end: a linear support
        vector machine or ridge regression, a machine with a Gaussian kernel (for curved boundaries; its time grows
        with the square of the number of samples), or an estimator of the scikit-learn kind.
    max_features : int or None, default=None
        Largest number of features to try. None: 128.
    cv : int, default=5
        Number of outer folds.
    repeats : int, default=1
        How often the folds are drawn anew.
    permutations : int, default=0
        Number of permuted targets for a p-value of each method.
    task : {"classification", "regression"} or None, default=None
        What the target holds. None infers it from the target; a note says so.
    samples : path, data frame or None, default=None
        A second table with one row per sample that holds the target. It is joined by the names of the
        samples. Its other columns become features only if ``keep``, ``only`` or ``categorical`` name them.
    id : str or None, default=None
        Column with the names of the samples.
    sample_groups : str, array-like or None, default=None
        Column or array that says which samples belong together (patients, batches).
    feature_groups : list, dict, path or None, default=None
        One label per feature, a dict from feature to group, or the path of a file. The features of a group
        are selected together or not at all.
    keep : str or list of str, default=()
        Features that must be selected. Like ``ignore``, ``only`` and ``categorical`` also patterns such as
        "AFFX*" and regular expressions such as "re:^AFFX".
    ignore : str or list of str, default=()
        Columns to leave out.
    only : str or list of str, default=()
        The columns to use as features. Empty: all.
    categorical : str or list of str, default=()
        Columns whose numbers are codes of categories.
    missing : {"median", "error", "drop-rows", "drop-columns"}, default='median'
        What to do with missing values. "median" fills them with the median of the column, computed anew on
        each training part.
    drop_unlabelled : bool, default=False
        Whether to leave out samples without a value in the target. Otherwise they are an error.
    min_class_size : int, default=0
        Classes with fewer samples are left out.
    transpose : bool, default=False
        Whether the samples of a file are in columns.
    delimiter : str or None, default=None
        Character between two cells of a text file. None: the one that fits the file.
    decimal_comma : bool, default=False
        Whether decimals of a text file are written with a comma.
    encoding : str or None, default=None
        Encoding of text files, such as "gb18030". None: detected from the content.
    random_state : int, default=0
        Seed of everything random. Each fold has a seed of its own, which ``provenance`` records.
    n_jobs : int or None, default=None
        Number of processes. None decides by the amount of work. The result does not depend on it.
    memory_budget : int or None, default=None
        Bytes that blocks of data on disk may take in each process. None: 512 MiB.
    device : str or None, default=None
        Device to which the features are copied in blocks and where methods compute, such as "cuda"; needs
        torch or CuPy. None: where the data are.
    dask : str or None, default=None
        Address of a Dask scheduler whose workers do what runs side by side. None: processes of this machine.
    out : path or None, default=None
        Folder for the results. It also keeps finished parts if the run is interrupted.
    force : bool, default=False
        Whether to replace results in ``out``.
    resume : bool, default=False
        Whether to continue with the finished parts in ``out``.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    Result
        ``table`` and ``to_frame()`` have one row per method.

    Examples
    --------
    >>> import zeronorm
    >>> result = zeronorm.compare("linear-toy", methods=["fisher", "golub"], features=2)
    >>> [row["method"] for row in result.table]
    ['fisher', 'golub', 'random', 'baseline']
    """
    return run_job(compare, compare_methods, dict(locals()))
