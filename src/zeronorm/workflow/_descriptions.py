"""Data, methods, rules and messages of a run as plain values and texts of the result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from zeronorm._types import written

if TYPE_CHECKING:
    from zeronorm.workflow._job import Job

RULES = {
    "fixed": "was set in advance",
    "fewest": "is the smallest within about one standard error of the best smoothed score on inner cross-validation "
    "(geometric mean over tolerances of half to one and a half)",
    "recommended": "is the smallest with nearly the best smoothed score on inner cross-validation (geometric mean over "
    "tolerances from zero to one standard error)",
    "all": "is the one with the best smoothed score on inner cross-validation",
    "own": "was chosen by the method's own control of false selections",
}


def describe_data(job: Job) -> dict[str, Any]:
    table = job.table
    return {
        "source": table.source,
        "target": table.target_name,
        "task": table.task,
        "n_samples": table.n_samples,
        "n_features": table.n_features,
        "class_counts": table.class_counts,
        "sample_groups": None if table.sample_groups is None else len(set(map(str, table.sample_groups))),
        "sha256": job.checksum,
    }


OMITTED = (
    "feature_groups",
    "always_keep",
    "adjust",
    "selector",
    "selectors",
    "sizes",
    "verbose",
    "n_jobs",
    "random_state",
)


def describe_method(name: str, selector: Any, label: str) -> dict[str, Any]:
    """A method with the parameters that differ from the defaults of its class, and the method that it wraps."""
    info = getattr(type(selector), "_method", None)
    is_ours = info is not None and info.kind in ("selector", "meta")
    defaults = type(selector)().get_params(deep=False) if is_ours else {}
    parameters = {
        key: value
        for key, value in selector.get_params(deep=False).items()
        if key not in OMITTED and (key not in defaults or repr(value) != repr(defaults[key]))
    }
    wrapped = getattr(type(getattr(selector, "selector", None)), "_method", None)
    if wrapped is not None:
        parameters["selector"] = wrapped.name
    return {
        "name": name,
        "label": label,
        "class": type(selector).__name__,
        "reference": "" if info is None else info.reference,
        "summary": "" if info is None else info.summary,
        "parameters": {key: _plain(value) for key, value in parameters.items()},
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else written(value)


# Of outliers in y, ``checks`` warns with the names of the samples.
OMITTED_WARNINGS = ("DeprecationWarning", "PendingDeprecationWarning", "TargetOutlierWarning")


def messages_of(caught: list[Any]) -> list[str]:
    """Warnings of the computation, one line each; those that differ in numbers only are given once."""
    relevant = [w for w in caught if w.category.__name__ not in OMITTED_WARNINGS]
    found: dict[str, str] = {}
    for text in (" ".join(str(w.message).split()) for w in relevant):
        found.setdefault(re.sub(r"\d+(\.\d+)?", "0", text), text)
    return list(found.values())
