"""Properties of the device that holds an array, library, memory and precision, and copies to and from it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._messages import OptionError

# Libraries whose arrays stay on their device; NumPy arrays become a DenseDesign.
LIBRARIES = ("torch", "cupy", "array_api_strict")

# Compute capabilities of NVIDIA devices with at least half the speed of single precision in double precision.
_FAST_DOUBLE = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}
_HOST_BLOCK_BYTES = 32 << 20  # about the size of the processor cache
_DEVICE_BLOCK_BYTES = 1 << 30  # larger blocks save no time
_MEMORY_SHARE = 1 / 8  # of the free memory of a device, for one block


def library_of(array: Any) -> str:
    """Name of the library that an array belongs to."""
    return type(array).__module__.partition(".")[0]


def is_foreign_array(X: Any) -> bool:
    """Whether X is an array of one of these libraries."""
    return library_of(X) in LIBRARIES and hasattr(X, "dtype")


def namespace(array: Any) -> Any:
    """Return the array API namespace of an array."""
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        raise ImportError(
            f"Arrays of type {type(array)} need array-api-compat, which is not installed; "
            "install zeronorm[gpu]."
        ) from error
    return array_namespace(array)


def device_of(array: Any) -> Any:
    """Return the device of an array, as an object of its library."""
    from array_api_compat import device

    return device(array)


def on_device(values: NDArray[Any], like: Any) -> Any:
    """Copy a NumPy array to the device of another array."""
    return namespace(like).asarray(np.ascontiguousarray(values), device=device_of(like))


def on_host(array: Any) -> NDArray[Any]:
    """Copy an array from its device to NumPy."""
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get(out=_locked_for_cupy(array)))
    if hasattr(array, "cpu"):  # torch
        found = array.detach()
        locked = _locked_for_torch(found)
        return np.asarray(found.cpu().numpy() if locked is None else locked.copy_(found).numpy())
    return np.from_dlpack(array)


# Results between these sizes are copied into page-locked memory, which is ten times as fast. The libraries keep such
# memory for later results, so there is an upper limit.
_LEAST_LOCKED_BYTES, _MOST_LOCKED_BYTES = 1 << 19, 1 << 28


def _is_worth_locking(array: Any) -> bool:
    return _LEAST_LOCKED_BYTES <= int(array.nbytes) <= _MOST_LOCKED_BYTES


def _locked_for_torch(array: Any) -> Any:
    if array.device.type != "cuda" or not _is_worth_locking(array):
        return None
    import torch

    try:
        return torch.empty(array.shape, dtype=array.dtype, pin_memory=True)
    except RuntimeError:  # the system allows no more of it
        return None


def _locked_for_cupy(array: Any) -> Any:
    if not _is_worth_locking(array):
        return None
    import cupyx

    try:
        return cupyx.empty_pinned(array.shape, array.dtype)
    except Exception:  # the system allows no more of it
        return None


def pairwise_distances(block: Any, *, squared: bool, kernels: Any = None) -> Any:
    """Sums of absolute, or squared, differences between all rows of a matrix."""
    if kernels is not None:
        return kernels.distances(block, squared)
    if library_of(block) == "torch":
        import torch

        found = torch.cdist(
            block, block, p=2.0 if squared else 1.0, compute_mode="donot_use_mm_for_euclid_dist"
        )
        return found * found if squared else found
    if library_of(block) == "cupy" and _cupy_compares_samples():
        return _cupy_distances(block, squared)
    xp = namespace(block)
    lines = []
    for row in range(block.shape[0]):
        difference = block - block[row, :]
        lines.append(xp.sum(difference * difference if squared else xp.abs(difference), axis=1))
    return xp.stack(lines, axis=0)


# Tiles of 64 by 64 pairs of samples; 16 by 16 threads with 16 pairs each, and 16 columns at a time in shared memory.
_CUDA_DISTANCES = """
extern "C" __global__ void distances(
    const double* columns, double* out, const int n, const long long p, const int squared)
{
    __shared__ double a[16][64], b[16][64];
    const int top = 64 * blockIdx.x, left = 64 * blockIdx.y, x = threadIdx.x, y = threadIdx.y;
    if (left < top) return;
    double total[4][4] = {};
    for (long long start = 0; start < p; start += 16) {
        for (int entry = 16 * y + x; entry < 16 * 64; entry += 256) {
            const int k = entry / 64, i = entry % 64;
            const double* column = columns + (start + k) * n;
            a[k][i] = start + k < p && top + i < n ? column[top + i] : 0.0;
            b[k][i] = start + k < p && left + i < n ? column[left + i] : 0.0;
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) {
                    const double difference = a[k][4 * y + i] - b[k][4 * x + j];
                    total[i][j] += squared ? difference * difference : fabs(difference);
                }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) {
            const long long row = top + 4 * y + i, column = left + 4 * x + j;
            if (row < n && column < n) out[row * n + column] = out[column * n + row] = total[i][j];
        }
}
"""


def _cupy_distances(block: Any, squared: bool) -> Any:
    import cupy

    n, p = block.shape
    columns = cupy.ascontiguousarray(block.T)
    out = cupy.empty((n, n))
    n_tiles = -(-n // 64)
    arguments = (columns, out, np.int32(n), np.int64(p), np.int32(squared))
    cupy.RawKernel(_CUDA_DISTANCES, "distances")((n_tiles, n_tiles), (16, 16), arguments)
    return out


@functools.cache
def _cupy_compares_samples() -> bool:
    """Whether the kernel compiles and gives correct results; tested once on a small matrix."""
    import cupy

    block = cupy.linspace(-1.0, 2.0, 70 * 19).reshape(70, 19) ** 3
    try:
        found = _cupy_distances(block, False)
    except Exception:  # no compiler: library functions are used instead
        return False
    return bool(cupy.allclose(found, cupy.abs(block[:, None, :] - block[None, :, :]).sum(axis=2)))


def block_bytes(array: Any, wanted: int = _DEVICE_BLOCK_BYTES) -> int:
    """Bytes that one block may take on the device of an array; free memory is queried only if ``wanted`` is large."""
    if wanted <= _HOST_BLOCK_BYTES:
        return _HOST_BLOCK_BYTES
    free = _free_bytes(array, int(min(wanted, _DEVICE_BLOCK_BYTES) / _MEMORY_SHARE))
    return _HOST_BLOCK_BYTES if free is None else int(min(_DEVICE_BLOCK_BYTES, _MEMORY_SHARE * free))


def _free_bytes(array: Any, enough: int) -> int | None:
    """Free memory of the device; None if the array is in the memory of the host.

    Memory that the library holds in reserve counts as free. It is queried only if the device itself has less than
    ``enough``, because torch takes longer for that than for many products.
    """
    if library_of(array) == "cupy":
        import cupy

        with array.device:
            return int(array.device.mem_info[0] + cupy.get_default_memory_pool().free_bytes())
    if library_of(array) == "torch" and array.device.type == "cuda":
        from torch import cuda

        free = int(cuda.mem_get_info(array.device)[0])
        if free >= enough:
            return free
        return free + int(cuda.memory_reserved(array.device) - cuda.memory_allocated(array.device))
    return None


def has_own_memory(array: Any) -> bool:
    """Whether an array is on a device with its own memory, such as a CUDA device."""
    return library_of(array) == "cupy" or (library_of(array) == "torch" and array.device.type == "cuda")


def has_fast_double(array: Any) -> bool:
    """Whether matrix products in double precision are fast on the device of an array.

    They are on CPUs and on data center GPUs of NVIDIA and AMD; on other GPUs they take up to 64 times as long as in
    single precision.
    """
    if library_of(array) == "cupy":
        version = str(array.device.compute_capability)
        return (int(version[:-1]), int(version[-1])) in _FAST_DOUBLE
    if library_of(array) == "torch" and array.device.type != "cpu":
        return array.device.type == "cuda" and _torch_cuda_has_fast_double(str(array.device))
    return True


@functools.cache
def _torch_cuda_has_fast_double(device: str) -> bool:
    import torch

    if getattr(torch.version, "hip", None):
        return "Instinct" in torch.cuda.get_device_name(device)
    return tuple(torch.cuda.get_device_capability(device)) in _FAST_DOUBLE


def kernels_for(array: Any) -> Any:
    """Return the module of kernels that sum single-precision data in double precision; None if they do not work."""
    if library_of(array) != "torch" or array.device.type != "cuda":
        return None
    try:
        from zeronorm.design import _device_kernels as device_kernels
    except ImportError:  # no Triton
        return None
    return device_kernels if device_kernels.usable_for(str(array.device)) else None


def difference_kernels_for(array: Any) -> Any:
    """Return the module of kernels for differences of samples; None if they do not work."""
    kernels = kernels_for(array)
    return kernels if kernels is not None and kernels.compares_samples_on(str(array.device)) else None


@contextmanager
def full_single_precision(array: Any) -> Iterator[None]:
    """Let torch multiply in full single precision even if the user allows lower precision (TF32) elsewhere."""
    if library_of(array) != "torch":
        yield
        return
    import torch

    allowed = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(allowed)


def empty_on(device: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> Any:
    """Return a new array on a device such as "cuda" or "cuda:1"; of torch, or of CuPy if torch is not installed."""
    try:
        return _empty_of_torch(device, shape, dtype)
    except ImportError:
        pass
    try:
        import cupy
    except ImportError as error:
        raise OptionError(
            "needs torch or CuPy, and neither is installed; install one of them and zeronorm[gpu].", "device"
        ) from error
    kind, _, number = device.partition(":")
    if kind != "cuda" or cupy.cuda.runtime.getDeviceCount() <= int(number or 0):
        raise _no_device(device, f"CuPy finds {cupy.cuda.runtime.getDeviceCount()} CUDA device(s)")
    with cupy.cuda.Device(int(number or 0)):
        return cupy.empty(shape, dtype=dtype)


def _empty_of_torch(device: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> Any:
    import torch

    try:
        target = torch.device(device)
    except RuntimeError as error:
        raise _no_device(device, "torch knows no device of that name") from error
    if target.type == "cuda" and (target.index or 0) >= torch.cuda.device_count():
        raise _no_device(device, f"torch finds {torch.cuda.device_count()} CUDA device(s)")
    try:
        return torch.empty(
            shape, dtype=torch.float32 if dtype == np.float32 else torch.float64, device=target
        )
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        if is_out_of_memory(error):
            raise
        raise _no_device(device, str(error).splitlines()[0]) from error


def _no_device(device: str, found: str) -> OptionError:
    return OptionError(
        f"must name an available device, such as 'cuda'. Got {device!r}: {found}; leave it out to compute on the "
        "processor.",
        "device",
    )


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error of a library means that the memory of its device is exhausted."""
    return isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__
