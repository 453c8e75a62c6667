"""The public result of a run: its values, with methods that draw and save it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zeronorm._messages import OptionError, parameter, setting
from zeronorm.result._files import write_files
from zeronorm.result._folder import output_folder
from zeronorm.result._record import ResultData

if TYPE_CHECKING:
    from zeronorm.evaluation.learning._answer import LearningCurve
    from zeronorm.evaluation.stand_ins._answers import Substitutes
    from zeronorm.workflow._explanation import Explanation


class Result(ResultData):
    """What ``select`` and ``compare`` return.

    Parameters
    ----------
    kind : {"selection", "comparison"}
        Type of the run.
    data : dict
        Source, target, task, n_samples, n_features, class_counts and sha256 of the data.
    methods : list of dict
        Name, class, reference and parameters of each method.
    chosen_method : str or None, default=None
        The method of the selection. None for a comparison.
    size : dict, default={}
        The chosen number of features, the rule that chose it and the numbers that were tried.
    procedure : dict, default={}
        The whole procedure on the outer folds: metric, value with interval (for the models fitted in
        these folds), chance, p-value, stability and the number of features in each fold. Empty for a comparison.
    proof : dict, default={}
        How much better another set of the same size could fit these samples, where that is proved.
    panel : dict, default={}
        The given list and its error beside random lists, of ``test_panel``; empty for other runs.
    table : list of dict, default=[]
        What ``procedure`` has, for each method of a comparison.
    selected : list of SelectedFeature, default=[]
        The selected features.
    listed : list of ListedFeature, default=[]
        The features of the three lists in ``lists``, those of the smallest list first.
    names : dict, default={}
        Names of the features that appear in figures, by position.
    notes : list of str, default=[]
        What was inferred or changed in the data, and remarks on the result.
    warnings : list of str, default=[]
        Reasons for caution about the data and the result.
    provenance : dict, default={}
        Command, versions, seeds, folds, start and duration.
    figures : dict, default={}
        Numbers in figures that come from the data and not from the records.
    records : DataFrame or None, default=None
        The frame of ``evaluate``: one row per split, method and size.
    model : LinearModel or None, default=None
        The predictor on the selected features. None for a comparison.
    stored_substitutes, stored_learning_curve : dict, default={}
        What ``substitutes()`` and ``learning_curve()`` returned in the run, as plain values.
    run : FinishedRun or None, default=None
        The data and the fitted procedure, in memory only, for questions that are asked later.

    Examples
    --------
    >>> import zeronorm
    >>> result = zeronorm.select("linear-toy", method="fisher", features=2, permutations=0)
    >>> result.kind, result.chosen_method, len(result.selected)
    ('selection', 'fisher', 2)
    """

    def plot_errors(self, ax: Any = None) -> Any:
        """Error against the number of features, as a matplotlib figure."""
        return self.plot("error", ax)

    def plot_stability(self, ax: Any = None) -> Any:
        """Stability of the selected sets against their size, as a matplotlib figure."""
        return self.plot("stability", ax)

    def plot_path(self, ax: Any = None) -> Any:
        """The features in the subset of each size, as a matplotlib figure."""
        return self.plot("path", ax)

    def plot(self, chart: str, ax: Any = None) -> Any:
        """Any chart of the report by name, on ``ax`` or as a new matplotlib figure."""
        from zeronorm.report import figure

        return figure(chart, self.records, self, ax=ax)

    def substitutes(self, data: Any = None) -> Substitutes:
        """The features that would do as well as each selected one; see ``zeronorm.substitutes``.

        ``data`` is the file of the run, for a result that was loaded; by default it is read from where it was.
        """
        from zeronorm.evaluation.stand_ins._answers import Substitutes
        from zeronorm.workflow._questions import run_of, substitutes_of

        if self.stored_substitutes:
            return Substitutes.from_dict(self.stored_substitutes)
        return substitutes_of(run_of(self, data))

    def learning_curve(self, data: Any = None) -> LearningCurve:
        """The error on growing parts of the samples and with more of them; see ``zeronorm.learning_curve``.

        ``data`` is the file of the run, for a result that was loaded; by default it is read from where it was.
        """
        from zeronorm.evaluation.learning._answer import LearningCurve
        from zeronorm.workflow._questions import learning_curve_of, run_of

        if self.stored_learning_curve:
            return LearningCurve.from_dict(self.stored_learning_curve)
        return learning_curve_of(run_of(self, data))

    def explain(self, name: str, data: Any = None) -> Explanation:
        """Why a feature was selected or not: ranks, frequency, effect, and what takes its place.

        ``data`` is the file of the run, for a result that was loaded; by default it is read from where it was. Without
        it the answer says what cannot be known.
        """
        from zeronorm.workflow._explanation import explain_feature

        return explain_feature(self, name, data)

    def report(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the HTML report to a file, or as report.html into a folder."""
        return write_report(self, Path(path), force=force)

    def save(self, folder: str | os.PathLike[str], *, model: bool = False, force: bool = False) -> Path:
        """Write result.json, records.parquet, report.html and, for a selection, selected.csv and figures.parquet.

        With ``model`` also the predictor on the selected features, as model.json.
        """
        with output_folder(folder, force=force) as folders:
            write_result(self, folders.folder, with_model=model)
        return Path(folder)


def write_result(result: Result, folder: Path, *, with_model: bool) -> None:
    """Write all files of a result to a folder, including the report."""
    from zeronorm.report._html import render_report

    write_files(result, folder, with_model=with_model)
    (folder / "report.html").write_text(render_report(result, result.records), encoding="utf-8")


def write_report(result: Result, path: Path, *, force: bool) -> Path:
    """Write the HTML report of a result."""
    from zeronorm.report._html import render_report

    return write_page(lambda: render_report(result, result.records), path, force=force)


def write_page(render: Callable[[], str], path: Path, *, force: bool) -> Path:
    """Write an HTML page to a file, or as report.html into a folder; no part of a page is left behind."""
    file = path if path.suffix.lower() in (".html", ".htm") else path / "report.html"
    if file.exists() and not force:
        raise OptionError(
            f"{str(file)!r} exists. Choose another path ({parameter('out')}), or {setting('force', True, 'set')} to "
            "replace it."
        )
    text = render()
    temporary = file.parent / f".report-{os.getpid()}.part"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)
    except OSError as error:
        if temporary.is_file():
            temporary.unlink()
        raise OptionError(
            f"The report cannot be written to {str(file)!r}: {error.strerror}. Choose another path "
            f"({parameter('out')})."
        ) from error
    return file
