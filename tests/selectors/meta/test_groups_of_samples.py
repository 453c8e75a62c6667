"""Error control on dependent samples: null features of repeated patients are kept at no more than the level."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from zeronorm import Consensus, FisherScore, ProbeSelector
from zeronorm.selectors.meta._probe_selector import exchanged_groups


def patients(seed, *, sizes=(4,) * 16, n_features=60, own=0.5, n_relevant=0):
    """Features that are mostly properties of the patient, with one diagnosis per patient."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    y = rng.permutation(np.arange(len(sizes)) % 2)[groups]
    X = rng.normal(size=(len(sizes), n_features))[groups] + own * rng.normal(size=(len(y), n_features))
    X[:, :n_relevant] += 4.0 * y[:, None]
    return X, y, groups


@pytest.mark.parametrize("sizes", [(4,) * 16, (1, 2, 3, 4, 5, 6) * 3])
def test_probes_hold_their_level_on_null_features_of_patients(sizes):
    kept = {False: [], True: []}
    for seed in range(25):
        X, y, groups = patients(seed, sizes=sizes)
        for is_given in kept:
            selector = ProbeSelector(FisherScore(), random_state=seed)
            selector.fit(X, y, groups=groups if is_given else None)
            kept[is_given].append(selector.support_.mean())
    error = np.std(kept[True], ddof=1) / 5
    assert np.mean(kept[True]) <= 0.05 + 2 * error
    assert np.mean(kept[False]) > 0.2  # what independent samples would assume


def test_probes_of_patients_find_relevant_features():
    X, y, groups = patients(0, n_relevant=3)
    selector = ProbeSelector(FisherScore(), random_state=0).fit(X, y, groups=groups)
    assert selector.support_[:3].all()
    assert selector.support_[3:].mean() < 0.2


def test_probes_of_paired_samples_find_features_that_differ_within_patients():
    """Whole groups exchanged in order would keep the difference of tumour and normal tissue in every probe."""
    rng = np.random.default_rng(0)
    groups, y = np.repeat(np.arange(20), 2), np.tile([0, 1], 20)
    X = rng.normal(size=(20, 30))[groups] + 0.5 * rng.normal(size=(40, 30))
    X[:, :3] += 3.0 * y[:, None]
    assert ProbeSelector(FisherScore(), random_state=0).fit(X, y, groups=groups).support_[:3].all()


def test_a_probe_keeps_the_groups_of_values_together():
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(8), 3))
    values = np.repeat((10.0 * groups + np.arange(24) / 100)[:, None], 50, axis=1)
    found = exchanged_groups(values, groups, np.random.default_rng(1))
    donors = np.array([[set(found[groups == g, j] // 10) for g in range(8)] for j in range(50)])
    assert all(len(one) == 1 for one in donors.ravel())
    assert (np.sort(found, axis=0) == np.sort(values, axis=0)).all()
    assert len({tuple(map(min, one)) for one in donors}) > 45  # every column has an order of its own


def test_a_probe_takes_the_values_of_groups_of_similar_size():
    sizes = np.arange(1, 13)
    groups = np.repeat(np.arange(12), sizes)
    found = exchanged_groups(np.repeat(1.0 * groups[:, None], 300, axis=1), groups, np.random.default_rng(1))
    for group in range(12):
        block = found[groups == group]
        assert (block == block[0]).all()
        assert set(block[0]) == set(np.arange(4) + 4 * (group // 4))


def test_gaussian_probes_refuse_groups():
    X, y, groups = patients(0)
    with pytest.raises(ValueError, match=r"'probes' parameter .* must be 'permuted' with 'groups'"):
        ProbeSelector(FisherScore(), probes="gaussian").fit(X, y, groups=groups)


def test_select_passes_the_groups_to_the_probes():
    X, y, groups = patients(3)
    settings = {"method": "probe-selector", "params": {"selector": "fisher"}, "permutations": 0, "cv": 3}
    alone = zeronorm.select(X, y, **settings)
    together = zeronorm.select(X, y, sample_groups=groups, **settings)
    assert len(together.features) < len(alone.features) / 2


def test_the_bound_of_a_consensus_holds_on_null_features_of_patients():
    false = {False: [], True: []}
    for seed in range(12):
        X, y, groups = patients(seed)
        for is_given in false:
            selector = Consensus([FisherScore()], n_subsamples=40, subset_size=8, random_state=seed)
            selector.fit(X, y, groups=groups if is_given else None)
            false[is_given].append(np.sum(selector.frequencies_ >= 0.75))
    bound = selector.false_selections(0.75)
    assert bound == pytest.approx(2 * 8**2 / 60)
    assert np.mean(false[True]) < bound / 2
    assert np.mean(false[False]) > bound  # halves that divide patients are not independent
