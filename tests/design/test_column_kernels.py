"""Keys that sort as the numbers do."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.design import _column_kernels as column_kernels


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keys_sort_as_the_numbers_do(dtype):
    values = np.array([-np.inf, -3.5, -1e-30, -0.0, 0.0, 1e-30, 2.0, np.inf], dtype=dtype)
    low, high = np.empty(1, np.int64), np.empty(1, np.int64)
    for first in range(8):
        part = np.random.default_rng(first).permutation(values[first:])[None]
        column_kernels.columns_range(column_kernels.float_bits(np.ascontiguousarray(part)), low, high)
        assert column_kernels.from_keys(low, np.dtype(dtype))[0] == values[first]
        assert column_kernels.from_keys(high, np.dtype(dtype))[0] == np.inf
