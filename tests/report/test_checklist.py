"""The check lists of reporting guidelines are filled from the run."""

from __future__ import annotations

import zeronorm
from zeronorm.report import ReportData, render_report
from zeronorm.report._checklist import checklist


def test_answers_are_those_of_the_run_and_the_rest_is_left_to_the_authors():
    result = zeronorm.select("linear-toy", method="fisher", features=2, permutations=0)
    answers = {row.item: row.answer for row in checklist(ReportData(result, result.records))}
    assert f"{result.data['n_samples']} samples" in answers["number of samples and of events or classes"]
    assert all(feature.name in answers["the whole model"] for feature in result.selected)
    value = ReportData(result, result.records).format(result.procedure["value"])
    assert value in answers["performance with intervals"]
    assert answers["why there are so many samples"] == ""
    assert "to be filled in" in render_report(result, result.records)


def test_a_comparison_has_no_check_list():
    result = zeronorm.compare("linear-toy", methods=["fisher", "svm-weights"], cv=2)
    assert checklist(ReportData(result, result.records)) == []
