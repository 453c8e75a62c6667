"""Tables and fitted selectors as the plain values of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.selection.path import SelectionPath
    from zeronorm.workflow.result import SelectedFeature


def describe_data(table: Table, checksum: str | None) -> dict[str, Any]:
    """What the data are."""
    return {
        "source": table.source,
        "target": table.target_name,
        "task": table.task,
        "n_samples": table.n_samples,
        "n_features": table.n_features,
        "class_counts": table.class_counts,
        "sample_groups": None if table.sample_groups is None else len(set(map(str, table.sample_groups))),
        "sha256": checksum,
    }


def describe_method(name: str, selector: Any) -> dict[str, Any]:
    """A method with the parameters that differ from the defaults of its class or matter for repeating it."""
    info = getattr(type(selector), "_method", None)
    defaults = type(selector)().get_params(deep=False) if info is not None and info.kind == "selector" else {}
    parameters = {
        key: value
        for key, value in selector.get_params(deep=False).items()
        if key not in ("feature_groups", "always_keep", "selector", "selectors", "sizes", "verbose", "n_jobs")
        and (key not in defaults or repr(value) != repr(defaults[key]))
    }
    return {
        "name": name,
        "class": type(selector).__name__,
        "reference": "" if info is None else info.reference,
        "summary": "" if info is None else info.summary,
        "parameters": {key: _plain(value) for key, value in parameters.items()},
    }


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def describe_selected(
    table: Table, path: SelectionPath, columns: Any, scores: Any, frequencies: dict[int, float] | None
) -> list[SelectedFeature]:
    """The selected features in the order of the path, with what is needed to use them elsewhere."""
    import numpy as np

    from zeronorm.workflow.result import SelectedFeature

    position = path.position()
    ordered = columns[np.argsort(position[columns], kind="stable")]
    values = dense_columns(table.X, ordered)
    features = []
    for rank, (index, column) in enumerate(zip(ordered.tolist(), values.T, strict=True), start=1):
        score = float(scores[index])
        features.append(
            SelectedFeature(
                rank=rank,
                name=str(table.feature_names[index]),
                column=int(table.source_columns[index]),
                index=index,
                score=score if np.isfinite(score) else None,
                mean=float(column.mean()),
                scale=float(column.std()),
                frequency=None if frequencies is None else frequencies.get(index, 0.0),
            )
        )
    return features


def dense_columns(X: Any, columns: Any) -> Any:
    """Some columns of a dense or sparse table as a dense array of floats."""
    import numpy as np

    part = X[:, columns]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)
