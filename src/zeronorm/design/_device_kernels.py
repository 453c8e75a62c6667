"""Kernels for a GPU that sum single-precision data in double precision, in one pass over the data.

Library functions would first write a copy of the data in double precision and read it again, which is five times the
memory traffic. The kernels are written in Triton, which comes with torch for CUDA; `usable_for` checks that they work.
Matrices are stored by row (C order).
"""

# mypy: allow-untyped-defs
# mypy: allow-untyped-calls
# mypy: disable-error-code=no-untyped-def

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl

_MOST_VECTORS = 4  # products with more vectors are left to the matrix product
_COLUMNS_PER_PART = 16384  # of a sum along a row that one program computes
_CENTER_SAMPLES = 16
_TILE = 64  # samples on each side of a tile of distances
_AT_ONCE = 4  # columns per iteration of the loop
_PROGRAMS = 4096  # enough to keep a device busy
_ROWS = 8  # rows per iteration of a loop along the columns
_LEAST_ROWS = 64  # rows that one program handles at least


@triton.jit
def _column_sums(
    x, stride, weights, out, n_rows, n_columns, part_size, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # pragma: no cover
    """out[part, j] = sum_i weights[i] x[i, j] over the rows of one part"""
    column = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(1)
    inside = column < n_columns
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    for start in range(part * part_size, tl.minimum((part + 1) * part_size, n_rows), ROWS):
        row = start + tl.arange(0, ROWS)
        known = row < n_rows
        weight = tl.load(weights + row, mask=known, other=0.0)
        address = x + row.to(tl.int64)[:, None] * stride + column[None, :]
        value = tl.load(address, mask=known[:, None] & inside[None, :], other=0.0)
        total += value.to(tl.float64) * weight[:, None]
    tl.store(out + part.to(tl.int64) * n_columns + column, tl.sum(total, axis=0), mask=inside)


@triton.jit
def _row_sums(
    x, stride, weights, out, n_rows, n_columns, n_parts, PART: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip  # pragma: no cover
    """out[i, part] = sum_j x[i, j] weights[j] over the columns of one part"""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(1)
    known = row < n_rows
    begin = x + row.to(tl.int64)[:, None] * stride
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    for start in range(0, PART, COLUMNS):
        column = part.to(tl.int64) * PART + start + tl.arange(0, COLUMNS)
        inside = column < n_columns
        weight = tl.load(weights + column, mask=inside, other=0.0)
        value = tl.load(begin + column[None, :], mask=known[:, None] & inside[None, :], other=0.0)
        total += value.to(tl.float64) * weight[None, :]
    tl.store(out + row.to(tl.int64) * n_parts + part, tl.sum(total, axis=1), mask=known)


@triton.jit
def _column_moments(
    x, stride, rows, weights, out, n_rows, n_columns, part_size,
    CENTER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip  # pragma: no cover
    """Minimum, maximum, center, and first and second moment about it, of each column over one part of the rows.

    The center is the mean of the first selected rows, see `_stats_kernels`.
    """
    column = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(1)
    inside = column < n_columns
    # Variables of the loop below must keep their shape, so these have different names.
    leader = tl.arange(0, CENTER)
    is_leader = leader < n_rows
    leader_row = tl.load(rows + leader, mask=is_leader, other=0)
    leader_address = x + leader_row[:, None] * stride + column[None, :]
    leading = tl.load(leader_address, mask=is_leader[:, None] & inside[None, :], other=0.0).to(tl.float64)
    center = tl.sum(leading, axis=0) / tl.minimum(n_rows, CENTER)
    first = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    second = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    low = tl.zeros((ROWS, COLUMNS), dtype=tl.float64) + float("inf")
    high = tl.zeros((ROWS, COLUMNS), dtype=tl.float64) - float("inf")
    for start in range(part * part_size, tl.minimum((part + 1) * part_size, n_rows), ROWS):
        member = start + tl.arange(0, ROWS)
        known = member < n_rows
        row = tl.load(rows + member, mask=known, other=0)
        weight = tl.load(weights + member, mask=known, other=0.0)
        address = x + row[:, None] * stride + column[None, :]
        both = known[:, None] & inside[None, :]
        value = tl.load(address, mask=both, other=0.0).to(tl.float64)
        low = tl.where(both & (value < low), value, low)
        high = tl.where(both & (value > high), value, high)
        deviation = tl.where(both, value - center[None, :], 0.0)
        first += weight[:, None] * deviation
        second += weight[:, None] * deviation * deviation
    begin = out + part.to(tl.int64) * 5 * n_columns + column
    tl.store(begin, tl.min(low, axis=0), mask=inside)
    tl.store(begin + n_columns, tl.max(high, axis=0), mask=inside)
    tl.store(begin + 2 * n_columns, center, mask=inside)
    tl.store(begin + 3 * n_columns, tl.sum(first, axis=0), mask=inside)
    tl.store(begin + 4 * n_columns, tl.sum(second, axis=0), mask=inside)


@triton.jit
def _distances(
    columns, out, n, n_columns, part_size, SQUARED: tl.constexpr, TILE: tl.constexpr, AT_ONCE: tl.constexpr
):  # pragma: no cover
    """out[part, i, j] = sum_k |columns[k, i] - columns[k, j]| over one part of the columns, for tiles with j >= i"""
    top, left, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if left >= top:
        row, column = top * TILE + tl.arange(0, TILE), left * TILE + tl.arange(0, TILE)
        is_row, is_column = row < n, column < n
        total = tl.zeros((TILE, TILE), dtype=tl.float64)
        begin = part * part_size
        values = columns + begin.to(tl.int64) * n
        for _start in range(begin, tl.minimum(begin + part_size, n_columns), AT_ONCE):
            for _ in tl.static_range(AT_ONCE):
                a = tl.load(values + row, mask=is_row, other=0.0)
                b = tl.load(values + column, mask=is_column, other=0.0)
                difference = a[:, None] - b[None, :]
                if SQUARED:
                    total += difference * difference
                else:
                    total += tl.abs(difference)
                values += n
        address = out + (part.to(tl.int64) * n + row[:, None]) * n + column[None, :]
        tl.store(address, total, mask=is_row[:, None] & is_column[None, :])


@triton.jit
def _difference_sums(
    x, stride, first, second, weights, out, n_pairs, n_columns, part_size, PAIRS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip  # pragma: no cover
    """out[part, k] = sum_t weights[t] |x[first[t], k] - x[second[t], k]| over one part of the pairs"""
    column = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(1)
    inside = column < n_columns
    total = tl.zeros((PAIRS, COLUMNS), dtype=tl.float64)
    for start in range(part * part_size, tl.minimum((part + 1) * part_size, n_pairs), PAIRS):
        pair = start + tl.arange(0, PAIRS)
        known = pair < n_pairs
        weight = tl.load(weights + pair, mask=known, other=0.0)
        a_row = tl.load(first + pair, mask=known, other=0)
        b_row = tl.load(second + pair, mask=known, other=0)
        both = known[:, None] & inside[None, :]
        a = tl.load(x + a_row[:, None] * stride + column[None, :], mask=both, other=0.0).to(tl.float64)
        b = tl.load(x + b_row[:, None] * stride + column[None, :], mask=both, other=0.0).to(tl.float64)
        total += weight[:, None] * tl.abs(a - b)
    tl.store(out + part.to(tl.int64) * n_columns + column, tl.sum(total, axis=0), mask=inside)


@triton.jit
def _centered(
    x, stride, shift, factor, out, n_rows, n_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # pragma: no cover
    """out[i, j] = (x[i, j] - shift[j]) factor[j]"""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    known, inside = row < n_rows, column < n_columns
    both = known[:, None] & inside[None, :]
    center = tl.load(shift + column, mask=inside, other=0.0)
    scale = tl.load(factor + column, mask=inside, other=0.0)
    line = row.to(tl.int64)[:, None]
    value = tl.load(x + line * stride + column[None, :], mask=both, other=0.0).to(tl.float64)
    tl.store(out + line * n_columns + column[None, :], (value - center[None, :]) * scale[None, :], mask=both)


def _parts(n_rows: int, n_columns: int, width: int) -> tuple[tuple[int, int], int]:
    """Grid of programs for sums along the columns, and rows per program: the rows of tall data are split too."""
    n_blocks = triton.cdiv(n_columns, width)
    n_parts = max(1, min(n_rows // _LEAST_ROWS, _PROGRAMS // n_blocks))
    part_size = _ROWS * triton.cdiv(n_rows, _ROWS * n_parts)
    return (n_blocks, triton.cdiv(n_rows, part_size)), part_size


def transpose_dot(x: Any, V: Any) -> Any:
    """``x' V`` for one vector, or for each column of V, in double precision."""
    if V.ndim == 2:
        return torch.stack([transpose_dot(x, V[:, k].contiguous()) for k in range(V.shape[1])], dim=1)
    n, p = x.shape
    grid, part_size = _parts(n, p, 256)
    out = torch.empty((grid[1], p), dtype=torch.float64, device=x.device)
    with _on_its_device(x):
        _column_sums[grid](x, x.stride(0), V, out, n, p, part_size, ROWS=_ROWS, COLUMNS=256)
    return out.sum(dim=0)


def dot(x: Any, w: Any) -> Any:
    """``x w`` for one vector, or for each column of w, in double precision; sums have a fixed order."""
    if w.ndim == 2:
        return torch.stack([dot(x, w[:, k].contiguous()) for k in range(w.shape[1])], dim=1)
    n, p = x.shape
    n_parts = triton.cdiv(p, _COLUMNS_PER_PART)
    out = torch.empty((n, n_parts), dtype=torch.float64, device=x.device)
    with _on_its_device(x):
        _row_sums[(triton.cdiv(n, _ROWS), n_parts)](
            x, x.stride(0), w, out, n, p, n_parts, PART=_COLUMNS_PER_PART, ROWS=_ROWS, COLUMNS=256
        )
    return out.sum(dim=1)


def centered(x: Any, shift: Any, factor: Any) -> Any:
    """``(x - shift) * factor`` in double precision, with one pass over the data."""
    x = x if x.stride(1) == 1 else x.contiguous()
    n, p = x.shape
    out = torch.empty((n, p), dtype=torch.float64, device=x.device)
    with _on_its_device(x):
        _centered[(triton.cdiv(n, _ROWS), triton.cdiv(p, 256))](
            x, x.stride(0), shift, factor, out, n, p, ROWS=_ROWS, COLUMNS=256
        )
    return out


def column_moments(x: Any, rows: Any, weights: Any, total_weight: float) -> Any:
    """Return a matrix with four rows: minimum, maximum, mean and sum of squared deviations of each column.

    ``rows`` are indices of samples, those with the largest weight first, and ``weights`` their weights.
    """
    n, p = rows.shape[0], x.shape[1]
    grid, part_size = _parts(n, p, 128)
    out = torch.empty((grid[1], 5, p), dtype=torch.float64, device=x.device)
    with _on_its_device(x):
        _column_moments[grid](
            x,
            x.stride(0),
            rows,
            weights,
            out,
            n,
            p,
            part_size,
            CENTER=_CENTER_SAMPLES,
            ROWS=_ROWS,
            COLUMNS=128,
        )
    first, second = out[:, 3].sum(dim=0), out[:, 4].sum(dim=0)
    sum_sq = (second - first * first / total_weight).clamp(min=0.0)
    return torch.stack(
        [out[:, 0].amin(dim=0), out[:, 1].amax(dim=0), out[0, 2] + first / total_weight, sum_sq], dim=0
    )


def distances(block: Any, squared: bool) -> Any:
    """Sums of absolute, or squared, differences between all rows of a matrix in double precision."""
    n, p = block.shape
    n_tiles = triton.cdiv(n, _TILE)
    n_parts = max(1, min(p // 64, 2 * _PROGRAMS // (n_tiles * (n_tiles + 1))))
    out = torch.zeros((n_parts, n, n), dtype=torch.float64, device=block.device)
    part_size = _AT_ONCE * triton.cdiv(p, _AT_ONCE * n_parts)
    columns = torch.nn.functional.pad(block.T, (0, 0, 0, -p % _AT_ONCE)).contiguous()  # zeros add nothing
    with _on_its_device(block):
        _distances[(n_tiles, n_tiles, n_parts)](
            columns, out, n, len(columns), part_size, SQUARED=squared, TILE=_TILE, AT_ONCE=_AT_ONCE
        )
    upper = out.sum(dim=0).triu(1)
    return upper + upper.T


def difference_sums(x: Any, first: Any, second: Any, weights: Any) -> Any:
    """Weighted sum of absolute differences over pairs of rows, for each column, in double precision."""
    p = x.shape[1]
    grid, part_size = _parts(first.shape[0], p, 128)
    out = torch.empty((grid[1], p), dtype=torch.float64, device=x.device)
    with _on_its_device(x):
        _difference_sums[grid](
            x,
            x.stride(0),
            first,
            second,
            weights,
            out,
            first.shape[0],
            p,
            part_size,
            PAIRS=_ROWS,
            COLUMNS=128,
        )
    return out.sum(dim=0)


def suits(x: Any, n_vectors: int = 1) -> bool:
    """Whether the kernels can be used: the matrix is stored by row and the vectors are few."""
    return x.stride(1) == 1 and min(x.shape) > 0 and n_vectors <= _MOST_VECTORS


def _on_its_device(x: Any) -> Any:
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def _may_run_on(device: str) -> bool:
    return device.startswith("cuda") or os.environ.get("TRITON_INTERPRET") == "1"


@functools.cache
def usable_for(device: str) -> bool:
    """Whether the kernels for sums compile on a device and give correct results; tested once on a small matrix."""
    return _may_run_on(device) and _agree(_sums, device)


@functools.cache
def compares_samples_on(device: str) -> bool:
    """Whether the kernels for differences of samples compile on a device and give correct results."""
    return _may_run_on(device) and _agree(_differences, device)


def _agree(trial: Callable[[Any], tuple[list[Any], list[Any]]], device: str) -> bool:
    x = torch.linspace(-1.0, 2.0, 11 * 300, device=device, dtype=torch.float32).reshape(11, 300)
    try:
        found, expected = trial(x)
    except Exception:  # no compiler or an unknown device: library functions are used instead
        return False
    pairs = zip(found, expected, strict=True)
    return all(bool(torch.allclose(left, right, rtol=1e-10, atol=1e-10)) for left, right in pairs)


def _sums(x: Any) -> tuple[list[Any], list[Any]]:
    double = x.double()
    n, p = x.shape
    v, w = torch.arange(n, device=x.device).double(), torch.arange(p, device=x.device).double()
    moments = column_moments(x, torch.arange(n, device=x.device), torch.ones_like(v), float(n))
    found = [transpose_dot(x, v), dot(x, w), moments[2], moments[3], centered(x, w, w)]
    sum_sq = n * double.var(dim=0, correction=0)
    return found, [double.T @ v, double @ w, double.mean(dim=0), sum_sq, (double - w) * w]


def _differences(x: Any) -> tuple[list[Any], list[Any]]:
    double, rows = x.double(), torch.arange(x.shape[0], device=x.device)
    found = [distances(double, squared=False), difference_sums(x, rows, 0 * rows, rows.double())]
    return found, [torch.cdist(double, double, p=1.0), rows.double() @ (double - double[0]).abs()]
