"""Values that fits to the same data share: computed once per inputs, and released after the fit."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from zeronorm import AROM, Consensus
from zeronorm.design import _gram, as_design
from zeronorm.selection._shared import SharedValues


@pytest.fixture
def design():
    return as_design(np.random.default_rng(0).normal(size=(12, 30)) + 3.0)


def test_methods_that_share_get_one_view_and_one_gram_matrix(design, monkeypatch):
    shared, products = SharedValues(), []
    compute = _gram.gram_of_blocks
    monkeypatch.setattr(_gram, "gram_of_blocks", lambda view, s: products.append(s) or compute(view, s))
    first, second = shared.standardized(design), shared.of_member(0).standardized(design)
    assert first is second
    np.testing.assert_array_equal(first.gram(), second.gram())
    assert len(products) == 1
    assert SharedValues().standardized(design) is not first
    np.testing.assert_array_equal(first.gram(), design.standardized().gram())


def test_weights_and_other_rows_have_views_of_their_own(design):
    shared, weight = SharedValues(), np.arange(12.0)
    first = shared.standardized(design)
    weighted = shared.standardized(design, weight)
    np.testing.assert_array_equal(weighted.affine.mean, design.standardized(sample_weight=weight).affine.mean)
    assert shared.standardized(design, weight) is not weighted
    assert shared.standardized(design.take_rows(np.arange(12))) is not first


def test_a_value_is_computed_once_for_equal_inputs_and_again_for_others(design):
    shared, computed = SharedValues(), []

    def value(*inputs, name="sum"):
        return shared.once(name, inputs, lambda: computed.append(inputs) or len(computed))

    y = np.arange(12.0)
    assert value(design, y, None) == value(design, y.copy(), None) == 1
    assert value(design, y + 1.0, None) == 2
    assert value(design, y, y) == 3
    assert value(design.take_rows(slice(None)), y, None) == 4
    assert value(design, y, None, name="product") == 5
    assert value(design, y, None) == 1


def test_each_member_has_the_C_that_was_found_for_it():
    shared = SharedValues(C=5.0, members_C=(None, 0.25))
    assert [shared.of_member(i).C for i in range(2)] == [None, 0.25]
    assert shared.of_member(1).members_C == ()
    assert SharedValues(C=5.0).of_member(0).C is None


def test_members_of_a_consensus_use_the_C_that_was_found_for_them():
    X, y = np.random.default_rng(0).normal(size=(30, 6)), np.arange(30) % 2
    members = [("first", AROM()), ("second", AROM(C=3.0)), ("third", AROM())]
    consensus = Consensus(members)._fit(X, y, {}, shared=SharedValues(members_C=(0.125, None, None)))
    assert consensus.costs_ == [0.125, None, AROM().fit(X, y).C_]


def test_nothing_shared_outlives_the_fit():
    X, y = np.random.default_rng(0).normal(size=(30, 6)), np.arange(30) % 2
    design = as_design(X)
    known = weakref.ref(design)
    selector = Consensus([AROM(), AROM()]).fit(design, y)
    del design
    gc.collect()
    assert known() is None
    assert selector.ranks_.shape == (2, 6)
