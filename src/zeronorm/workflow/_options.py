"""The options of a run, declared once.

The checks of ``select`` and ``compare``, the parameters in their docstrings, the flags of the command line and the
provenance of a call are made from the records in this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zeronorm._messages import Mention, Naming, OptionError, parameter, setting
from zeronorm.workflow._kinds import (
    ListedNames,
    Names,
    OneOf,
    Option,
    OptionKind,
    Options,
    Parameters,
    Permutations,
    PositiveNumber,
    Predictor,
    Sheet,
    Size,
    WholeNumber,
    defaults_of,
    option,
    shared,
)

SWITCH, NAMES = OptionKind("bool", "switch"), Names("str or list of str", "names")
PATTERNS = "a name, a pattern such as 'AFFX*', or re:REGEX; repeat for more."
DATA = Option(
    OptionKind("array-like, sparse matrix, data frame, Design, path or str"),
    'The data, the path of a file (CSV, Excel, Parquet and others, compressed or not; "-" is standard input), or the '
    "name of a known data set. Files ending in .npy or .zncols, and .parquet files with a separate target, are not "
    "loaded into memory as a whole; nor are .zarr folders, and .h5ad files that are larger than 512 MiB or for which a "
    "memory budget is given.",
    "A CSV, TSV, Excel, ODS, Parquet, Arrow, NPZ, NPY, LIBSVM, MAT, ARFF or h5ad file, compressed or not; a Zarr "
    "folder; - for standard input; or a name from `zeronorm datasets`.",
    "DATA",
)


@dataclass(frozen=True)
class Caller:
    """The interface that started a run: Python or the command line.

    Parameters
    ----------
    command : the command or call, for the provenance; None: the call in Python.
    naming : how notes and warnings name options.
    """

    command: str | None = None
    naming: Naming = Mention.in_python


def check_times(options: Any) -> bool:
    """Whether a time and an event are given instead of a target; an error for one without the other."""
    given = {"time": options.time is not None, "event": options.event is not None}
    if not any(given.values()):
        return False
    if options.target is not None:
        raise OptionError(
            f"does not apply together with {parameter('time', 'object')} and {parameter('event', 'object')}, which "
            "are the target. Leave one of them out.",
            "target",
        )
    for name, other in (("time", "event"), ("event", "time")):
        if not given[other]:
            raise OptionError(
                f"needs {parameter(other, 'object')}: a time to an event has a time, and an event that happened "
                "then or not.",
                name,
            )
    return True


@dataclass(frozen=True, kw_only=True)
class DataOptions(Options):
    """The options that describe the data."""

    target: Any = option(
        None,
        OptionKind("str, path, array-like or None"),
        "The target: name of a column, or an array. For data on disk also the path of a .npy file.",
        "Column to predict, or a .npy file for data that stay on disk.",
        "-t COLUMN",
    )
    task: str | None = option(
        None,
        OptionKind(
            '{"classification", "regression", "survival"} or None',
            "choice",
            values=("classification", "regression", "survival"),
        ),
        "Whether the target holds classes, numbers, or times to an event. None: inferred from the target, with a note.",
        "Whether the target holds classes, numbers, or times to an event. Default: inferred, with a note.",
    )
    time: Any = option(
        None,
        OptionKind("str, array-like or None"),
        "For times to an event (survival): name of the column with the times, or an array. Takes the place of "
        "``target``, together with ``event``.",
        "For times to an event (survival): column with the times. With --event it takes the place of --target.",
        "COLUMN",
    )
    event: Any = option(
        None,
        OptionKind("str, array-like or None"),
        "Name of the column that says whether the event happened at that time (1, True, or a word such as dead) or the "
        'sample was censored then (0, False, alive), or an array. "column=value" names the value of the event.',
        "Column that says whether the event happened (1, true, dead) or not (0, false, alive); COLUMN=VALUE names the "
        "value of the event.",
        "COLUMN[=VALUE]",
    )
    samples: Any = option(
        None,
        OptionKind("path, data frame or None", "path"),
        "A second table with one row per sample that holds the target. It is joined by the names of the samples. Its "
        "other columns become features only if ``keep``, ``only`` or ``categorical`` name them.",
        "Second file with the target, one row per sample, joined by the names of the samples (--id).",
        "FILE",
    )
    id: str | None = option(
        None,
        OptionKind("str or None"),
        "Column with the names of the samples.",
        "Column with the names of the samples.",
        "COLUMN",
    )
    sample_groups: Any = option(
        None,
        OptionKind("str, array-like or None"),
        "Column or array of groups of samples (patients, batches). The samples of a group are in the same fold.",
        "Column of groups of samples (patient, batch), which are kept in the same fold.",
        "--groups --sample-groups COLUMN",
    )
    feature_groups: Any = option(
        None,
        OptionKind("list, dict, path or None", "path"),
        "One label per feature, a dict from feature to group, or the path of a file. The features of a group are "
        "selected together or not at all.",
        "CSV (feature,group) or JSON file. The features of a group are selected together or not at all.",
        "FILE",
    )
    annotation: Any = option(
        None,
        OptionKind("path, data frame or None", "path"),
        "A table with one row per feature that describes the features, such as symbols and titles of genes. The "
        "descriptions of the selected features are in the result, in selected.csv and in the report.",
        "File that describes the features, one row per feature, for selected.csv and the report.",
        "FILE",
    )
    keep: tuple[str, ...] = option(
        (),
        NAMES,
        "Features that are always selected. This option, ``ignore``, ``only`` and ``categorical`` also take patterns "
        'such as "AFFX*" and regular expressions such as "re:^AFFX".',
        f"Columns that are always selected: {PATTERNS}",
        "NAME",
    )
    ignore: tuple[str, ...] = option(
        (), NAMES, "Columns to leave out.", f"Columns to leave out: {PATTERNS}", "NAME"
    )
    only: tuple[str, ...] = option(
        (),
        NAMES,
        "The columns to use as features. Empty: all.",
        f"Columns to use as features: {PATTERNS}",
        "NAME",
    )
    categorical: tuple[str, ...] = option(
        (),
        NAMES,
        "Columns whose numbers are codes of categories.",
        "Column whose numbers are codes of categories; repeat for more.",
        "COLUMN",
    )
    adjust: tuple[str, ...] = option(
        (),
        ListedNames("str or list of str", "names"),
        "Covariates: columns that are in every model beside the features, such as age, sex or a batch. They are not "
        "selected and not counted. Features are selected for what they add to them, and the result says how much that "
        "is: the metric of the covariates alone, of the features alone and of both, and a test of the difference.",
        "Columns that are in every model, such as age,sex,batch. Features are selected for what they add to them, and "
        "the result measures that.",
        "NAMES",
    )
    missing: str = option(
        "median",
        OptionKind(
            '{"median", "error", "drop-rows", "drop-columns"}',
            "choice",
            values=("median", "error", "drop-rows", "drop-columns"),
        ),
        'What to do with missing values. "median" fills them with the median of the column, computed on the '
        "training samples of each fold.",
        "What to do with missing values. median: fill in the median of the training samples of each fold.",
    )
    censored: str = option(
        "error",
        OneOf('{"error", "half", "missing"}', "choice", values=("error", "half", "missing")),
        'What to do with limits of detection among numbers, such as "<0.5": an error, half of the limit (for values '
        "above one, the limit itself), or a missing value.",
        "What to do with limits of detection, such as <0.5. half: half of the limit.",
    )
    drop_unlabelled: bool = option(
        False,
        SWITCH,
        "Whether to leave out samples without a target. If False, they are an error.",
        "Leave out samples without a target.",
    )
    min_class_size: int = option(
        0,
        WholeNumber("int", "number"),
        "Classes with fewer samples are left out.",
        "Leave out classes with fewer samples than this.",
    )
    transpose: bool = option(
        False,
        SWITCH,
        "Whether the samples of a file are in columns.",
        "Samples are in columns, as in gene tables.",
    )
    delimiter: str | None = option(
        None,
        OptionKind("str or None"),
        "Character between two cells of a text file. None: the one that fits the file.",
        "Separator of a text file, such as ';' or tab. Default: detected.",
        "CHARACTER",
    )
    decimal_comma: bool = option(
        False,
        SWITCH,
        "Whether decimals of a text file are written with a comma.",
        "Decimals are written with a comma, as in 1,5.",
    )
    encoding: str | None = option(
        None,
        OptionKind("str or None"),
        'Encoding of text files, such as "gb18030". None: detected from the content.',
        "Encoding of text files, such as gb18030. Default: detected.",
        "NAME",
    )
    sheet: str | None = option(
        None,
        Sheet("str, int or None"),
        "Name or number of the sheet of a workbook. None: the first sheet that holds a table.",
        "Name or number of the sheet of a workbook. Default: the first that holds a table.",
        "NAME|N",
    )
    header_row: int | None = option(
        None,
        WholeNumber("int or None", "number", least=1),
        "Number of the line of a text file, or of the row of a sheet, that holds the names of the columns. None: found "
        "from the cells.",
        "Line of a text file, or row of a sheet, that holds the names of the columns. Default: found.",
    )
    random_state: int = option(
        0,
        WholeNumber("int", "number"),
        "Seed of all random numbers. Each fold has its own seed, which is recorded in ``provenance``.",
        "Seed of the random numbers.",
        "--seed",
    )
    memory_budget: int | None = option(
        None,
        OptionKind("int or None", "size"),
        "Memory in bytes for blocks of data on disk, in each process. None: 512 MiB.",
        "Memory for data that stay on disk, such as 512M or 2G. Default: 512M.",
        "SIZE",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not check_times(self):
            return
        if self.task not in (None, "survival"):
            raise OptionError(f"must be 'survival' with times and events. Got {self.task!r} instead.", "task")
        object.__setattr__(self, "task", "survival")


@dataclass(frozen=True, kw_only=True)
class Settings(DataOptions):
    """The options of the procedure; ``features`` None chooses their number by cross-validation."""

    features: Any = option(
        "auto",
        Size('int or "auto"'),
        'Number of features. "auto" chooses it inside the folds.',
        "Number of features, or auto to choose it inside the folds.",
        "-k N|auto",
    )
    params: Mapping[str, Any] = option(
        None,
        Parameters("dict or None", "parameters"),
        "Parameters of the method.",
        "Parameter of the method, such as C=10; repeat for more.",
        "--param -p NAME=VALUE",
    )
    rule: str = option(
        "recommended",
        OneOf(
            '{"fewest", "recommended", "all"}',
            "choice",
            values=("fewest", "recommended", "all"),
            former={"one_se": "fewest", "best": "all"},
        ),
        'How "auto" chooses the number of features from the scores inside the folds. "fewest": the smallest number '
        'within about one standard error of the best score. "recommended": the smallest number whose score is nearly '
        'the best, within about half a standard error. "all": the number with the best score, beyond which features do '
        "not help.",
        "Which list auto returns. fewest: within about one standard error of the best score; recommended: nearly the "
        "best score, within about half a standard error; all: every feature that improves the score.",
    )
    units: str = option(
        "auto",
        OneOf(
            '{"auto", "standardized", "common", "log", "root", "rows", "root rows"}',
            "choice",
            values=("auto", "standardized", "common", "log", "root", "rows", "root rows"),
        ),
        'How the method auto compares samples. "standardized": each column with mean 0 and variance 1; "common": all '
        'columns divided by one number; "log" and "root": standardised logarithms or square roots; "rows" and "root '
        'rows": each sample, or its square roots, divided by its length. "auto": standardised, unless others predict '
        "the inner folds clearly better.",
        "How the method auto compares samples: standardised columns, one common scale, logarithms, square roots, or "
        "samples divided by their length. auto: standardised, unless others are clearly better.",
    )
    metric: str | None = option(
        None,
        OptionKind("str or None"),
        'The metric that is reported and optimised: "balanced_error_rate", "error_rate", "auc", "mse", "mae", '
        '"r2", the name of a registered ``Metric`` or of a scikit-learn scorer. None: the balanced error rate, or the '
        "mean squared error.",
        "The metric: auc, error_rate, r2 … or any scorer of scikit-learn.",
        "NAME",
    )
    predictor: Any = option(
        "auto",
        Predictor(
            '{"auto", "linear", "gaussian"} or estimator', "choice", values=("auto", "linear", "gaussian")
        ),
        "The model that predicts the target from the selected features, in the folds and at the end: a linear support "
        "vector machine (SVM) or ridge regression, an SVM with a Gaussian kernel (for nonlinear boundaries; its time "
        'grows with the square of the number of samples), or a scikit-learn estimator. "auto": the model that the '
        "method auto has chosen together with its features; for all other methods linear. An SVM has balanced class "
        "weights if ``metric`` counts all classes the same, such as the balanced error rate.",
        "The model on the selected features. gaussian: an SVM with nonlinear boundaries; auto: what the method chose, "
        "else linear.",
    )
    max_features: int | None = option(
        None,
        WholeNumber("int or None", "number", least=1),
        "Largest number of features to try. None: 128.",
        "Largest number of features to try.",
    )
    cv: int = option(
        5,
        WholeNumber("int", "number", least=2),
        "Number of outer folds.",
        "Number of folds of the cross-validation.",
    )
    repeats: int = option(
        1,
        WholeNumber("int", "number", least=1),
        "How many times the outer cross-validation is repeated, with new folds.",
        "How many times to repeat the outer cross-validation, with new folds.",
    )
    permutations: int | str = option(
        "auto",
        Permutations('int or "auto"', "count"),
        'Number of permuted targets on which the whole procedure is repeated, for a p-value. "auto": up to 99 if that '
        "is estimated to take less than 20 seconds, otherwise none; if the metric has no interval, so that nothing "
        "else can test the result, 19 if that takes less than two minutes.",
        "How many permutations of the target, for a p-value: a number, 0, or auto (if it does not take long).",
        "N|auto",
    )
    group_design: str = option(
        "auto",
        OneOf('{"auto", "between", "block"}', "choice", values=("auto", "between", "block")),
        'What permutations exchange where there are ``sample_groups``: "between" the label patterns of whole groups, '
        '"block" the labels within each group (paired samples, such as tumour and normal tissue of each patient). '
        '"auto": within groups if nearly all of them have the same mix of labels, otherwise between groups.',
        "What permutations exchange with --groups: labels of whole groups (between), labels within each group (block: "
        "paired samples), or what the labels show (auto).",
    )
    n_jobs: int | None = option(
        None,
        OptionKind("int or None", "number", least=-1),
        "Number of processes. None: chosen from the amount of work. The result does not depend on it.",
        "Number of processes: -1 uses all cores, 0 chooses from the amount of work.",
        "--jobs -j",
    )
    verbose: bool = option(False, SWITCH, "Show progress.")

    @property
    def has_own_groups(self) -> bool:
        """Whether the user gave groups of features."""
        return self.feature_groups is not None


@dataclass(frozen=True, kw_only=True)
class RunOptions(Settings):
    """The options of every run: data, procedure, seed, device or cluster, and output folder."""

    seed: int | None = option(
        None,
        WholeNumber("int or None", "number"),
        "The same as ``random_state``, under the name that it has on the command line.",
    )
    device: str | None = option(
        None,
        OptionKind("str or None"),
        'Device on which the methods run, such as "cuda"; the features are copied to it in blocks. Needs torch or '
        "CuPy. None: the device that holds the data.",
        "Device on which the methods run, such as cuda.",
        "NAME",
    )
    dask: str | None = option(
        None,
        OptionKind("str or None"),
        "Address of a Dask scheduler, whose workers then fit the folds in parallel. None: processes of this machine.",
        "Address of a Dask scheduler, whose workers then fit the folds.",
        "ADDRESS",
    )
    out: Any = option(
        None,
        OptionKind("path or None", "path"),
        "Folder for the results. It also keeps finished folds if the run is interrupted.",
        "Folder for the results. Default: a new one, named after the data and the time.",
        "-o FOLDER",
    )
    force: bool = option(False, SWITCH, "Whether to replace results in ``out``.", "Replace existing results.")
    resume: bool = option(
        False,
        SWITCH,
        "Whether to continue an interrupted run from the finished folds in ``out``.",
        "Continue an interrupted run; its finished folds are not computed again.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed is None:
            return
        if self.random_state not in (0, self.seed):
            raise OptionError(
                f"is another name of {parameter('random_state', 'the name')}. Got {self.seed} beside "
                f"{setting('random_state', self.random_state)}. Leave one of them out.",
                "seed",
            )
        object.__setattr__(self, "random_state", self.seed)


@dataclass(frozen=True, kw_only=True)
class SelectOptions(RunOptions):
    """The options of ``select``."""

    method: str | None = option(
        None,
        OptionKind("str or None"),
        'Name of a selector; or "knockoff-selector", "probe-selector" or "stability-selection" around the selector '
        'named in ``params``. None or "auto": a few methods and their consensus are compared inside the '
        "folds, which takes up to 100 times as long as one method, or longer with small tables.",
        "A name from `zeronorm methods`. Default: auto, which compares a few and takes up to 100 times as long.",
        "-m NAME",
    )
    control: str | None = option(
        None,
        OneOf('{"fdr", "fwer", "expected"} or None', "choice", values=("fdr", "fwer", "expected")),
        'What to limit to ``level``, instead of the error: "fdr", the expected share of false features among the '
        'selected ones; "fwer", the probability of any false feature; "expected", their expected number. The method '
        "(dummies, knockoffs, probes or half-samples) follows from the data, and the result says which and why.",
        "Limit false features, instead of the error: their expected share (fdr), the probability of any (fwer), or "
        "their expected number. The method follows from the data, and the result says why.",
    )
    level: float | None = option(
        None,
        PositiveNumber("float or None", "decimal"),
        'The largest value that ``control`` allows. None: 0.1 with "fdr", 0.05 with "fwer", 1 with "expected".',
        "The largest value that --control allows. Default: 0.1 (fdr), 0.05 (fwer), 1 (expected).",
        "NUMBER",
    )
    substitutes: bool = option(
        False,
        SWITCH,
        "Whether to look for the features that would do as well as each selected one, for the result, the report and "
        "substitutes.csv.",
        "Look for the features that would do as well as each selected one: table in the report, substitutes.csv.",
    )
    learning_curve: bool = option(
        False,
        SWITCH,
        "Whether to repeat the whole procedure on growing parts of the samples, and to predict the error for two and "
        "four times as many. Takes about fifteen times as long as the cross-validation.",
        "Repeat the procedure on growing parts of the samples and predict the error for two and four times as many. "
        "Takes about fifteen times as long as the cross-validation.",
    )
    save_model: bool = option(
        False,
        SWITCH,
        "Whether to write the predictor on the selected features to ``out``, as model.json.",
        "Write model.json, for `zeronorm apply`.",
    )
    write_table: Any = option(
        None,
        OptionKind("path or None", "path"),
        "File (.csv or .parquet) for the target and the selected columns.",
        "CSV or Parquet file for the selected columns and the target.",
        "FILE",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_control()
        if self.save_model and not isinstance(self.predictor, str):
            raise OptionError(
                "applies to the predictors of zeronorm only, not to other estimators. Use "
                f"{setting('predictor', 'linear')} or {setting('predictor', 'gaussian')}.",
                "save_model",
            )

    def _check_control(self) -> None:
        """Raise an error for options that contradict ``control``."""
        if self.control is None:
            if self.level is not None:
                raise OptionError(
                    f"needs {parameter('control', 'object')}, which says what is limited to it: 'fdr', 'fwer' or "
                    "'expected'.",
                    "level",
                )
            return
        if self.level is not None and self.level >= 1.0 and self.control != "expected":
            raise OptionError(
                f"must be below 1 with {setting('control', self.control)}, which limits a share or a probability. Got "
                f"{self.level:g} instead.",
                "level",
            )
        choices = {
            "method": (self.method is not None, "the method follows from the data"),
            "params": (bool(self.params), "the method follows from the data"),
            "features": (self.features is not None, "their number follows from the level"),
            "rule": (
                self.rule != defaults_of(type(self))["rule"],
                "the number of features follows from the level",
            ),
        }
        for name, (is_given, reason) in choices.items():
            if is_given:
                raise OptionError(
                    f"does not apply together with {setting('control', self.control)}: {reason}. Leave one of them "
                    "out.",
                    name,
                )


@dataclass(frozen=True, kw_only=True)
class CompareOptions(RunOptions):
    """The options of ``compare``."""

    methods: Any = option(
        None,
        OptionKind("str, list of str or None"),
        'Names of methods, as a list or separated by commas, or "all-fast" for all filters and sparse methods. None: '
        "fisher and rfe.",
        "Names of methods, separated by commas; or all-fast. Default: fisher,rfe.",
        "-m NAMES",
    )
    params: Mapping[str, Any] = option(
        None,
        Parameters("dict or None", "parameters"),
        'Parameters by method, such as ``{"rfe": {"C": 3}}``.',
        "Parameter of one method, such as rfe.C=3; repeat for more.",
        "--param -p METHOD.NAME=VALUE",
    )
    permutations: int | str = option(
        0,
        Permutations("int", "count"),
        "Number of permuted targets for a p-value of each method.",
        "How many permutations of the target, for a p-value: a number, 0, or auto (if it does not take long).",
        "N|auto",
    )


@dataclass(frozen=True, kw_only=True)
class PanelOptions(RunOptions):
    """The options of ``test_panel``."""

    panel: Any = option(
        None,
        OptionKind("list of str or path"),
        "The list of features that somebody else chose: names, or a file with one name per line or a column of names.",
        "File with one name of a feature per line, or a table with a column of names.",
        "LIST",
    )
    method: str | None = shared(
        SelectOptions,
        "method",
        meaning="The method that selects another list inside the folds, for comparison, and extends the given list. "
        'None or "auto": a few methods are compared inside the folds, which takes up to 100 times as long as one.',
    )
    extend: int = option(
        0,
        WholeNumber("int", "number"),
        "How many features the method adds to the list, inside the folds; 0 adds none.",
        "Also measure the list with this many features added, which are selected inside the folds.",
    )
    random_lists: int = option(
        99,
        WholeNumber("int", "number"),
        "Number of random lists of the same size, for a p-value; 0 draws none.",
        "Number of random lists of the same size, for a p-value.",
    )
    permutations: int | str = shared(
        CompareOptions,
        "permutations",
        meaning="Number of permuted targets for p-values of the list and of the other procedures.",
    )


DATA_OF_APPLY = Option(
    OptionKind("path, data frame or array-like"),
    "The new samples: a file or a data frame, whose columns are found by name, or an array with the features of the "
    "model in order.",
    "File with new samples. Its columns are found by name.",
    "DATA",
)
MODEL = Option(
    OptionKind("path, Result or model"),
    "The model: ``result.model`` of a selection, the result itself, or the path of its model.json or of the folder.",
    "model.json of `select --save-model`, or its folder.",
    "MODEL",
)


@dataclass(frozen=True, kw_only=True)
class ApplyOptions(Options):
    """The options of ``apply``."""

    target: Any = option(
        None,
        OptionKind("str, array-like or None"),
        "The true values, to score the predictions: name of a column, or an array. Samples without a value are "
        "predicted and not scored. None predicts only.",
        "Column with the true values, to score the predictions and write a report.",
        "-t COLUMN",
    )
    time: Any = shared(DataOptions, "time")
    event: Any = shared(DataOptions, "event")
    samples: Any = shared(
        DataOptions, "samples", help="Second file with columns that are needed, one row per sample."
    )
    id: str | None = shared(DataOptions, "id")
    sample_groups: Any = option(
        None,
        OptionKind("str, array-like or None"),
        "Column or array of groups of samples (patients, batches), which are not independent: intervals allow for "
        "them.",
        "Column of groups of samples (patient, batch); intervals allow for them.",
        "--groups --sample-groups COLUMN",
    )
    missing_features: str = option(
        "error",
        OneOf('{"error", "refit"}', "choice", values=("error", "refit")),
        'What to do if the new data lack features of the model. "refit" fills them in by the best linear prediction '
        "from the other features and from others that the model knows to be correlated with them.",
        "What to do if features of the model are missing. refit: predict them from the others and from correlated "
        "ones.",
    )
    transpose: bool = shared(DataOptions, "transpose")
    delimiter: str | None = shared(DataOptions, "delimiter")
    decimal_comma: bool = shared(DataOptions, "decimal_comma")
    encoding: str | None = shared(DataOptions, "encoding")
    out: Any = option(
        None,
        OptionKind("path or None", "path"),
        "A .csv file for the predictions, or, with ``target``, a folder for predictions.csv, cohort.json and "
        "report.html.",
        "CSV file for the predictions; or, with --target, a folder for predictions.csv, cohort.json and report.html. "
        "Default: print to the terminal.",
        "-o FILE|FOLDER",
    )
    force: bool = shared(RunOptions, "force")

    @property
    def reading(self) -> dict[str, Any]:
        """The options of reading the files."""
        names = ("samples", "id", "transpose", "delimiter", "decimal_comma", "encoding")
        return {name: getattr(self, name) for name in names}

    @property
    def is_file(self) -> bool:
        """Whether ``out`` is a file for the predictions and not a folder."""
        has_truth = self.target is not None or self.time is not None
        return not has_truth or str(self.out).lower().endswith(".csv")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_times(self)
        if self.out is not None and self.is_file and Path(self.out).exists() and not self.force:
            raise OptionError(
                f"names {str(self.out)!r}, which exists. Choose another file, or {setting('force', True, 'set')} to "
                "replace it.",
                "out",
            )
