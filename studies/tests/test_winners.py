"""Winners, ranks by shape and tests against baselines, on errors that are known."""

import numpy as np
import pytest
from scipy.stats import wilcoxon

from zeronorm_studies.ranking import winner_sections
from zeronorm_studies.results import Results
from zeronorm_studies.study import Configuration, Data, Plan, Trial

N_SETS = 8
ERRORS = {"good": 0.10, "fisher": 0.20, "random": 0.40}


def draw_wide(trial):
    return Trial(np.zeros((4, 9)), np.zeros(4), np.arange(2), np.arange(2, 4))


def draw_tall(trial):
    return Trial(np.zeros((9, 4)), np.zeros(9), np.arange(5), np.arange(5, 9))


def known_results():
    data = tuple(Data(f"set {i}", draw_wide if i % 2 else draw_tall, 2) for i in range(N_SETS))
    plan = Plan(data, tuple(Configuration(name, "fisher") for name in ERRORS), (2,))
    rows = [
        {
            "data": d.label,
            "configuration": config,
            "trial": trial,
            "asked_size": 2,
            "balanced_error_rate": error * (1 + 0.01 * i),
        }
        for i, d in enumerate(data)
        for config, error in ERRORS.items()
        for trial in range(2)
    ]  # fmt: skip
    late = [row for row in rows if (row["data"], row["configuration"]) == ("set 0", "good")]
    for row in late:
        row.update(balanced_error_rate=None, error="timeout: not finished after 60 s")
    return Results(plan, rows)


@pytest.fixture(scope="module")
def sections():
    return {section.heading: section for section in winner_sections(known_results(), 2)}


def test_lowest_errors_come_first_and_no_result_counts_as_chance(sections):
    rows = {row[0]: row for row in sections["What wins where"].table.rows}
    assert rows["set 1"][1] == "4 × 9"
    assert rows["set 1"][2] == "good 10.1, fisher 20.2, random 40.4"
    assert rows["set 0"][2] == "fisher 20.0, random 40.0, good 50.0"


def test_ranks_are_split_by_shape(sections):
    table = sections["Mean ranks on wide and on tall data"].table
    assert table.header[2:] == ("wide (4 sets)", "tall (4 sets)")
    ranks = {row[0]: row[1:] for row in table.rows}
    assert ranks["good"] == ("1.2", "1.0", "1.5")  # third once, on tall data
    assert ranks["fisher"] == ("1.9", "2.0", "1.8")


def test_differences_and_corrected_p_values(sections):
    cells = {row[0]: row[1:] for row in sections["Against the baselines"].table.rows}
    against_random, against_fisher = cells["fisher"][0], cells["good"][1]
    assert against_random == "-20.7 (p = 0.016) *"  # 2 · 2^-8 for eight equal signs, doubled by Holm
    differences = [0.3, *(-0.1 * (1 + 0.01 * i) for i in range(1, N_SETS))]
    raw = wilcoxon(differences, method="exact").pvalue  # the larger of the two p-values: not multiplied
    assert against_fisher == f"{100 * np.mean(differences):+.1f} (p = {raw:.2g})"
    assert cells["random"][0] == ""
