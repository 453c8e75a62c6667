"""The work of ``test_panel``: the error of a list that somebody else chose, beside random lists and one found here."""

from __future__ import annotations

import csv
import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from zeronorm._messages import OptionError
from zeronorm.datasets._raw import similar_names
from zeronorm.datasets._table import counted, shown_list
from zeronorm.evaluation._records import columns_of, own_rows_of
from zeronorm.evaluation._summary import compare as compare_records
from zeronorm.resampling._fitted_path import selected_support
from zeronorm.selection._path import SelectionPath
from zeronorm.workflow import _added_value as added
from zeronorm.workflow import _chance as chance
from zeronorm.workflow import _checks as checks
from zeronorm.workflow import _measured as measured
from zeronorm.workflow import _procedures as procedures
from zeronorm.workflow import _training as training
from zeronorm.workflow._comparison import advice, failures
from zeronorm.workflow._descriptions import RULES, describe_data, describe_method, messages_of
from zeronorm.workflow._result import Result
from zeronorm.workflow._selection import with_permutations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from zeronorm.datasets import Table
    from zeronorm.workflow._job import Job

LIST = "list"
NAMES_OF_COLUMNS = ("name", "feature", "features", "gene", "genes", "symbol")
CHOSEN_ELSEWHERE = (
    "The error of the list is that of a list chosen elsewhere. If it was chosen on these samples, its error on new "
    "ones is larger."
)
MOST_SHOWN = 20  # names that a note holds
RANDOM_STREAM = 11  # spawn key of the random lists, beside those of permutations


class FixedFeatures(BaseEstimator):
    """A selector that always selects the same features.

    Parameters
    ----------
    columns : their positions.
    covariates : the last columns of X, if they are covariates.
    """

    def __init__(self, columns: Sequence[int], covariates: Sequence[int] = ()) -> None:
        self.columns = columns
        self.covariates = covariates

    def fit(self, X: Any, y: Any) -> Self:
        """Put the features in front of all others."""
        covariates = np.asarray(self.covariates, dtype=np.intp)
        scores = np.zeros(X.shape[1] - covariates.size)
        scores[list(self.columns)] = 1.0
        self.path_ = SelectionPath.from_scores(scores).beside(covariates)
        return self

    def get_support(self) -> NDArray[np.bool_]:
        """Mask of the features."""
        mask = np.zeros(self.path_.n_features, dtype=bool)
        mask[list(self.columns)] = True
        return mask


@dataclass(frozen=True)
class GivenList:
    """The features of a list that the table has, and notes about the others."""

    columns: list[int]
    names: list[str]
    missing: list[str]
    notes: tuple[str, ...]


def test_list(job: Job) -> Result:
    """Evaluate the list, a list found inside the folds and the extended list; draw random lists."""
    table, settings = job.table, job.settings
    panel = panel_of(settings.panel, job.whole)
    metric = procedures.primary_metric_of(table, settings)
    built = _procedures(job, panel)
    n_permutations = int(settings.permutations) if settings.permutations != "auto" else 0
    n_fits = len(built) * (1 + n_permutations) + settings.random_lists
    job.bar.expect(len(built) - 1 + settings.cv * settings.repeats * n_fits)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        baseline = chance.baseline_records(table, settings)
        records = training.evaluate_procedures(built, table, settings, [], journal=job.journal, bar=job.bar)
        measured.check_something_worked(records, metric, list(built))
        rows = []
        for name, procedure in built.items():
            found = measured.measure(name, records, baseline, table, settings)
            if table.covariates is None:
                found = with_permutations(job, name, procedure, records, baseline, n_permutations, found)
            elif name == LIST:
                found = _beside_covariates(job, procedure, records, n_permutations, found)
            rows.append(found)
        if table.covariates is not None:
            alone = added.covariate_records(table, settings)
            rows.append(measured.measure(added.COVARIATES, alone, baseline, table, settings))
        of_lists = _random_values(job, len(panel.columns), metric)
        chosen = {name: _selected_names(job, built[name]) for name in built if name != LIST}
    rows.append(measured.measure(chance.BASELINE, baseline, baseline, table, settings))
    content = _content(panel, rows[0], of_lists, chosen)
    notes = [*table.notes, *panel.notes, *procedures.predictor_notes(settings)]
    notes += [CHOSEN_ELSEWHERE, *_selected_notes(chosen, panel), *added.added_notes(table, settings)]
    notes += chance.exchange_notes(table, settings) if table.covariates is None else []
    notes += advice(compare_records(records, metric), rows)
    return Result(
        kind="comparison",
        data=describe_data(job),
        methods=[_described(name, procedure) for name, procedure in built.items()],
        size={"chosen": settings.features, "rule": RULES[_rule(settings)], "tried": [len(panel.columns)]},
        panel=content,
        table=rows,
        names={index: str(table.feature_names[index]) for index in _shown_features(records, panel)},
        notes=job.rendered(notes),
        warnings=job.rendered([*checks.data_warnings(job.whole), *failures(rows), *messages_of(caught)]),
        provenance=job.provenance(built),
        records=records,
    )


# -- The list -----------------------------------------------------------------------------------------


def panel_of(given: Any, table: Table) -> GivenList:
    """The features of the table that a list names; those that it lacks are noted, with similar names."""
    wanted = _names(given)
    names = list(dict.fromkeys(wanted))
    position = {str(name): index for index, name in enumerate(table.feature_names)}
    levels: dict[str, list[int]] = {}
    for feature, index in position.items():
        levels.setdefault(feature.partition("=")[0], []).append(index)
    columns: list[int] = []
    missing = []
    for name in names:
        found = [position[name]] if name in position else levels.get(name, []) if "=" not in name else []
        columns += found
        if not found:
            missing.append(name)
    columns = list(dict.fromkeys(columns))
    lacking = _lacking(missing, list(position))
    if not columns:
        raise OptionError(f"names no feature of the table. {lacking}", "panel")
    notes = [lacking] if missing else []
    if len(names) < len(wanted):
        notes.append(f"{counted(len(wanted) - len(names), 'repeated name')} in the list counted once.")
    return GivenList(columns, [str(table.feature_names[i]) for i in columns], missing, tuple(notes))


def _lacking(missing: list[str], known: list[str]) -> str:
    similar = similar_names(missing[:MOST_SHOWN], known)
    hint = f" It has {', '.join(similar)}: the same feature with another name?" if similar else ""
    return f"The table lacks {counted(len(missing), 'feature')} of the list: {shown_list(missing, MOST_SHOWN)}.{hint}"


def _names(given: Any) -> list[str]:
    """The names in a sequence, or in a file with one name per line or a column of names."""
    if isinstance(given, (str, os.PathLike)):
        path = Path(given)
        if not path.is_file():
            raise OptionError(
                f"names the file {str(given)!r}, which does not exist. Give a file with one name per line, or a list "
                "of names.",
                "panel",
            )
        names = _names_in(path)
    else:
        names = [str(name).strip() for name in given]
    names = [name for name in names if name]
    if not names:
        raise OptionError("holds no name. Give at least one feature.", "panel")
    return names


def _names_in(path: Path) -> list[str]:
    """The first column of a file, or the one that is called like names of features."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise OptionError(f"names {str(path)!r}, which is not a text file in UTF-8.", "panel") from error
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    delimiter = next((mark for mark in "\t;," if lines and mark in lines[0]), "\t")
    rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter))
    head = [cell.strip().casefold() for cell in rows[0]] if rows else []
    column = next((head.index(name) for name in NAMES_OF_COLUMNS if name in head), None)
    if column is not None:
        rows = rows[1:]
    elif len(rows) == 1:  # all names in one line
        return [cell.strip() for cell in rows[0]]
    return [row[column or 0].strip() for row in rows if len(row) > (column or 0)]


# -- What it is compared with -------------------------------------------------------------------------


def _procedures(job: Job, panel: GivenList) -> dict[str, Any]:
    """The list, the method that selects inside the folds and, if asked for, the list that this method extends."""
    table, settings = job.table, job.settings
    name = settings.method or procedures.default_method(job.whole)
    built: dict[str, Any] = {LIST: FixedFeatures(panel.columns, procedures.covariates_of(table) or ())}
    built[name] = procedures.build_procedure(name, table, settings, procedures.sizes_to_try(table, settings))
    if settings.extend:
        wanted = len(panel.columns) + settings.extend
        if wanted > table.n_features:
            raise OptionError(
                f"asks for {settings.extend} features beside the {len(panel.columns)} of the list, but the table has "
                f"{table.n_features}. Ask for at most {table.n_features - len(panel.columns)}.",
                "extend",
            )
        more = replace(settings, keep=tuple(panel.names), features=wanted)
        sizes = procedures.sizes_to_try(table, more)
        built[f"{LIST} + {settings.extend}"] = procedures.build_procedure(name, table, more, sizes)
    return built


def _beside_covariates(
    job: Job, procedure: Any, records: Any, n_permutations: int, found: dict[str, Any]
) -> dict[str, Any]:
    """The measures of the list with what it adds to the covariates."""
    table, settings = job.table, job.settings
    plain = added.without_covariates(table)
    alone = added.features_alone(FixedFeatures(procedure.columns), table, plain, settings)
    value = added.measure_added(LIST, records, table, settings, alone)
    if n_permutations:
        value = added.with_test(value, LIST, procedure, table, settings, n_permutations, job.journal, job.bar)
    return added.with_added(found, value)


def _rule(settings: Any) -> str:
    return "fixed" if settings.features is not None else settings.rule


def _described(name: str, procedure: Any) -> dict[str, Any]:
    if isinstance(procedure, FixedFeatures):
        return {
            "name": f"the given list of {counted(len(procedure.columns), 'feature')}",
            "label": name,
            "class": type(procedure).__name__,
            "reference": "",
            "parameters": {},
        }
    return describe_method(name, getattr(procedure, "selector", procedure), name)


def _selected_names(job: Job, procedure: Any) -> list[str]:
    """What a procedure selects from all samples."""
    fitted = training.fit_procedure(procedure, job.whole, job.settings)
    job.bar.advance(1)
    return [str(job.whole.feature_names[i]) for i in selected_support(fitted, fitted.path_)]


def _selected_notes(chosen: dict[str, list[str]], panel: GivenList) -> list[str]:
    """What the other procedures select from all samples."""
    notes = []
    for name, features in chosen.items():
        extends = name.startswith(f"{LIST} + ")
        new = [feature for feature in features if not extends or feature not in panel.names]
        does = "The extended list adds" if extends else f"From all samples, {name} selects"
        notes.append(f"{does} {shown_list(new, MOST_SHOWN) if new else 'no feature'}.")
    return notes


def _random_values(job: Job, size: int, metric: str) -> list[float]:
    """The metric of random lists of the same size on the same folds, each drawn from all features."""
    table, settings = job.table, job.settings
    if settings.random_lists == 0 or size >= table.n_features:
        return []
    rng = np.random.default_rng(np.random.SeedSequence(settings.random_state, spawn_key=(RANDOM_STREAM,)))
    covariates = procedures.covariates_of(table) or ()
    drawn = {
        f"random {i}": FixedFeatures(rng.choice(table.n_features, size, replace=False).tolist(), covariates)
        for i in range(settings.random_lists)
    }
    records = columns_of(training.evaluate_procedures(drawn, table, settings, [], bar=job.bar))
    values = (own_rows_of(records, name)[metric] for name in drawn)
    means = [[value for value in found if value is not None] for found in values]
    return [float(np.mean(found)) for found in means if found]


def _content(
    panel: GivenList, own: dict[str, Any], values: list[float], chosen: dict[str, list[str]]
) -> dict[str, Any]:
    """What the result says about the list."""
    sign = 1.0 if own["greater_is_better"] else -1.0
    as_good = sum(sign * value >= sign * own["value"] - 1e-12 * abs(own["value"]) for value in values)
    return {
        "features": panel.names,
        "missing": panel.missing,
        "selected": chosen,
        "random_values": values,
        "p_value": (1 + as_good) / (1 + len(values)) if values else None,
    }


def _shown_features(records: Any, panel: GivenList) -> list[int]:
    """Features of the list and those that were selected in a fold, whose names figures show."""
    selected = {int(i) for row in columns_of(records)["selected"] if row is not None for i in row}
    return sorted({*panel.columns, *selected})
