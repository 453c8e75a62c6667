"""DummySelector: its level, its attributes, groups of samples, and backends."""

import numpy as np
import pytest

from zeronorm import DummySelector


def planted(seed, n=120, p=300, k=8, size=0.8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    relevant = rng.choice(p, k, replace=False)
    return X, X[:, relevant] @ rng.choice([-size, size], k) + rng.normal(size=n), relevant


@pytest.mark.parametrize("path", ["both", "orthogonal", "least_angle"])
def test_the_false_discovery_rate_is_within_the_level(path):
    false, found = [], []
    for seed in range(9):
        X, y, relevant = planted(seed)
        chosen = (
            DummySelector(level=0.2, path=path, task="regression", random_state=seed)
            .fit(X, y)
            .get_support(indices=True)
        )
        false.append(np.mean(~np.isin(chosen, relevant)) if chosen.size else 0.0)
        found.append(np.isin(relevant, chosen).mean())
    assert np.mean(false) <= 0.2 + 2 * np.std(false) / 3
    assert np.mean(found) > 0.7


def test_noise_is_hardly_ever_selected():
    empty = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 200)), np.arange(60) % 2
        empty += DummySelector(random_state=seed).fit(X, y).n_features_ == 0
    assert empty >= 5  # at level 0.1 four of eight or more are not empty with probability 0.005


def test_attributes_agree_with_each_other():
    X, y, _ = planted(0)
    selector = DummySelector(level=0.2, task="regression", random_state=0).fit(X, y)
    assert selector.n_features_ > 0
    chosen = selector.support_
    assert (selector.relative_occurrences_[chosen] > selector.voting_level_).all()
    assert np.array_equal(chosen, selector.q_values_ <= 0.2)
    assert selector.estimated_fdp_ <= 0.2
    assert selector.n_dummies_ % 300 == 0
    assert selector.stop_after_ >= 1
    assert selector.scores_[chosen].min() > selector.scores_[~chosen].max()


def repeated_patients(seed, sizes, p=200):
    """Features that mostly differ between patients, and a label of the patient; nothing is relevant."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(sizes), p))[groups] + 0.5 * rng.normal(size=(groups.size, p))
    y = rng.permutation(np.arange(len(sizes)) % 2)[groups]
    return X, y, groups


@pytest.mark.parametrize("sizes", [(4,) * 16, (3, 4, 5) * 6])
def test_repeated_patients_do_not_count_as_independent_samples(sizes):
    with_groups, without = 0, 0
    for seed in range(6):
        X, y, groups = repeated_patients(seed, sizes)
        with_groups += DummySelector(random_state=seed).fit(X, y, groups=groups).n_features_ > 0
        without += DummySelector(random_state=seed).fit(X, y).n_features_ > 0
    assert without >= 4  # groups are needed here
    assert with_groups <= 3  # at level 0.1 four of six or more have probability 0.001


def planted_patients(seed, between, n_patients=40, p=200, k=6):
    """Four samples of each patient; ``between`` is the share of the variance of a feature that is the patient's."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_patients), 4)
    X = rng.normal(size=(n_patients, p))[groups] * np.sqrt(between)
    X += np.sqrt(1.0 - between) * rng.normal(size=(groups.size, p))
    relevant = rng.choice(p, k, replace=False)
    noise = rng.normal(size=n_patients)[groups] + rng.normal(size=groups.size)
    return X, 0.8 * X[:, relevant] @ rng.choice([-1.0, 1.0], k) + noise, groups, relevant


@pytest.mark.parametrize("between", [0.3, 0.8, np.repeat([0.3, 1.0], 100)], ids=["within", "between", "both"])
def test_repeated_patients_are_as_good_as_independent_samples_of_their_information(between):
    """The level holds, and most features are found; the means of 40 patients show hardly any."""
    false, found = [], []
    for seed in range(4):
        X, y, groups, relevant = planted_patients(seed, between)
        selector = DummySelector(level=0.2, task="regression", random_state=seed)
        chosen = selector.fit(X, y, groups=groups).get_support(indices=True)
        false.append(np.mean(~np.isin(chosen, relevant)) if chosen.size else 0.0)
        found.append(np.isin(relevant, chosen).mean())
    assert np.mean(false) <= 0.2 + np.std(false)
    assert np.mean(found) > 0.5


def test_the_weights_of_patients_follow_from_the_noise_and_not_from_the_signal():
    """Features that differ within patients explain all that varies there: what is left is the patients' alone."""
    false = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        groups, is_constant = np.repeat(np.arange(50), 4), np.arange(300) % 2 == 0
        X = np.where(is_constant, rng.normal(size=(50, 300))[groups], rng.normal(size=(200, 300)))
        y = X[:, :8] @ rng.choice([-0.5, 0.5], 8) + rng.normal(size=50)[groups] + 0.2 * rng.normal(size=200)
        selector = DummySelector(level=0.2, task="regression", random_state=seed).fit(X, y, groups=groups)
        assert selector.support_[1:8:2].all()
        false.append(selector.support_[8:].sum() / selector.n_features_)
    assert np.mean(false) <= 0.2  # 0.4 with the weights of the whole target


def test_tumour_and_normal_tissue_are_compared_within_patients():
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(30), 2), np.tile([0, 1], 30)
    X = 3.0 * rng.normal(size=(30, 100))[groups] + rng.normal(size=(60, 100))
    X[:, :3] += 1.5 * y[:, None]
    selector = DummySelector(level=0.2, random_state=0)
    assert selector.fit(X, y, groups=groups).get_support(indices=True).tolist() == [0, 1, 2]
    assert selector.fit(X, y).n_features_ < 3


def test_a_constant_target_is_refused():
    with pytest.raises(ValueError, match="must vary"):
        DummySelector(task="regression").fit(np.random.default_rng(0).normal(size=(20, 5)), np.ones(20))


def test_wide_data_on_disk_have_the_selection_of_an_array(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 20_000)).astype(np.float32)
    y = X[:, [5, 14_000, 19_999]].sum(axis=1) + 0.2 * rng.normal(size=60)
    file = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=X.shape)
    file[:] = X
    file.flush()
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    one, other = (DummySelector(task="regression", random_state=0).fit(data, y) for data in (X, mapped))
    assert np.array_equal(one.support_, other.support_)
    assert one.get_support(indices=True).tolist() == [5, 14_000, 19_999]
