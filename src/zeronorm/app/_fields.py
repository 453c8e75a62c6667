"""The options of a run as fields of a page: which are shown, how they are called, and what they mean.

The fields come from the declared options, so that a new option of ``select`` or ``compare`` appears by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zeronorm._messages import Mention
from zeronorm.workflow._job import RUNS
from zeronorm.workflow._kinds import Option, Options, Size, defaults_of, options_of
from zeronorm.workflow._options import ApplyOptions

# Not for a page: they name addresses, devices and files outside of the working folder, or belong to the program.
HIDDEN = {
    *("out", "force", "resume", "verbose", "seed", "write_table", "save_model"),
    *("device", "dask", "memory_budget", "params", "data"),
}
# The kinds of run that a page of a table offers, each with its question and a sentence.
QUESTIONS = {
    "select": ("Which columns predict the outcome?", "Selects them and measures the error honestly."),
    "compare": ("Which method is best for this table?", "Compares methods on the same folds."),
    "test_panel": (
        "Does a list of columns that I have predict it?",
        "Measures the list beside random lists and one that is selected here.",
    ),
}
KINDS = tuple(kind for kind in QUESTIONS if kind in RUNS)
FILE_OPTIONS = ("sheet", "header_row", "decimal_comma", "transpose", "delimiter", "encoding")
FILES = ("samples", "annotation", "feature_groups")
# The roles of columns; those that take several columns have a list of names.
ROLES = {
    "target": "Outcome",
    "time": "Time until the event",
    "event": "Whether the event happened",
    "sample_groups": "Patient or batch",
    "id": "Name of the sample",
    "adjust": "Adjust for it",
    "keep": "Always keep",
    "categorical": "Categories",
    "ignore": "Leave out",
    "only": "Use only these",
}
QUESTION = (
    *("panel", "method", "methods", "control", "level", "features", "rule", "metric"),
    *("extend", "random_lists"),
)
LISTS = ("panel",)  # lists of names, which the command reads from a file
LABELS = {
    **ROLES,
    "task": "Kind of outcome",
    "samples": "Second table about the samples",
    "annotation": "Table that describes the features",
    "feature_groups": "File of feature groups",
    "missing": "Missing values",
    "censored": "Limits of detection (<0.5)",
    "drop_unlabelled": "Leave out samples without an outcome",
    "min_class_size": "Smallest class",
    "transpose": "Samples are in columns",
    "delimiter": "Separator",
    "decimal_comma": "Decimals are written with a comma (1,5)",
    "encoding": "Encoding of the text",
    "sheet": "Sheet",
    "header_row": "Row with the names of the columns",
    "random_state": "Seed of the random numbers",
    "features": "Number of features",
    "rule": "How short the list is",
    "units": "Units of the values",
    "metric": "Measure of the error",
    "predictor": "Model on the selected features",
    "max_features": "Largest number of features to try",
    "cv": "Folds",
    "repeats": "Repetitions",
    "permutations": "Shuffled outcomes",
    "group_design": "How groups are shuffled",
    "n_jobs": "Processes",
    "method": "Method",
    "methods": "Methods",
    "control": "Limit false features",
    "level": "Limit",
    "panel": "The list",
    "extend": "Columns to add to the list",
    "random_lists": "Random lists",
    "missing_features": "Features that the table lacks",
}
EMPTY = {  # what an empty field means
    "task": "found from the outcome",
    "sheet": "the first with a table",
    "header_row": "found",
    "delimiter": "found",
    "encoding": "found",
    "features": "auto",
    "metric": "the usual one",
    "max_features": "128",
    "n_jobs": "as many as the work needs",
    "method": "auto: tries several",
    "methods": "fisher, rfe",
    "control": "no: predict as well as possible",
    "level": "0.1, 0.05 or 1",
    "samples": "none",
    "annotation": "none",
    "feature_groups": "none",
}
HELP = {
    "time": "For survival data, instead of an outcome, together with whether the event happened.",
    "event": "1, true or dead; COLUMN=VALUE names the value of the event.",
    "samples": "One row per sample, with the outcome; it is joined by the names of the samples.",
    "annotation": "One row per feature, such as symbols and titles of genes, for the report.",
    "keep": "Names of columns, one per line. AFFX* stands for all names that begin with AFFX.",
    "ignore": "Names of columns, one per line. AFFX* stands for all names that begin with AFFX.",
    "only": "Names of columns, one per line. Empty: all.",
    "categorical": "Columns whose numbers are codes of categories, one per line.",
    "adjust": "Columns such as age or sex that every model has; features are selected for what they add. One per line.",
    "sample_groups": "Samples of the same patient or batch are never used to test each other.",
    "features": "Empty chooses the number by itself.",
    "cv": "The samples are divided into so many parts; each is set aside once to measure the error.",
    "repeats": "More repetitions with new folds make the error and the stability more certain.",
    "permutations": "Repeats everything with shuffled outcomes, for a p-value. auto: if it does not take long.",
    "n_jobs": "How many processor cores may work at the same time.",
    "min_class_size": "Classes with fewer samples are left out.",
    "method": "The page of each method says what it does; auto compares a few inside the folds.",
    "level": "The largest share, probability or number of false features.",
    "panel": "Names of columns, one per line.",
    "extend": "How many columns the method adds to the list inside the folds, to see what is missing.",
    "random_lists": "The list is compared with so many random ones of the same size.",
}
CHOICES = {
    "classification": "classes",
    "regression": "a number",
    "median": "fill in the median",
    "error": "stop with a message",
    "drop-rows": "leave the sample out",
    "drop-columns": "leave the column out",
    "half": "half of the limit",
    "missing": "count as missing",
    "fdr": "their expected share (false discovery rate)",
    "fwer": "the probability of any false feature",
    "expected": "their expected number",
    "fewest": "the fewest that are nearly as good",
    "recommended": "recommended: nearly the best error",
    "all": "all that improve the error",
    "between": "whole groups",
    "block": "within each group (paired samples)",
    "survival": "a time until an event",
    "refit": "predict them from the others",
}


@dataclass(frozen=True)
class Field:
    """One field of a page.

    Parameters
    ----------
    name : name of the option.
    option : its declaration.
    default : its declared default.
    """

    name: str
    option: Option
    default: Any

    @property
    def label(self) -> str:
        """How the page calls it."""
        return label_of(self.name)

    @property
    def help(self) -> str:
        """A sentence about it."""
        return HELP.get(self.name, "" if self.name in LABELS else self.option.help)

    @property
    def empty(self) -> str:
        """What an empty field means."""
        return EMPTY.get(self.name, "")

    @property
    def control(self) -> str:
        """The kind of field: "switch", "choice", "number", "decimal", "names", "file" or "text"."""
        if self.name in FILES:
            return "file"
        if self.name in LISTS:
            return "names"
        text = self.option.kind.text
        return text if text in ("switch", "choice", "number", "decimal", "names") else "text"

    @property
    def choices(self) -> list[tuple[str, str]]:
        """The values to choose from, each with its text."""
        return [(value, CHOICES.get(value, value)) for value in self.option.kind.values]

    @property
    def shown_default(self) -> str:
        """The default as the field shows it."""
        has_none = self.default is None or self.default is False or self.default == ()
        return "" if has_none else str(self.default)


def label_of(name: str) -> str:
    """How a page calls an option."""
    return LABELS.get(name, name.replace("_", " ").capitalize())


def record_of(kind: str) -> type[Options]:
    """The options of a kind of run."""
    found: type[Options] = ApplyOptions if kind == "apply" else RUNS[kind][0]
    return found


def fields_of(kind: str) -> dict[str, Field]:
    """The fields of a kind of run, by the name of the option."""
    record = record_of(kind)
    defaults = defaults_of(record)
    return {
        name: Field(name, option, defaults[name])
        for name, option in options_of(record).items()
        if name not in HIDDEN
    }


def sections(kind: str) -> dict[str, list[Field]]:
    """The fields in the sections of the page: how the file is read, roles, files, question, and all others."""
    fields = fields_of(kind)
    groups = {"file_options": FILE_OPTIONS, "roles": tuple(ROLES), "files": FILES, "question": QUESTION}
    found = {title: [fields[name] for name in names if name in fields] for title, names in groups.items()}
    taken = {name for names in groups.values() for name in names}
    return {**found, "more": [field for name, field in fields.items() if name not in taken]}


# -- From a page to the options -----------------------------------------------------------------------


class FieldError(ValueError):
    """A value of a field that is not accepted.

    Parameters
    ----------
    text : what is wrong and what to do.
    """


def options_from(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run from the texts of its fields; empty fields keep their defaults.

    Paths stay texts: the caller replaces names of files by paths in the working folder.
    """
    fields = fields_of(kind)
    unknown = [name for name in given if name not in fields]
    if unknown:
        raise FieldError(f"There is no field {unknown[0]!r}. Reload the page.")
    read = {name: _read(fields[name], value) for name, value in given.items()}
    defaults = {name: field.default for name, field in fields.items()}
    return {name: value for name, value in read.items() if value not in (None, (), defaults[name])}


def _read(field: Field, value: Any) -> Any:
    kind = field.option.kind.text
    if kind == "switch":
        return value is True or value == "true"
    if field.control == "names":
        lines = value.splitlines() if isinstance(value, str) else value
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise FieldError(f"“{field.label}” takes names, one per line.")
        return tuple(line.strip() for line in lines if line.strip())
    if not isinstance(value, str):
        raise FieldError(f"“{field.label}” takes a text. Reload the page.")
    text = value if field.name in ROLES or field.name == "delimiter" else value.strip()
    if not text:
        return None
    if kind == "choice" and field.option.kind.values and text not in field.option.kind.values:
        raise FieldError(f"“{field.label}” takes one of {', '.join(field.option.kind.values)}.")
    return _number(field, text) if kind in ("number", "decimal", "count") else _text(field, text)


def _text(field: Field, text: str) -> Any:
    if isinstance(field.option.kind, Size) and text.isdecimal():
        return int(text)
    return "\t" if field.name == "delimiter" and text in ("tab", "\\t") else text


def _number(field: Field, text: str) -> Any:
    kind = field.option.kind.text
    if kind == "count" and not text.lstrip("-").isdecimal():
        return text
    try:
        return float(text.replace(",", ".")) if kind == "decimal" else int(text)
    except ValueError as error:
        what = "a number" if kind == "decimal" else "a whole number"
        raise FieldError(f"“{field.label}” takes {what}. Got {text!r} instead.") from error


# -- Messages that mention options --------------------------------------------------------------------


def in_labels(mention: Mention) -> str:
    """The option that a message mentions, as the page calls it."""
    if mention.name in HIDDEN:
        return mention.in_python()
    label = f"“{label_of(mention.name)}”"
    if not mention.value:
        forms = {"subject": "The field {}", "object": "the field {}", "name": "field {}"}
        return forms.get(mention.form, "{}").format(label)
    if mention.value == "True":
        verbs = {"set": "tick ", "Set": "Tick "}
        return verbs.get(mention.form, "") + label
    value = CHOICES.get(mention.text, mention.text)
    return f"{mention.form} {label} = {value}".lstrip()
