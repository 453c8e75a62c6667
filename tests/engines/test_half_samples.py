"""Random halves of whole sample groups."""

import numpy as np
import pytest

from zeronorm.engines._half_samples import half_samples
from zeronorm.selection.target import Labels, Real


def halves_of(y, groups, count=20, seed=0, **settings):
    target = Real.of(y) if y.dtype.kind == "f" else Labels.of(y)
    return half_samples(target, groups, np.random.default_rng(seed), count=count, **settings)


def patients(n_patients=16, n_each=4):
    groups = np.repeat(np.arange(n_patients), n_each)
    return groups % 2, groups


def test_pairs_are_disjoint_and_hold_whole_groups_and_equal_classes():
    y, groups = patients()
    halves = halves_of(y, groups)
    for left, right in zip(halves[::2], halves[1::2], strict=True):
        assert not set(groups[left]) & set(groups[right])
        assert len(left) == len(right) == 32
        assert y[left].sum() == y[right].sum() == 16
    assert len({tuple(half) for half in halves}) == len(halves)


def test_without_groups_rows_are_drawn_as_before():
    y, _ = patients()
    singles = halves_of(y, None)
    assert all(len(half) == 32 and y[half].sum() == 16 for half in singles)


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_unequal_size_and_mixed_labels_are_balanced(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(31), rng.integers(1, 7, 31))
    y = (groups % 2 + (rng.random(len(groups)) < 0.1)) % 2
    for left, right in zip(*[iter(halves_of(y, groups, seed=seed))] * 2, strict=True):
        assert not set(groups[left]) & set(groups[right])
        assert len(set(groups[left])) == len(set(groups[right])) == 15
        counts = np.array([np.bincount(y[half], minlength=2) for half in (left, right)])
        assert np.abs(counts[0] - counts[1]).max() <= 8  # little more than one group


def test_every_group_is_as_often_in_the_first_half_as_in_the_second():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(13), rng.integers(1, 5, 13))
    firsts = halves_of(groups.astype(float), groups, count=2000, in_pairs=False)
    share = np.mean([np.isin(np.arange(13), groups[half]) for half in firsts], axis=0)
    np.testing.assert_allclose(share, 6 / 13, atol=0.05)  # 4.5 standard errors


def test_a_class_of_two_mixed_groups_is_in_both_halves():
    groups = np.repeat(np.arange(10), 3)
    y = np.zeros(30, dtype=int)
    y[[0, 29]] = 1
    for half in halves_of(y, groups):
        assert y[half].sum() == 1


def test_a_class_of_one_group_is_an_error():
    groups = np.repeat(np.arange(10), 3)
    with pytest.raises(ValueError, match="need at least two groups of each class"):
        halves_of((groups == 4).astype(int), groups)
