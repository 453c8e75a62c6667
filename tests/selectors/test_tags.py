"""What a selector tells scikit-learn about the targets it takes."""

from __future__ import annotations

from sklearn.utils import get_tags

from zeronorm.registry import all_methods

SELECTORS = [s for kind in ("selector", "meta") for m in all_methods(kind) for s in m.instances()]


def test_the_tags_are_those_of_the_task():
    for selector in SELECTORS:
        tags, is_regression = get_tags(selector), selector._task_name() == "regression"
        assert (tags.regressor_tags is not None) == is_regression, selector
        assert (tags.classifier_tags is None) == is_regression, selector


def test_the_tags_say_whether_more_than_two_classes_are_taken():
    found = set()
    for selector in SELECTORS:
        if selector._task_name() != "regression":
            takes_more = "multiclass" in selector._tasks()
            assert get_tags(selector).classifier_tags.multi_class == takes_more, selector
            found.add(takes_more)
    assert found == {True, False}
