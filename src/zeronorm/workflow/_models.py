"""The predictor on the selected features: fitted on all samples, and applied to new samples."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from zeronorm._messages import OptionError
from zeronorm.datasets._encoding import column_medians, is_text_identifier
from zeronorm.datasets._joining import join_samples, texts_of
from zeronorm.datasets._numbers import with_numbers
from zeronorm.datasets._raw import RawTable, no_such_column, similar_names
from zeronorm.datasets._table import counted, shown_list
from zeronorm.resampling._splits import dense_columns
from zeronorm.resampling.predictors._cox import RidgeCox
from zeronorm.resampling.predictors._pairwise_svm import NonlinearPairs
from zeronorm.resampling.predictors._units import UNITS, InUnits
from zeronorm.result._models import GaussianModel, LinearModel, SurvivalModel
from zeronorm.result._seen import SeenSamples
from zeronorm.workflow._chance import WithBaseline
from zeronorm.workflow._inputs import raw_from_data_frame
from zeronorm.workflow._moments import moments_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from zeronorm.datasets import Table
    from zeronorm.workflow._options import Settings

MOST_SHOWN = 20  # missing features that an error names


def fit_model(
    table: Table, columns: Any, settings: Settings, *, selector: Any = None, with_gaps: Table | None = None
) -> LinearModel | None:
    """The predictor of the run, or of the fitted selector, fitted on some columns of all samples.

    None without columns, and for an estimator given by the user. ``with_gaps`` is the table before its missing values
    were filled; the model then fills those of new samples as well.
    """
    if columns.size == 0 or not isinstance(settings.predictor, str):
        return None
    block = predictor_columns(table, columns)
    model = fit_block(table, block, table.y, settings, selector)
    has_gaps = with_gaps is not None and with_gaps.n_missing > 0
    medians = column_medians(predictor_columns(with_gaps, columns)).tolist() if with_gaps and has_gaps else []
    names = [*(str(table.feature_names[i]) for i in columns), *table.covariate_names]
    moments = moments_of(table, columns) if table.covariates is None else None
    return replace(model, features=names, fill=medians, moments=moments, seen=SeenSamples.of(block))


def predictor_columns(table: Table, columns: Any) -> NDArray[np.float64]:
    """The columns of a model: some features, and the covariates where there are any."""
    block = dense_columns(table.X, columns)
    return block if table.covariates is None else np.column_stack([block, table.covariates])


def fit_block(table: Table, X: Any, y: Any, settings: Settings, selector: Any = None) -> LinearModel:
    """The predictor of a run fitted on columns without names and without missing values."""
    predictor = WithBaseline.for_table(table, settings).for_selector(selector)
    fitted = predictor.fit(X, y).estimator_
    units: dict[str, Any] = {}
    if isinstance(fitted, InUnits):
        units = {"values": UNITS[fitted.units].values, "unit": fitted.unit}
        fitted = fitted.predictor_
    kind, numbers_of = _kind_of_model(fitted)
    scaler, numbers = numbers_of(fitted)
    # A scaler of sparse columns computes their means, but does not subtract them.
    mean = scaler.mean_ if getattr(scaler, "with_mean", True) else np.zeros(X.shape[1])
    return kind(
        task=table.task,
        target=table.target_name,
        features=[],
        mean=mean.tolist(),
        scale=scaler.scale_.tolist(),
        classes=fitted.classes_.tolist() if table.target.has_classes else [],
        **units,
        **numbers,
    )


def _kind_of_model(fitted: Any) -> tuple[type[LinearModel], Callable[[Any], tuple[Any, dict[str, Any]]]]:
    """The class of a saved model, and the function that takes its numbers from a fitted predictor."""
    if isinstance(_parts(fitted)[1], RidgeCox):
        return SurvivalModel, _survival_numbers
    if getattr(_parts(fitted)[1], "kernel", "linear") == "rbf" or hasattr(fitted, "regressor_"):
        return GaussianModel, _gaussian_numbers
    return LinearModel, _linear_numbers


def _survival_numbers(fitted: Any) -> tuple[Any, dict[str, Any]]:
    """The scaler, the weights and the baseline of a fitted Cox regression."""
    model = _parts(fitted)[1]
    return model, {
        "weights": [(model.coef_ * model.scale_).tolist()],
        "intercepts": [0.0],
        "scheme": "single",
        "times": model.event_times_.tolist(),
        "hazard": model.baseline_hazard_.tolist(),
    }


def _parts(fitted: Any) -> tuple[Any, Any]:
    """The scaler and the model, which may be one object."""
    return (fitted[0], fitted[-1]) if hasattr(fitted, "steps") else (fitted, fitted)


def _linear_numbers(fitted: Any) -> tuple[Any, dict[str, Any]]:
    """The scaler and the weights of a fitted linear predictor."""
    scaler, model = _parts(fitted)
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    by_class = "classes" if isinstance(model, (LinearSVC, LogisticRegression)) else "pairs"
    return scaler, {
        "weights": weights.tolist(),
        "intercepts": np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64)).tolist(),
        "scheme": "single" if len(weights) == 1 else by_class,
    }


def _gaussian_numbers(fitted: Any) -> tuple[Any, dict[str, Any]]:
    """The scaler, support vectors and weights of a fitted SVM; those of regression in the unit of the target."""
    unit, offset = 1.0, 0.0
    if hasattr(fitted, "regressor_"):
        unit, offset = float(fitted.transformer_.scale_[0]), float(fitted.transformer_.mean_[0])
        fitted = fitted.regressor_
    scaler, model = _parts(fitted)
    pairs = getattr(model, "pairs_", None)
    if isinstance(pairs, NonlinearPairs):
        weights, support, gamma = pairs.weights, pairs.support, pairs.gamma
    else:
        weights, support, gamma = _weights_of_pairs(model), model.support_vectors_, float(model._gamma)
    return scaler, {
        "weights": (unit * weights).tolist(),
        "intercepts": (offset + unit * model.intercept_).tolist(),
        "scheme": "single" if len(weights) == 1 else "pairs",
        "support": support.tolist(),
        "gamma": gamma,
    }


def _weights_of_pairs(model: Any) -> NDArray[np.float64]:
    """The weights of the support vectors in the SVM of each pair of classes.

    LIBSVM keeps, for a support vector of class i, its weight against class j in row j, or in row j - 1 where j > i.
    """
    packed = np.asarray(model.dual_coef_, dtype=np.float64)
    if len(packed) == 1:
        return packed
    label = np.repeat(np.arange(len(model.n_support_)), model.n_support_)
    rows = []
    for first, second in combinations(range(len(model.n_support_)), 2):
        of_first, of_second = (label == first) * packed[second - 1], (label == second) * packed[first]
        rows.append(of_first + of_second)
    return np.asarray(rows)


# -- New samples --------------------------------------------------------------------------------------


def read_new_samples(
    model: LinearModel,
    data: Any,
    *,
    samples: Any = None,
    id: str | None = None,
    transpose: bool = False,
    delimiter: str | None = None,
    with_columns: Sequence[str] = (),
    **text: Any,
) -> RawTable:
    """The columns of new samples with their names, from a file or a data frame.

    Parameters
    ----------
    model : the model whose features are needed.
    data : the measurements.
    samples : a second file or data frame, one row per sample, with features that ``data`` lacks.
    id : column with the names of the samples; None finds it.
    transpose : whether the samples of ``data`` are in columns.
    delimiter : character between two cells of ``data``.
    with_columns : other columns that are needed, such as the target.
    **text : how the texts of both files are written: ``decimal_comma``, ``encoding``.
    """
    raw = _read(data, transpose=transpose, delimiter=delimiter, **text)
    features = {*model.features, *(() if model.moments is None else model.moments.features)}
    raw = with_numbers(raw, [position for position, name in enumerate(raw.names) if name in features])
    if samples is None:
        return _with_names(raw, id, with_columns)
    sheet = _read(samples, **text)
    needed = {*features, *with_columns}
    needed.update(column for feature in features for column, _ in _columns_and_levels(feature))
    return join_samples(raw, sheet, id, [name for name in sheet.names if name in needed])


def _read(data: Any, **reading: Any) -> RawTable:
    from zeronorm.datasets.readers import read_raw

    return (
        read_raw(Path(data), **reading) if isinstance(data, (str, os.PathLike)) else raw_from_data_frame(data)
    )


def _with_names(raw: RawTable, id: str | None, others: Sequence[str]) -> RawTable:
    """The table with names of samples from the column ``id``, or from the first text column that looks like names.

    The columns ``others`` hold something else.
    """
    if id is not None and id not in raw.names:
        raise no_such_column(raw.names, id, "id", "the new data")
    if id is not None:
        columns = [raw.names.index(id)]
    elif raw.sample_ids is None:
        free = [index for index in sorted(raw.texts) if raw.names[index] not in others]
        columns = [index for index in free if is_text_identifier(raw.texts[index])]
    else:
        columns = []
    return replace(raw, sample_ids=texts_of(raw, columns[0])) if columns else raw


def _columns_and_levels(feature: str) -> list[tuple[str, str]]:
    """All ways to split the name of a feature into a text column and a level; both may contain the equals sign."""
    cuts = [index for index, letter in enumerate(feature) if letter == "="]
    return [(feature[:cut], feature[cut + 1 :]) for cut in cuts]


def check_features(raw: RawTable, model: LinearModel, advice: str = "") -> None:
    """Raise an error that names all features of the model that the new data lack, with similar names they have.

    ``advice`` is added to its remedy.
    """
    lost = [name for name in model.features if position_of(raw, name) is None]
    if not lost:
        return
    hints = similar_names(lost[:MOST_SHOWN], raw.names)
    hint = f" They have {', '.join(hints)}: the same feature with another name?" if hints else ""
    raise OptionError(
        f"The new data lack {len(lost)} of the {counted(len(model.features), 'feature')} of the model: "
        f"{shown_list(lost, MOST_SHOWN)}.{hint} Add the columns, or rename those that hold these features."
        f"{advice}"
    )


def position_of(raw: RawTable, name: str) -> tuple[int, str | None] | None:
    """The column of a feature and, where it is one level of a text column, this level; None if there is none."""
    if name in raw.names:
        return raw.names.index(name), None
    for column, level in _columns_and_levels(name):
        for index in raw.texts:
            if raw.names[index] == column:
                return index, level
    return None


def column_of(raw: RawTable, name: str) -> NDArray[np.float64]:
    """The values of a feature: a column of numbers, or whether a text column has the level that the name gives."""
    position = position_of(raw, name)
    if position is None:
        raise KeyError(name)
    index, level = position
    if level is not None:
        return np.asarray([cell == level for cell in raw.texts[index]], dtype=np.float64)
    if index in raw.texts:
        raise ValueError(f"The column {name!r} of the new data holds text, but the model needs numbers.")
    return np.asarray(raw.column(index), dtype=np.float64)
