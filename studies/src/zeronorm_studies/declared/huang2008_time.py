"""Huang, King and Lyu 2008, Table 2: time of the selection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from zeronorm_studies.models import linear_model
from zeronorm_studies.pages import PageTable, Section
from zeronorm_studies.real_data import accuracy_configurations, embedded_data, papers_data
from zeronorm_studies.results import Check, Claim, ClaimCheck, Results
from zeronorm_studies.study import Configuration, Plan, Study

SIZES = {"Sonar": 2, "Breast": 2, "Colon": 20, "Lymphoma": 20}
PUBLISHED = {
    "Sonar": (0.8061, 6.1431, 2.2888, 0.0146),
    "Breast": (0.3203, 0.6247, 290.4822, 0.0461),
    "Colon": (0.0223, 1.3558, 2.6941, 0.0018),
    "Lymphoma": (0.1766, 2.3809, 23.640, 0.0057),
}
LABELS = ("ZeroNormSVM", "AROM", "FSV", "SVM weights")


def _configurations(data: str, size: int) -> list[Configuration]:
    """Selectors with a given size, at which they may stop."""
    configs = accuracy_configurations((size,), data)
    return [replace(config, params={**config.params, "n_features_to_select": size}) for config in configs]


def full() -> Plan:
    configs = [config for name, size in SIZES.items() for config in _configurations(name, size)]
    # The first trial of every method in a process compiles kernels; the median over trials is not moved by it.
    return Plan(papers_data(10), tuple(configs), (), linear_model())


def quick() -> Plan:
    configs = tuple(config for config in _configurations("Wine", 2) if not config.label.startswith("FSV"))
    return Plan((embedded_data(3),), configs, (), linear_model())


def _median_time(results: Results, data: str, label: str) -> float:
    return float(np.median(results.values(data, f"{label}, {data}", SIZES[data], "fit_seconds")))


def _ordered(data: str) -> Check:
    def check(results: Results) -> ClaimCheck:
        svm = _median_time(results, data, "SVM weights")
        rescaling = _median_time(results, data, "ZeroNormSVM")
        fsv = _median_time(results, data, "FSV")
        shown = f"SVM {svm:.4g} s, ZeroNormSVM {rescaling:.4g} s, FSV {fsv:.4g} s"
        return ClaimCheck(shown, svm < rescaling < fsv)

    return check


def _arom_slower(results: Results) -> ClaimCheck:
    shown, agrees = [], True
    for data in SIZES:
        ratio = _median_time(results, data, "AROM") / _median_time(results, data, "ZeroNormSVM")
        shown.append(f"{data} {ratio:.2f}")
        agrees = agrees and ratio > 1.0
    return ClaimCheck("AROM / ZeroNormSVM: " + ", ".join(shown), agrees)


def _extreme(method: str, datasets: tuple[str, ...], *, slowest: bool) -> Check:
    """One method is the slowest, or the fastest, of the four on these data sets."""

    def check(results: Results) -> ClaimCheck:
        shown, agrees = [], True
        for data in datasets:
            times = {label: _median_time(results, data, label) for label in LABELS}
            text = ", ".join(f"{label} {seconds:.3g} s" for label, seconds in times.items())
            shown.append(f"{data}: {text}")
            found = (max if slowest else min)(times, key=lambda label: times[label])
            agrees = agrees and found == method
        return ClaimCheck("; ".join(shown), agrees)

    return check


def _section(results: Results) -> list[Section]:
    rows = []
    for data, published in PUBLISHED.items():
        for label, seconds in zip(LABELS, published, strict=True):
            try:
                ours = f"{_median_time(results, data, label):.4g}"
            except ValueError as reason:
                ours = f"– ({reason})"
            rows.append((data, label, f"{seconds:.4g}", ours))
    text = (
        "Seconds: published means of Matlab code on a PC of 2008, ours are medians. Only the order compares."
    )
    return [Section("Table 2", (text,), PageTable(("data", "method", "published", "ours"), tuple(rows)))]


STUDY = Study(
    name="huang2008-time",
    title="Zero-norm SVM against AROM, FSV and SVM weights: time",
    source="Huang, King and Lyu, ICDM 2008, Table 2",
    about=(
        "Time of selecting 2 features (Sonar, Breast) or 20 (Colon, Lymphoma) on the training sets of "
        "ten random divisions. Seconds of other computers and programs cannot be compared; the order of "
        "the methods can."
    ),
    cost="Under 1 minute on one core; run it on a computer that does nothing else.",
    full=full,
    quick=quick,
    expectations=(
        *(
            Claim(
                f"order of the times on {data}",
                "SVM < zero-norm rescaling < FSV",
                "medians over the divisions",
                _ordered(data),
                in_quick=False,
            )
            for data in ("Colon", "Lymphoma")
        ),
        Claim(
            "the plain SVM is fastest",
            "the fastest speed on all data sets",
            "lowest median time on all four",
            _extreme("SVM weights", tuple(SIZES), slowest=False),
            in_quick=False,
        ),
        Claim(
            "FSV is slow on Breast, Colon and Lymphoma",
            "290 s on Breast; scales with the number of features on the others",
            "highest median time of the four methods on all three",
            _extreme("FSV", ("Breast", "Colon", "Lymphoma"), slowest=True),
            in_quick=False,
        ),
        Claim(
            "AROM is slower than ZeroNormSVM on every data set",
            "7.6, 2.0, 60.8 and 13.5 times",
            "ratio of medians > 1 on all four",
            _arom_slower,
            in_quick=False,
            note="both are the same rescaled SVM, so a large ratio speaks about programs, not methods",
        ),
    ),
    sections=_section,
)
