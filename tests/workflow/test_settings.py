"""Accepted and refused values of the options of a run."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from zeronorm.workflow._options import CompareOptions, DataOptions, SelectOptions, Settings


@pytest.mark.parametrize(
    ("name", "least"), [("cv", 2), ("repeats", 1), ("random_state", 0), ("max_features", 1)]
)
def test_whole_numbers_have_a_least_value(name, least):
    assert getattr(Settings(**{name: least}), name) == least
    assert getattr(Settings(**{name: np.int64(least + 1)}), name) == least + 1
    for wrong in (least - 1, float(least + 1), True, str(least), None):
        if wrong is None and name == "max_features":
            continue
        with pytest.raises(
            ValueError, match=f"'{name}' parameter must be a whole number of at least {least}"
        ):
            Settings(**{name: wrong})


def test_settings_are_used_in_one_form():
    found = Settings(features="3", keep="a", params=None, verbose=True)
    assert (found.features, found.keep, found.params, found.verbose) == (3, ("a",), {}, True)
    plain = Settings()
    assert (plain.cv, plain.repeats, plain.rule, plain.predictor, plain.permutations) == (
        5,
        1,
        "recommended",
        "auto",
        "auto",
    )
    assert (plain.random_state, plain.has_own_groups, plain.verbose, plain.features) == (
        0,
        False,
        False,
        None,
    )


def test_names_are_used_as_tuples():
    found = DataOptions(ignore="a", only=["b", 3], keep=None, categorical=("c",))
    assert (found.ignore, found.only, found.keep, found.categorical) == (("a",), ("b", "3"), (), ("c",))
    plain = DataOptions()
    assert (plain.missing, plain.min_class_size, plain.random_state) == ("median", 0, 0)
    assert not any((plain.drop_unlabelled, plain.transpose, plain.decimal_comma))


def test_a_count_of_features_is_a_whole_number():
    assert [Settings(features=value).features for value in (None, "auto", 3, "3", 3.0, np.int64(2))] == [
        None,
        None,
        3,
        3,
        3,
        2,
    ]
    for wrong in (0, -1, 2.5, "two", [3], "2.5"):
        with pytest.raises(ValueError, match="count of at least 1, or 'auto'"):
            Settings(features=wrong)
    for count in (0, 19, np.int64(3), "auto"):
        assert Settings(permutations=count).permutations == count
    for wrong in (-1, 1.5, True, "many", None):
        with pytest.raises(ValueError, match=r"count .0 for none. or 'auto'"):
            Settings(permutations=wrong)


def test_seed_is_another_name_of_random_state():
    assert SelectOptions(seed=7).random_state == 7
    assert SelectOptions(seed=7, random_state=7).random_state == 7
    assert SelectOptions(random_state=7).random_state == 7
    with pytest.raises(ValueError, match=r"Got 7 beside random_state=3\. Leave one of them out"):
        CompareOptions(seed=7, random_state=3)
    with pytest.raises(ValueError, match="'seed' parameter must be a whole number of at least 0"):
        SelectOptions(seed=-1)


def test_runs_with_seed_and_random_state_are_equal():
    first, second = (
        zeronorm.select("linear-toy", method="random", features=2, permutations=0, **{name: 5})
        for name in ("seed", "random_state")
    )
    assert first.features == second.features
