"""The features of a model in new data: as they are, or filled in from others where some are missing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm._messages import Message, OptionError, setting
from zeronorm.datasets._encoding import fill
from zeronorm.datasets._raw import RawTable, distinct_names
from zeronorm.datasets._table import counted, shown, shown_list
from zeronorm.result._models import GaussianModel
from zeronorm.result._moments import Completion
from zeronorm.workflow._models import check_features, column_of, position_of, read_new_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from zeronorm.result._models import LinearModel
    from zeronorm.workflow._options import ApplyOptions

MOST_SHOWN = 20  # features that a message names


@dataclass(frozen=True)
class NewFeatures:
    """The columns of a model for new samples.

    ``certainty`` is the factor of the logits of probabilities where features were filled in; None where it is not
    known.
    """

    X: NDArray[np.float64]
    samples: Sequence[Any] | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refit: dict[str, Any] = field(default_factory=dict)
    certainty: float | None = 1.0


def new_features(model: LinearModel, data: Any, options: ApplyOptions) -> tuple[NewFeatures, RawTable | None]:
    """The features, and the table that they come from; None for an array with the features in order."""
    is_table = isinstance(data, (str, os.PathLike, RawTable)) or hasattr(data, "columns")
    if not is_table:
        return NewFeatures(_checked(_array(model, data), model)), None
    if isinstance(data, RawTable):
        raw = data
    else:
        raw = read_new_samples(model, data, with_columns=_named(options), **options.reading)
    raw = replace(raw, names=distinct_names(raw.names)[0])
    lost = [name for name in model.features if position_of(raw, name) is None]
    if lost and options.missing_features == "refit":
        return _refitted(model, raw, lost), raw
    check_features(raw, model, advice=_advice(model, raw, lost))
    X = np.column_stack([column_of(raw, name) for name in model.features])
    return NewFeatures(_checked(X, model), raw.sample_ids, raw.notes), raw


def _named(options: ApplyOptions) -> list[str]:
    """Columns beside the features that the options name."""
    event = options.event.rpartition("=")[0] if isinstance(options.event, str) else None
    named = (options.target, options.time, options.event, event or None, options.sample_groups)
    return [name for name in named if isinstance(name, str)]


def _array(model: LinearModel, data: Any) -> NDArray[np.float64]:
    X = np.asarray(data, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(model.features):
        raise ValueError(
            f"The array must have the {len(model.features)} columns {', '.join(model.features[:5])} … of the "
            f"model. Got shape {X.shape} instead."
        )
    return X


def _checked(X: NDArray[np.float64], model: LinearModel) -> NDArray[np.float64]:
    """The columns with missing values filled as the model does it; an error for others that are not finite."""
    if model.fill:
        X = fill(X, np.asarray(model.fill))
    wrong = np.argwhere(~np.isfinite(X))
    if wrong.size:
        row, column = wrong[0]
        raise ValueError(
            f"The feature {model.features[column]!r} has no finite value in data row {row + 1}. Fill in all "
            "features of the model."
        )
    return X


# -- Missing features ---------------------------------------------------------------------------------


def _completion(model: LinearModel, raw: RawTable) -> Completion | None:
    """How the features that the new data lack follow from those they have; None where that is not known."""
    if model.moments is None:
        return None
    own = set(model.features)
    known = [
        name
        for name in model.moments.features
        if position_of(raw, name) is not None and (name in own or np.isfinite(column_of(raw, name)).all())
    ]
    return Completion.of(model.moments, model.features, known) if known else None


def _advice(model: LinearModel, raw: RawTable, lost: list[str]) -> str:
    """What a refit without the missing features would keep."""
    completion = _completion(model, raw) if lost else None
    if completion is None:
        return ""
    others = [name for name in completion.present if name not in model.features]
    beside = f" and of {shown_list(others, 5)}" if others else ""
    return (
        f" Or predict without them: {setting('missing_features', 'refit')} fills them in from the other features of "
        f"the model{beside}, which explain {_explained(completion)} on the training samples."
    )


def _explained(completion: Completion) -> str:
    parts = [
        f"{100 * share:.0f} % of the variance of {shown(name)}"
        for name, share in zip(completion.missing, completion.explained, strict=True)
    ]
    return ", ".join(parts[:MOST_SHOWN]) + (" …" if len(parts) > MOST_SHOWN else "")


def _refitted(model: LinearModel, raw: RawTable, lost: list[str]) -> NewFeatures:
    """The features with the missing ones predicted from the present ones."""
    completion = _completion(model, raw)
    if completion is None:
        check = "none of the features that could replace them is in the new data"
        why = "the model keeps no correlations of its features" if model.moments is None else check
        raise OptionError(
            f"cannot be 'refit': {why}. Add the columns {shown_list(lost, MOST_SHOWN)}.", "missing_features"
        )
    of_present = np.column_stack([column_of(raw, name) for name in completion.present])
    own = {name: index for index, name in enumerate(model.features)}
    X = np.full((len(of_present), len(own)), np.nan)
    for index, name in enumerate(completion.present):
        if name in own:
            X[:, own[name]] = of_present[:, index]
    filled = fill(X, np.asarray(model.fill)) if model.fill else X
    kept = [own[name] for name in completion.present if name in own]
    complete = of_present.copy()
    complete[:, [i for i, name in enumerate(completion.present) if name in own]] = filled[:, kept]
    X[:, kept] = filled[:, kept]
    _check_present(X[:, kept], [model.features[i] for i in kept])
    X[:, [own[name] for name in completion.missing]] = completion.filled(complete)
    others = [name for name in completion.present if name not in own]
    used = f" and from {shown_list(others, MOST_SHOWN)}, which are not in the model" if others else ""
    note = (
        f"{counted(len(lost), 'feature')} of the model missing, {shown_list(lost, MOST_SHOWN)}: filled in from the "
        f"other features of the model{used}. On the training samples these explain {_explained(completion)}."
    )
    warning = (
        "The expected error is that of the model with all its features. That of the refit is not known: it was not "
        "measured when the features were selected."
    )
    if isinstance(model, GaussianModel):
        warning += " A nonlinear model gives no probabilities with features filled in."
    refit = {
        "missing": completion.missing,
        "explained": completion.explained,
        "substitutes": others,
    }
    certainty = model.certainty_without(completion)
    return NewFeatures(X, raw.sample_ids, (*raw.notes, Message(note)), (warning,), refit, certainty)


def _check_present(X: NDArray[np.float64], names: list[str]) -> None:
    wrong = np.argwhere(~np.isfinite(X))
    if wrong.size:
        row, column = wrong[0]
        raise ValueError(
            f"The feature {names[column]!r} has no finite value in data row {row + 1}. Fill in all features of the "
            "model."
        )
