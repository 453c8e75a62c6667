"""Which new samples are those that a model was selected on, without keeping any of their values.

A model keeps a short hash of each of its samples: of the values of its features, with five significant digits, so that
a table that was written and read again is recognised. The key of the hashes comes from all values together.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DIGITS = 5  # significant; a copy in single precision differs then in about one of 300 values
BYTES = 5  # of a hash: a thousand new samples against a thousand others agree by chance in one of a million tables
MOST_SAMPLES = 5000  # whose hashes are kept, 50 kB
MOST_ALIKE = 0.01  # share of the samples with the values of another one; above, equal values mean nothing


@dataclass(frozen=True)
class SeenSamples:
    """Hashes of the samples that a model was selected on.

    Parameters
    ----------
    n_samples : how many these were.
    key : of the hashes, in hexadecimal digits.
    hashes : one after the other, in hexadecimal digits; of more than ``MOST_SAMPLES`` samples, evenly spaced ones.
    """

    n_samples: int
    key: str
    hashes: str

    @classmethod
    def of(cls, X: NDArray[np.float64]) -> SeenSamples | None:
        """The hashes of samples (rows); None where too many samples have the same values."""
        rows = _rounded(X)
        if len(np.unique(rows, axis=0)) < (1.0 - MOST_ALIKE) * len(rows):
            return None
        key = hashlib.blake2b(rows.tobytes(), digest_size=8).digest()
        kept = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_SAMPLES)).round().astype(np.intp))
        return cls(len(rows), key.hex(), "".join(_hash(row, key).hex() for row in rows[kept]))

    def among(self, X: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which samples have the hash of one of those."""
        width, key = 2 * BYTES, bytes.fromhex(self.key)
        known = {self.hashes[at : at + width] for at in range(0, len(self.hashes), width)}
        return np.asarray([_hash(row, key).hex() in known for row in _rounded(X)], dtype=bool)


def _hash(row: NDArray[np.int64], key: bytes) -> bytes:
    return hashlib.blake2b(row.tobytes(), digest_size=BYTES, key=key).digest()


def _rounded(X: NDArray[np.float64]) -> NDArray[np.int64]:
    """Values with few significant digits as whole numbers: the digits, and the exponent."""
    values = np.ascontiguousarray(X, dtype=np.float64)
    size = np.abs(values)
    exponent = np.floor(np.log10(np.where(size > 0.0, size, 1.0))).astype(np.int64)
    digits = np.rint(values * 10.0 ** (DIGITS - 1 - exponent)).astype(np.int64)
    is_next = np.abs(digits) == 10**DIGITS  # 9.9999 is 10.00
    digits, exponent = np.where(is_next, digits // 10, digits), exponent + is_next
    return np.ascontiguousarray(np.concatenate([digits, exponent], axis=1))
