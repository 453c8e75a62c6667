"""Exchanges of labels between dependent samples."""

from itertools import permutations

import numpy as np
import pytest

from zeronorm.selection._sample_groups import exchange_of, sizes_alike

PATIENTS = np.repeat(np.arange(16), 3)


def drawn(values, groups, design="auto", count=200, seed=0):
    exchange, rng = exchange_of(values, groups, design), np.random.default_rng(seed)
    return exchange, np.array([values[exchange.draw(rng)] for _ in range(count)])


def patterns_of(values, groups):
    return sorted(tuple(values[groups == group]) for group in np.unique(groups))


def test_a_flipped_label_does_not_keep_whole_groups_from_exchanging():
    y = PATIENTS % 2
    y[5] = 1 - y[5]
    exchange, found = drawn(y, PATIENTS, count=2000)
    assert "whole sample groups of the same size" in exchange.text
    assert exchange.count > 1e4
    assert all(patterns_of(one, PATIENTS) == patterns_of(y, PATIENTS) for one in found)
    share = found.mean(axis=0).reshape(16, 3)  # every patient has every pattern equally often
    np.testing.assert_allclose(
        share, np.tile(y.reshape(16, 3).mean(axis=0), (16, 1)), atol=0.05
    )  # 4.5 standard errors


@pytest.mark.parametrize("y", [np.tile([0, 1, 1], 16), np.tile([0.5, 1.5, 3.0], 16)])
def test_a_paired_design_is_exchanged_within_groups(y):
    exchange, found = drawn(y, PATIENTS)
    assert exchange.text == "the labels within each sample group"
    assert exchange.count == (3**16 if y.dtype.kind == "i" else 6**16)
    assert all(sorted(one[k : k + 3]) == sorted(y[:3]) for one in found for k in range(0, 48, 3))


def test_a_nearly_paired_design_is_exchanged_within_groups():
    y = np.tile([0, 1], 24)
    groups = np.repeat(np.arange(24), 2)
    y[:4] = 1  # two patients without normal tissue
    assert exchange_of(y, groups).text == "the labels within each sample group"


def test_the_user_names_the_design():
    y = PATIENTS % 2
    y[::3] = np.random.default_rng(0).integers(0, 2, 16)
    assert "whole" in exchange_of(y, PATIENTS).text
    assert "within" in exchange_of(y, PATIENTS, "block").text
    paired = np.tile([0, 1, 1], 16)
    assert exchange_of(paired, PATIENTS, "between").count == 1


def test_few_groups_with_labels_that_vary_within_them_are_exchanged_within_them():
    y = np.random.default_rng(3).integers(0, 2, 40)
    assert "within" in exchange_of(y, np.repeat(np.arange(4), 10)).text


def test_few_groups_with_one_label_each_stay_whole():
    y = np.repeat([0, 0, 0, 1, 1, 1], 300)
    y[:3] = 1  # three samples of one patient are labelled otherwise
    exchange = exchange_of(y, np.repeat(np.arange(6), 300))
    assert ("whole" in exchange.text, exchange.count) == (True, 60)


def test_groups_of_different_sizes_exchange_with_those_of_similar_size():
    sizes = np.arange(1, 13)
    groups = np.repeat(np.arange(12), sizes)
    y = groups % 2
    exchange, found = drawn(y, groups)
    assert "similar size" in exchange.text
    assert exchange.count == 6**3  # three classes of four groups, two of each label
    for one in found:
        assert all(len(set(one[groups == group])) == 1 for group in range(12))
        by_group = np.array([one[groups == group][0] for group in range(12)])
        assert by_group.reshape(3, 4).sum(axis=1).tolist() == [2, 2, 2]


def test_sizes_that_tell_the_classes_apart_leave_no_exchange():
    """Larger groups of one class: labels between sizes would change the number of samples of each class."""
    groups = np.repeat(np.arange(12), [6] * 6 + [1] * 6)
    exchange = exchange_of((groups < 6).astype(int), groups)
    assert (exchange.count, exchange.smallest_p_value) == (1.0, 1.0)


def test_the_number_of_exchanges_is_that_of_a_full_enumeration():
    groups = np.repeat(np.arange(5), 2)
    y = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 0])
    pairs = [tuple(y[2 * k : 2 * k + 2]) for k in range(5)]
    exchange, found = drawn(y, groups, "between", count=3000)
    assert exchange.count == len(set(permutations(pairs))) == len(set(map(tuple, found))) == 60
    within, found = drawn(y, groups, "block")
    assert within.count == len(set(map(tuple, found))) == 4
    free, found = drawn(y[:5], None, count=500)
    assert free.count == len(set(permutations(y[:5]))) == len(set(map(tuple, found))) == 10


def test_the_smallest_p_value_counts_targets_that_differ_in_the_names_of_the_classes_only():
    groups = np.repeat(np.arange(6), 2)
    assert exchange_of(groups % 2, groups).smallest_p_value == 2 / 20
    assert exchange_of((groups < 2).astype(int), groups).smallest_p_value == 1 / 15
    assert exchange_of(groups % 3, groups).smallest_p_value == 6 / 90
    assert exchange_of(groups.astype(float), groups).smallest_p_value == 1 / 720


def test_all_exchanges_are_equally_likely():
    groups = np.repeat(np.arange(4), [2, 2, 2, 1])
    y = np.array([0, 0, 1, 1, 0, 1, 1])
    _, found = drawn(y, groups, "between", count=6000)
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert len(counts) == 6
    np.testing.assert_allclose(counts, 1000, atol=130)  # 4.5 standard errors


def test_classes_of_similar_sizes_hold_four_groups_or_more():
    sizes = np.array([1, 1, 1, 1, 1, 2, 3, 4, 9, 9, 10])
    assert sizes_alike(sizes).tolist() == [0] * 5 + [1] * 6
    assert sizes_alike(np.array([5, 3, 3])).tolist() == [0, 0, 0]
