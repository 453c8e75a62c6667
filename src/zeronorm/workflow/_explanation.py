"""Why a feature was selected or not: its ranks, frequency and effect, and the selected feature that takes its place."""

from __future__ import annotations

import difflib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm.design import as_design
from zeronorm.engines._error_control import adjust_p_values
from zeronorm.evaluation._summary import selection_frequencies
from zeronorm.evaluation.stand_ins._answers import Substitutes
from zeronorm.evaluation.stand_ins._conditional import GivenColumns, take_over
from zeronorm.evaluation.stand_ins._substitutes import LEVEL, independent_samples
from zeronorm.evaluation.stand_ins._swaps import standard_error, values_on_folds
from zeronorm.resampling._metrics import as_metric
from zeronorm.selectors.meta._consensus import Consensus, member_names
from zeronorm.workflow import _training as training
from zeronorm.workflow._features import univariate_effects
from zeronorm.workflow._questions import FinishedRun, NoDataError, predictor_of_swaps, run_of

if TYPE_CHECKING:
    from zeronorm._types import FloatArray
    from zeronorm.result._record import ResultData

NO_RANK = "its rank, its effect and what it would change, which need the data"


@dataclass(frozen=True)
class Explanation:
    """The answer to why a feature is in the list, or not.

    Parameters
    ----------
    name : the feature.
    is_selected : whether it is in the list; None for a comparison, which has none.
    n_features : number of all features.
    ranks : its rank by the method of the run and, for a consensus, by each of its methods.
    frequency : share of the outer folds in which each method of the run selected it.
    effect, effect_kind, p_value, q_value, p_holm : its effect alone, and the p-value as it is and adjusted over all
        features by Benjamini and Hochberg and by Holm.
    p_given_selected : p-value of its association given the (other) selected features.
    replaced_by, correlation, p_without : the selected feature that takes its place, their correlation, and the p-value
        given the other selected features without that one.
    error, standard_error : of the selected features on the folds.
    error_with : of the list with it added; for a selected feature, of the list without it.
    error_swapped : of the list with it in place of ``replaced_by``.
    metric : name of the metric.
    substitutes : of a selected feature, which others can stand in for it, as a sentence; empty if they were not sought.
    unknown : what cannot be said, and why.
    """

    name: str
    is_selected: bool | None
    n_features: int
    ranks: dict[str, int] = field(default_factory=dict)
    frequency: dict[str, float] = field(default_factory=dict)
    effect: float | None = None
    effect_kind: str = ""
    p_value: float | None = None
    q_value: float | None = None
    p_holm: float | None = None
    p_given_selected: float | None = None
    replaced_by: str | None = None
    correlation: float | None = None
    p_without: float | None = None
    error: float | None = None
    standard_error: float | None = None
    error_with: float | None = None
    error_swapped: float | None = None
    metric: str = ""
    substitutes: str = ""
    unknown: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All values as a dict."""
        return {**asdict(self), "sentences": self.sentences()}

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """The answer in words."""
        states = {
            True: "is selected",
            False: "is not selected",
            None: "was compared; a comparison has no list",
        }
        state = states[self.is_selected]
        found = [
            f"{self.name} {state}.",
            self._of_ranks(),
            self._of_folds(),
            self._of_effect(),
            *self._of_stand_in(),
        ]
        found += [self._of_error(), self.substitutes, *(f"Not known: {text}." for text in self.unknown)]
        return [sentence for sentence in found if sentence]

    def _of_ranks(self) -> str:
        ranks = ", ".join(f"{rank} by {method}" for method, rank in self.ranks.items())
        return f"Its rank among {self.n_features} features: {ranks}." if ranks else ""

    def _of_folds(self) -> str:
        shares = ", ".join(f"{100 * share:.0f} % by {method}" for method, share in self.frequency.items())
        return f"Selected in the outer folds: {shares}." if shares else ""

    def _of_effect(self) -> str:
        if self.p_value is None:
            return ""
        from zeronorm.result._sentences import EFFECTS

        effect = (
            "" if self.effect is None else f"{EFFECTS.get(self.effect_kind, 'effect')} {self.effect:.3g}, "
        )
        return (
            f"Alone: {effect}p = {self.p_value:.2g}; over all features {self.q_value:.2g} (false discovery rate) and "
            f"{self.p_holm:.2g} (Holm)."
        )

    def _of_stand_in(self) -> list[str]:
        if self.p_given_selected is None:
            return []
        others = "the other selected features" if self.is_selected else "the selected features"
        adds = self.p_given_selected <= LEVEL
        text = f"Given {others}, {'it is' if adds else 'it is not significantly'} associated with the target"
        sentences = [f"{text} (p = {self.p_given_selected:.2g})."]
        if self.replaced_by is not None and self.p_without is not None and self.correlation is not None:
            sentences.append(
                f"{self.replaced_by} takes its place: their correlation is {self.correlation:.2f}, and without "
                f"{self.replaced_by} among the given features p = {self.p_without:.2g}."
            )
        elif not self.is_selected and not adds:
            sentences.append(
                "No single selected feature takes its place: it adds nothing that these samples show."
            )
        return sentences

    def _of_error(self) -> str:
        if self.error is None or self.error_with is None:
            return ""
        metric = as_metric(self.metric)
        change = "without it" if self.is_selected else "with it added"
        text = f"On the same folds the {metric.text} of the list is {metric.format(self.error)}"
        if self.standard_error is not None:
            text += f" (standard error {metric.format(self.standard_error)})"
        text += f", and {metric.format(self.error_with)} {change}"
        if self.error_swapped is not None:
            text += f", {metric.format(self.error_swapped)} with it in place of {self.replaced_by}"
        return f"{text}. The list was selected on all samples, so compare these values only with each other."


def explain_feature(result: ResultData, name: str, data: Any = None) -> Explanation:
    """Why a feature was selected or not, from the result and, if they are at hand, the data."""
    if result.kind != "selection":
        return _from_records(result, name)
    try:
        run = run_of(result, data)
    except NoDataError as error:
        return _from_records(result, name, str(error))
    names = [str(each) for each in run.whole.feature_names]
    if name not in names:
        raise _unknown_name(name, names)
    return _explained(result, run, names.index(name))


def _unknown_name(name: str, names: list[str], scope: str = "The data have") -> ValueError:
    folded: dict[str, str] = {}
    for each in names:
        folded.setdefault(each.casefold(), each)
    close = [folded[each] for each in difflib.get_close_matches(name.casefold(), folded, n=3)]
    hint = (
        f"Did you mean {' or '.join(map(repr, close))}?"
        if close
        else f"The first is {names[0]!r}."
        if names
        else ""
    )
    return ValueError(f"{scope} no feature named {name!r}. {hint}")


# -- Without the data ---------------------------------------------------------------------------------


def _from_records(result: ResultData, name: str, why: str = "") -> Explanation:
    """What the stored result says about a feature."""
    selected = next((feature for feature in result.selected if feature.name == name), None)
    indices = {text: index for index, text in result.names.items()}
    if selected is None and name not in indices:
        raise _unknown_name(
            name,
            list(dict.fromkeys((*result.features, *indices))),
            f"Without the data only the {len(indices)} features that appear in the report are known. {why}".strip()
            + " They have",
        )
    index = selected.index if selected is not None else indices[name]
    common: dict[str, Any] = {
        "frequency": _frequencies(result, index),
        "n_features": result.data["n_features"],
    }
    if selected is None:
        return Explanation(name, False if result.kind == "selection" else None, unknown=(NO_RANK,), **common)
    return Explanation(
        name,
        True,
        substitutes=_substitutes_of(result, index),
        ranks={str(result.chosen_method): selected.rank},
        effect=selected.effect,
        effect_kind=selected.effect_kind,
        p_value=selected.p_value,
        q_value=selected.q_value,
        p_holm=None if selected.p_value is None else min(1.0, selected.p_value * result.data["n_features"]),
        unknown=(
            "what the other features hold of it and what would be lost without it, which need the data",
        ),
        **common,
    )


def _substitutes_of(result: ResultData, index: int) -> str:
    """What the stored substitutes say about a selected feature."""
    if not result.stored_substitutes:
        return ""
    features = Substitutes.from_dict(result.stored_substitutes).features
    return next((feature.sentence() for feature in features if feature.index == index), "")


def _frequencies(result: ResultData, index: int) -> dict[str, float]:
    """The share of the folds in which each method of the records selected a feature."""
    if result.records is None:
        return {}
    labels = list(dict.fromkeys(result.records["method"].to_list()))
    found = {}
    for label in labels:
        frequencies = selection_frequencies(result.records, label, result.data["n_features"])
        found[label] = dict(frequencies.shares).get(index, 0.0)
    return found


# -- With the data ------------------------------------------------------------------------------------


def _explained(result: ResultData, run: FinishedRun, index: int) -> Explanation:
    is_selected = index in run.columns
    effects = univariate_effects(run.whole)
    effect = float(effects.difference[index])
    known: dict[str, Any] = {
        "ranks": _ranks(result, run, index),
        "frequency": _frequencies(result, index),
        "effect": effect if np.isfinite(effect) else None,
        "effect_kind": effects.kind,
        "p_value": float(effects.p_value[index]),
        "q_value": float(effects.q_value[index]),
        "p_holm": float(adjust_p_values(effects.p_value, "holm")[index]),
    }
    if run.columns.size:
        stand_in = _stand_in(run, index)
        known |= stand_in | _errors(run, index, stand_in["replaced_by"])
    names = run.whole.feature_names
    known["substitutes"] = _substitutes_of(result, index)
    if known.get("replaced_by") is not None:
        known["replaced_by"] = str(names[known["replaced_by"]])
    return Explanation(str(names[index]), is_selected, run.whole.n_features, **known)


def _ranks(result: ResultData, run: FinishedRun, index: int) -> dict[str, int]:
    """The rank by the method of the run and, where it is a consensus, by each of its methods."""
    ranks = {str(result.chosen_method): int(run.path.position()[index]) + 1}
    selector = run.fitted
    while hasattr(selector, "selector_"):
        selector = selector.selector_
    if isinstance(selector, Consensus):
        own = zip(member_names(selector), selector.ranks_[:, index], strict=True)
        ranks |= {name: round(float(rank)) for name, rank in own}
    return ranks


def _stand_in(run: FinishedRun, index: int) -> dict[str, Any]:
    """The association given the selected features, and the one of them without which it is the strongest."""
    others = run.columns[run.columns != index]
    X, target = _independent(run, np.append(index, others))
    own, given = X[:, 0], X[:, 1:]

    def p_given(columns: FloatArray) -> float:
        return take_over(GivenColumns.of(columns, target), own, columns[:, :0]).p_alone

    with_all = p_given(given)
    found: dict[str, Any] = {"p_given_selected": with_all, "replaced_by": None}
    if with_all <= LEVEL or others.size == 0:
        return found
    without = [p_given(np.delete(given, at, axis=1)) for at in range(len(others))]
    best = int(np.argmin(without))
    if without[best] * len(others) > LEVEL:
        return found
    correlation = float(np.corrcoef(own, given[:, best])[0, 1])
    return found | {
        "replaced_by": int(others[best]),
        "p_without": float(without[best]),
        "correlation": correlation,
    }


def _independent(run: FinishedRun, columns: Any) -> tuple[FloatArray, FloatArray]:
    """Columns, followed by the covariates, and target of independent samples: with sample groups, their means."""
    table = run.whole
    collapse, target = independent_samples(table.y, type(table.target), table.sample_groups)
    positions = np.append(columns, table.positions_of_covariates)
    return collapse(as_design(table.with_covariates).block(positions)), target


def _errors(run: FinishedRun, index: int, replaced: int | None) -> dict[str, Any]:
    """The error of the list, with the feature added or left out, and with it in place of another."""
    options = run.options()
    metric = as_metric(options.pop("metric"))
    values_of = values_on_folds(
        as_design(run.whole.with_covariates),
        run.whole.y,
        metric,
        cv=training.outer_splits(run.table, run.settings),
        estimator=predictor_of_swaps(run),
        adjust=run.whole.positions_of_covariates,
        **options,
    )
    own = tuple(int(column) for column in run.columns)
    changed = tuple(column for column in own if column != index) if index in own else (*own, index)
    values = values_of([own])[0]
    found: dict[str, Any] = {
        "metric": metric.name,
        "error": float(values.mean()),
        "standard_error": standard_error(values, metric, run.whole.y),
        "error_with": float(values_of([changed]).mean()) if changed else None,
    }
    if replaced is not None and index not in own:
        swapped = tuple(index if column == replaced else column for column in own)
        found["error_swapped"] = float(values_of([swapped]).mean())
    return found
