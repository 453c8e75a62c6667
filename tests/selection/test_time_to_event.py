"""Times and events from what users have, and how such a target is split and permuted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from zeronorm import RandomSelector
from zeronorm.resampling._splits import make_splits
from zeronorm.selection.target import TimeToEvent, target_for

EVENT = np.array([True, False, True, True, False, True])
TIME = np.array([3.0, 5.0, 1.5, 0.0, 0.0, 8.0])
WORDS = np.where(EVENT, "dead", "alive")


def survival_of(y):
    return target_for(TimeToEvent.prepared(y), "survival", ("survival",), "Method")


@pytest.mark.parametrize(
    "y",
    [
        np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("event", bool), ("time", float)]),
        np.array(list(zip(2 * TIME, EVENT, strict=True)), dtype=[("months", "f4"), ("died", "?")]),
        pd.DataFrame({"time": TIME, "died": EVENT.astype(int)}),
        pd.DataFrame({"OS_STATUS": np.where(EVENT, "1:DECEASED", "0:LIVING"), "OS_MONTHS": TIME}),
        {"event": EVENT.astype(float), "months": TIME},
        np.column_stack([EVENT, TIME]),
        np.column_stack([TIME, WORDS]).astype(object),
        [(t, w) for t, w in zip(TIME.tolist(), WORDS.tolist(), strict=True)],
        pd.DataFrame({"censored": np.where(EVENT, "uncensored", "censored"), "t": TIME}),
    ],
    ids=["sksurv", "other names", "frame", "cBioPortal", "dict", "array", "words", "pairs", "censored"],
)
def test_forms_of_y_that_are_understood(y):
    target = survival_of(y)
    np.testing.assert_array_equal(target.event, EVENT)
    np.testing.assert_allclose(target.time, TIME if target.time[0] == 3.0 else 2 * TIME)


def test_zeros_and_ones_alone_are_doubted():
    with pytest.warns(UserWarning, match="holds only 0 and 1.*their times are missing"):
        survival_of(np.array([0, 1, 1]))


def test_numbers_alone_are_times_of_events():
    target = survival_of(np.array([2, 3, 5]))
    assert target.event.all()
    assert target.time.tolist() == [2.0, 3.0, 5.0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ({"event": EVENT, "time": TIME - 1.0}, "contains -1 among the times 'time': first found in row 3"),
        ({"event": EVENT, "time": np.where(TIME == 8, np.nan, TIME)}, "contains NaN among the times.*row 5"),
        ({"event": [1, None, 1, 1, 0, 1], "time": TIME}, "contains None among the events.*row 1"),
        ({"event": [1, 0, 1, 1, 0, "maybe"], "time": TIME}, "No column of y holds events"),
        ({"status": [1, 2, 1, 1, 2, 1], "time": TIME}, "No column of y holds events.*Code the event as 1"),
        ({"event": EVENT, "time": ["3", "5", "x", "0", "0", "8"]}, "must be numbers. Got 'x' in row 2"),
        ({"a": [0, 1, 1, 0, 1, 1], "b": [1, 0, 1, 1, 1, 0]}, "may hold the event. Name them"),
        ({"censored": [0, 1, 0, 0, 1, 0], "time": TIME}, "'censored' of y seems to say that no event"),
        (np.column_stack([EVENT, TIME, TIME]), "Got 3 instead"),
        (EVENT, "holds events, but no times"),
        (WORDS, "must be numbers. Got 'dead'"),
        (np.zeros(3, dtype=[("a", float), ("b", float)]), "one field of type bool"),
        ({"event": np.zeros(6), "time": TIME}, "Got 6 censored samples and no event"),
        ({"event": EVENT, "time": np.full(6, 2.0)}, "Got 2 for all 6 samples"),
    ],
)
def test_targets_without_events_or_times_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        survival_of(y)


def test_two_columns_of_zeros_and_ones_are_told_apart_by_name():
    target = survival_of({"day": [0, 1, 1, 0, 1, 1], "status": EVENT.astype(int)})
    np.testing.assert_array_equal(target.event, EVENT)


def test_columns_hold_time_and_event_also_for_time_zero():
    target = survival_of({"event": EVENT, "time": TIME})
    again = TimeToEvent.of_columns(target.columns())
    np.testing.assert_array_equal(again.values, target.values)


def test_folds_hold_equal_shares_of_the_events():
    rng = np.random.default_rng(0)
    y = {"event": np.arange(60) % 3 < 2, "time": rng.exponential(size=60)}
    target = survival_of(y)
    for split in make_splits(4, target.values, None, target=target, seed=0):
        assert target.event[split.test].sum() == 10


def test_folds_with_few_events_are_warned_of():
    y = {"event": np.arange(60) % 6 == 0, "time": np.arange(60.0)}
    with pytest.warns(UserWarning, match="10 events for 5 folds, fewer than 5 in each"):
        make_splits(5, survival_of(y).values, None, target=TimeToEvent, seed=0)


def test_groups_exchange_pairs_whatever_the_unit_of_time():
    rng = np.random.default_rng(0)
    groups, y = np.arange(40) // 2, {"event": rng.random(40) < 0.5, "time": rng.exponential(size=40)}
    days = {**y, "time": 365.0 * y["time"]}
    one, other = (survival_of(v).exchange(groups).draw(np.random.default_rng(3)) for v in (y, days))
    np.testing.assert_array_equal(one, other)


def test_a_selector_accepts_a_data_frame_as_its_target():
    X, frame = np.random.default_rng(0).normal(size=(6, 4)), pd.DataFrame({"time": TIME, "died": EVENT})
    selector = RandomSelector(2, task="survival", random_state=0).fit(X, frame)
    assert selector.support_.sum() == 2
    assert not hasattr(selector, "classes_")
    with pytest.raises(ValueError, match="'classification', 'regression' or 'survival'"):
        RandomSelector(2, task="times").fit(X, frame)
