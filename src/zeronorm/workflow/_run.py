"""Select and compare: from data to a result in one call.

The parameters are described in ``options``, from which the docstrings take them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zeronorm.workflow._kinds import documents
from zeronorm.workflow._options import (
    DATA,
    DATA_OF_APPLY,
    MODEL,
    ApplyOptions,
    CompareOptions,
    PanelOptions,
    SelectOptions,
)

if TYPE_CHECKING:
    from zeronorm.workflow._cohort import Cohort
    from zeronorm.workflow._result import Result


@documents(SelectOptions, DATA)
def select(
    data: Any,
    target: Any = None,
    *,
    method: str | None = None,
    features: int | str = "auto",
    params: Mapping[str, Any] | None = None,
    rule: str = "recommended",
    units: str = "auto",
    control: str | None = None,
    level: float | None = None,
    metric: str | None = None,
    predictor: Any = "auto",
    max_features: int | None = None,
    cv: int = 5,
    repeats: int = 1,
    permutations: int | str = "auto",
    group_design: str = "auto",
    task: str | None = None,
    time: Any = None,
    event: Any = None,
    samples: Any = None,
    id: str | None = None,
    sample_groups: Any = None,
    feature_groups: Any = None,
    annotation: Any = None,
    keep: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    adjust: str | Sequence[str] = (),
    missing: str = "median",
    censored: str = "error",
    drop_unlabelled: bool = False,
    min_class_size: int = 0,
    transpose: bool = False,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    encoding: str | None = None,
    sheet: str | int | None = None,
    header_row: int | None = None,
    random_state: int = 0,
    seed: int | None = None,
    n_jobs: int | None = None,
    memory_budget: int | None = None,
    device: str | None = None,
    dask: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    resume: bool = False,
    substitutes: bool = False,
    learning_curve: bool = False,
    save_model: bool = False,
    write_table: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> Result:
    """Select the features that predict the target, and measure the error of the whole procedure.

    Selection, and the choice of the number of features, are repeated inside every outer fold. A predictor without
    features and permuted targets show the level of chance.

    Parameters
    ----------
    {parameters}

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
    arguments = dict(locals())
    from zeronorm.workflow._job import run_job

    return run_job("select", arguments)


@documents(CompareOptions, DATA)
def compare(
    data: Any,
    target: Any = None,
    *,
    methods: str | Sequence[str] | None = None,
    features: int | str = "auto",
    params: Mapping[str, Mapping[str, Any]] | None = None,
    rule: str = "recommended",
    units: str = "auto",
    metric: str | None = None,
    predictor: Any = "auto",
    max_features: int | None = None,
    cv: int = 5,
    repeats: int = 1,
    permutations: int = 0,
    group_design: str = "auto",
    task: str | None = None,
    time: Any = None,
    event: Any = None,
    samples: Any = None,
    id: str | None = None,
    sample_groups: Any = None,
    feature_groups: Any = None,
    annotation: Any = None,
    keep: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    adjust: str | Sequence[str] = (),
    missing: str = "median",
    censored: str = "error",
    drop_unlabelled: bool = False,
    min_class_size: int = 0,
    transpose: bool = False,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    encoding: str | None = None,
    sheet: str | int | None = None,
    header_row: int | None = None,
    random_state: int = 0,
    seed: int | None = None,
    n_jobs: int | None = None,
    memory_budget: int | None = None,
    device: str | None = None,
    dask: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    resume: bool = False,
    verbose: bool = False,
) -> Result:
    """Compare methods on the same folds, with random features and a predictor without features for reference.

    Parameters
    ----------
    {parameters}

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
    arguments = dict(locals())
    from zeronorm.workflow._job import run_job

    return run_job("compare", arguments)


@documents(PanelOptions, DATA)
def test_panel(
    panel: Sequence[str] | str | os.PathLike[str],
    data: Any,
    target: Any = None,
    *,
    method: str | None = None,
    extend: int = 0,
    random_lists: int = 99,
    features: int | str = "auto",
    params: Mapping[str, Any] | None = None,
    rule: str = "recommended",
    units: str = "auto",
    metric: str | None = None,
    predictor: Any = "auto",
    max_features: int | None = None,
    cv: int = 5,
    repeats: int = 1,
    permutations: int = 0,
    group_design: str = "auto",
    task: str | None = None,
    time: Any = None,
    event: Any = None,
    samples: Any = None,
    id: str | None = None,
    sample_groups: Any = None,
    feature_groups: Any = None,
    annotation: Any = None,
    keep: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    adjust: str | Sequence[str] = (),
    missing: str = "median",
    censored: str = "error",
    drop_unlabelled: bool = False,
    min_class_size: int = 0,
    transpose: bool = False,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    encoding: str | None = None,
    sheet: str | int | None = None,
    header_row: int | None = None,
    random_state: int = 0,
    seed: int | None = None,
    n_jobs: int | None = None,
    memory_budget: int | None = None,
    device: str | None = None,
    dask: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    resume: bool = False,
    verbose: bool = False,
) -> Result:
    """Measure the error of a list of features that somebody else chose.

    The predictor is trained on the features of the list in every fold. For comparison, on the same folds: random
    lists of the same size, a list that a method selects inside the folds and, with ``extend``, the list with
    features added inside the folds. Names that the data lack are noted, with similar names, and the others are used.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    Result
        ``table`` has one row for the list and for each of the others, and ``panel`` the names and the p-value against
        random lists.

    Examples
    --------
    >>> import zeronorm
    >>> result = zeronorm.test_panel(["x1", "x2"], "linear-toy", method="fisher", random_lists=19)
    >>> [row["method"] for row in result.table]
    ['list', 'fisher', 'baseline']
    """
    arguments = dict(locals())
    from zeronorm.workflow._job import run_job

    return run_job("test_panel", arguments)


@documents(ApplyOptions, DATA_OF_APPLY, model=MODEL)
def apply(
    model: Any,
    data: Any,
    target: Any = None,
    *,
    time: Any = None,
    event: Any = None,
    samples: Any = None,
    id: str | None = None,
    sample_groups: Any = None,
    missing_features: str = "error",
    transpose: bool = False,
    delimiter: str | None = None,
    decimal_comma: bool = False,
    encoding: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Cohort:
    """Predict new samples with a saved model and, where their outcome is known, score the predictions.

    The score is compared with the error that the selection promised, which is stored in the model.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    Cohort
        Predictions, probabilities of the classes, scores with intervals, calibration and warnings.

    Examples
    --------
    >>> import zeronorm
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, _ = make_linear_toy(100, random_state=0)
    >>> result = zeronorm.select(X[:60], y[:60], method="fisher", features=2, permutations=0)
    >>> cohort = zeronorm.apply(result.model, X[60:, [feature.index for feature in result.selected]], y[60:])
    >>> cohort.scores[0]["verdict"]
    'compatible'
    """
    arguments = dict(locals())
    from zeronorm.workflow._cohort import run_apply

    return run_apply(arguments)
