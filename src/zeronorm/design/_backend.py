"""What a backend can do, in one record that the products ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from zeronorm._types import FloatArray, IntArray
from zeronorm.design._index import by_descending_value
from zeronorm.execution import one_thread_if_small


@dataclass(frozen=True)
class Backend:
    """Where the data of a design are, and what the code that stores them computes itself.

    Parameters
    ----------
    is_sparse : whether zeros are not stored
    is_on_disk : whether the data are read from files in each pass
    in_one_array : whether this is a `DenseDesign`: one NumPy array, which several threads may read
    is_part_of_file : whether the data were just read, while other threads read or compute other columns
    reads_ahead : whether threads read the next columns while others are used
    transforms : whether the backend shifts and scales in its own products, as a device does
    order : the memory order in which blocks are cheapest to fill
    """

    is_sparse: bool = False
    is_on_disk: bool = False
    in_one_array: bool = False
    is_part_of_file: bool = False
    reads_ahead: bool = False
    transforms: bool = False
    order: Literal["C", "F"] = "F"

    def eigen(self, matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors, as ``eigh`` does."""
        with one_thread_if_small(len(matrix)):
            values, vectors = np.linalg.eigh(matrix)
        return values, vectors

    def by_descending_value(self, values: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the indices that sort the values in descending order, NaN last, and the sorted values."""
        return by_descending_value(values)
