"""A file of columns with checksums: written once and read in blocks.

The file has a header of 64 bytes, then the columns one after the other, then an index in JSON: shape, type, names of
the features, and a checksum for every few megabytes. The header holds the offset, length and checksum of the index. It
is written last, and the file is renamed at the end: an interrupted conversion leaves no file that can be opened.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zeronorm._jit import kernel
from zeronorm.design._base import Design
from zeronorm.design._chunked import FILE_TYPES, ColumnFile, DataFileError, read_lines
from zeronorm.design._convert import as_design
from zeronorm.design._index import Index, is_consecutive
from zeronorm.design._stats import read_only
from zeronorm.design._stats_kernels import LARGEST_VALUE

SUFFIX = ".zncols"
_MAGIC = b"ZNCOLS1\n"
_HEAD = struct.Struct("<8sQQI")  # magic number; offset, length and checksum of the index
_HEAD_BYTES = 64
_PIECE_BYTES = 4 << 20
_BLOCK_BYTES = 64 << 20
_TYPES = ("<f4", "<f8")


def pack(
    X: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: ArrayLike | None = None,
    dtype: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> Path:
    """Write data to a file of columns that `as_design` reads without loading it.

    Parameters
    ----------
    X : array, sparse matrix, data frame, Design, path or list of paths
        Anything that `as_design` takes. Data in files are read in blocks.
    path : path
        The file to write, with the suffix ``.zncols``. An existing file is replaced once the new one is complete.
    feature_names : array-like of str or None, default=None
        Names of the columns. None: those of X, if it has any.
    dtype : {"float32", "float64"} or None, default=None
        Type in which numbers are stored. None: that of X.
    about : dict or None, default=None
        Further information about the data, such as the target; stored as JSON in the index.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from zeronorm import as_design
    >>> from zeronorm.design import pack
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pack(np.eye(3), f"{folder}/x.zncols", dtype="float32")
    ...     as_design(file)
    ChunkedDesign(3 samples, 3 features, float32)
    """
    target = Path(path)
    if target.suffix != SUFFIX:
        raise ValueError(
            f"The name of a file of columns must end with {SUFFIX!r}. Got {str(target)!r} instead."
        )
    if dtype not in (None, "float32", "float64"):
        raise ValueError(
            f"The 'dtype' parameter of pack must be 'float32', 'float64' or None. Got {dtype!r} instead."
        )
    design = as_design(X, feature_names=feature_names)
    stored = np.dtype("<f4" if np.dtype(dtype or design.dtype) == np.float32 else "<f8")
    require_room(target, design.n_samples * design.n_features * stored.itemsize)
    names = design.feature_names if feature_names is None else feature_names
    with _replacing(target) as stream:
        stream.write(bytes(_HEAD_BYTES))
        width = max(1, _PIECE_BYTES // (design.n_samples * stored.itemsize))
        content = {
            "shape": design.shape,
            "dtype": stored.str,
            "width": width,
            "finite": True,
            "sums": _write_columns(stream, design, stored, width),
            "names": None if names is None else [str(name) for name in np.asarray(names, dtype=object)],
            "about": dict(about or {}),
        }
        index, offset = json.dumps(content).encode(), stream.tell()
        stream.write(index)
        stream.seek(0)
        stream.write(_HEAD.pack(_MAGIC, offset, len(index), zlib.crc32(index)))
    return target


@kernel
def _sums_of_integers(integers: NDArray[np.uint32]) -> tuple[np.uint64, np.uint64]:
    plain, weighted = np.uint64(0), np.uint64(0)
    for i in range(integers.shape[0]):
        value = np.uint64(integers[i])
        plain += value
        weighted += value * np.uint64(i + 1)
    return plain, weighted


def checksum_of(values: NDArray[Any]) -> int:
    """Checksum: sums, modulo 2**64, of the 32-bit integers and of the integers times their positions.

    A changed integer, or two that are swapped, change it; it takes a tenth of the time of a CRC.
    """
    plain, weighted = _sums_of_integers(read_only(values.reshape(-1).view("<u4")))
    return int(weighted) << 64 | int(plain)


def _write_columns(stream: IO[bytes], design: Design, dtype: np.dtype[Any], width: int) -> list[int]:
    """Write all columns and return the checksum of each piece of ``width`` columns."""
    checksums = []
    pieces_per_block = max(1, _BLOCK_BYTES // (8 * design.n_samples * width))
    for span, block in design.iter_blocks(width * pieces_per_block):
        with np.errstate(over="ignore"):
            columns = np.ascontiguousarray(block.T, dtype=dtype)
        _require_storable(columns, span)
        for start in range(0, len(columns), width):
            piece = columns[start : start + width]
            checksums.append(checksum_of(piece))
            stream.write(piece.tobytes())
    return checksums


def _require_storable(columns: NDArray[Any], span: slice) -> None:
    """Raise an error if values are not finite or too large to be squared: readers do not check again."""
    largest = min(LARGEST_VALUE, float(np.finfo(columns.dtype).max))
    if np.all(np.abs(columns) <= largest):
        return
    if columns.dtype.itemsize == 8 or np.isnan(columns).any():
        raise ValueError(
            f"Columns {span.start} to {span.stop - 1} hold NaN, infinity or values beyond {LARGEST_VALUE:.0e}; "
            "fill, drop or rescale such values first."
        )
    raise ValueError(
        f"Columns {span.start} to {span.stop - 1} hold values that are too large for float32; store them as float64."
    )


def require_room(target: Path, n_bytes: int) -> None:
    """Raise an error if the folder does not exist or the disk has less than ``n_bytes`` free."""
    if not target.parent.is_dir():
        raise ValueError(
            f"There is no folder {str(target.parent)!r} to write {target.name!r} to; create it first."
        )
    free = shutil.disk_usage(target.parent).free
    if n_bytes > free:
        raise ValueError(
            f"{str(target)!r} would take {n_bytes / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free on that disk; "
            "choose another one."
        )


@contextmanager
def _replacing(target: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file beside the target; it replaces the target on success and is removed on error."""
    for abandoned in target.parent.glob(f".{target.name}.*.part"):
        if not is_running(abandoned.name.split(".")[-2]):
            abandoned.unlink(missing_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with full_disk_explained(target), open(draft, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def full_disk_explained(target: Path) -> Iterator[None]:
    """Turn the error of a full disk into one that names the file and the remedy."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ValueError(
            f"The disk is full: {str(target)!r} could not be written, and the incomplete file was removed. "
            "Free some space or choose another disk."
        ) from error


def is_running(process: str) -> bool:
    """Whether there is a process with this number."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except OSError:  # the process belongs to another user
        return True
    return True


def _crc_of(values: NDArray[Any]) -> int:
    return zlib.crc32(values.data)


class PackedFile(ColumnFile):
    """A file written by `pack`; each piece is compared with its checksum when it is first read."""

    has_whole_columns = True

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with open(path, "rb") as stream:
            head = stream.read(_HEAD.size)
            if len(head) < _HEAD.size or not head.startswith(_MAGIC):
                raise ValueError(f"The file {path} is not a complete file of columns; pack the data again.")
            _, offset, length, checksum = _HEAD.unpack(head)
            if offset + length != self._stamp[0]:
                raise ValueError(f"The file {path} is not complete: its end is missing; pack the data again.")
            stream.seek(offset)
            content = stream.read(length)
        self._read_index(content, checksum, offset)
        self._checked: set[int] = set()

    def _read_index(self, content: bytes, checksum: int, offset: int) -> None:
        if zlib.crc32(content) != checksum:
            raise ValueError(f"The file {self.path} is damaged: its index has changed; pack the data again.")
        index = json.loads(content)
        n, p = (int(size) for size in index["shape"])
        if index["dtype"] not in _TYPES or offset != _HEAD_BYTES + n * p * np.dtype(index["dtype"]).itemsize:
            raise ValueError(f"The file {self.path} is damaged: its index does not fit; pack the data again.")
        self.shape, self.dtype, self.names = (n, p), np.dtype(index["dtype"]), index["names"]
        self.about: dict[str, Any] = index.get("about", {})
        self._width = int(index["width"])
        # Files written by the first versions hold a CRC for each piece.
        self._checksum_of = checksum_of if "sums" in index else _crc_of
        self._checksums = index["sums"] if "sums" in index else index["checksums"]
        self.columns_at_once, self.known_finite = self._width, bool(index.get("finite", False))

    def read(self, rows: Index, columns: Index) -> NDArray[Any]:
        found = self.read_unchecked(rows, columns)
        self.check(rows, columns, found)
        return found

    def read_unchecked(self, rows: Index, columns: Index) -> NDArray[Any]:
        self.require_unchanged()
        return read_lines(self, _HEAD_BYTES, self.shape[0], columns, rows).T

    def check(self, rows: Index, columns: Index, found: NDArray[Any]) -> None:
        if len(self._checked) == len(self._checksums):
            return
        in_one_piece = isinstance(rows, range) and rows == range(self.shape[0]) and is_consecutive(columns)
        for piece in self._pieces(columns):
            if piece not in self._checked:
                self._check(piece, found.T if in_one_piece else found.T[:0], columns)

    def _pieces(self, columns: Index) -> Sequence[int]:
        if is_consecutive(columns) and len(columns):
            return range(int(columns[0]) // self._width, int(columns[-1]) // self._width + 1)
        return cast("list[int]", np.unique(np.asarray(columns, dtype=np.intp) // self._width).tolist())

    def _check(self, piece: int, found: NDArray[Any], present: Index) -> None:
        """Compare a piece with its checksum; ``found`` holds the columns ``present``, which were just read."""
        n, p = self.shape
        columns = range(piece * self._width, min((piece + 1) * self._width, p))
        first = columns.start - int(present[0])
        values = found[first : first + len(columns)] if first >= 0 else found[:0]
        if len(values) < len(columns):
            values = read_lines(self, _HEAD_BYTES, n, columns, range(n))
        if self._checksum_of(values) != self._checksums[piece]:
            raise DataFileError(
                f"The file {self.path} is damaged: columns {columns.start} to {columns.stop - 1} do not match their "
                "checksum; pack the data again."
            )
        self._checked.add(piece)


FILE_TYPES[SUFFIX] = PackedFile
