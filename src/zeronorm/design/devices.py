"""What is known about the device that holds an array: its library, its memory, its precision."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Libraries whose arrays are left where they are; NumPy's own arrays are a DenseDesign.
LIBRARIES = ("torch", "cupy", "array_api_strict")

# NVIDIA devices whose double precision runs at half the speed of single precision or better.
_FAST_DOUBLE = {(6, 0), (7, 0), (8, 0), (9, 0), (10, 0)}
_HOST_BLOCK_BYTES = 32 << 20  # stays near the caches of a processor
_DEVICE_BLOCK_BYTES = 1 << 30  # larger blocks save no time
_MEMORY_SHARE = 1 / 8  # of the free memory of a device, for one block


def library_of(array: Any) -> str:
    """The name of the library that an array comes from."""
    return type(array).__module__.partition(".")[0]


def is_foreign_array(X: Any) -> bool:
    """Tell whether X is an array of a library that keeps its arrays on a device."""
    return library_of(X) in LIBRARIES and hasattr(X, "dtype")


def namespace(array: Any) -> Any:
    """The functions of the array API standard for this array."""
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        raise ImportError(
            f"Arrays of type {type(array)} are used through array-api-compat, which is not installed; "
            "install zeronorm[gpu]."
        ) from error
    return array_namespace(array)


def device_of(array: Any) -> Any:
    """The device in the words of its library."""
    from array_api_compat import device

    return device(array)


def on_device(values: NDArray[Any], like: Any) -> Any:
    """Copy an array of the host to the device of another."""
    return namespace(like).asarray(np.ascontiguousarray(values), device=device_of(like))


def on_host(array: Any) -> NDArray[Any]:
    """Copy to NumPy, from whatever device."""
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    if hasattr(array, "cpu"):  # torch
        return np.asarray(array.detach().cpu().numpy())
    return np.from_dlpack(array)


def pairwise_distances(block: Any, squared: bool) -> Any:
    """Sums of absolute, or squared, differences between all rows of a matrix."""
    if library_of(block) == "torch":
        import torch

        found = torch.cdist(
            block, block, p=2.0 if squared else 1.0, compute_mode="donot_use_mm_for_euclid_dist"
        )
        return found * found if squared else found
    xp = namespace(block)
    lines = []
    for row in range(block.shape[0]):
        difference = block - block[row, :]
        lines.append(xp.sum(difference * difference if squared else xp.abs(difference), axis=1))
    return xp.stack(lines, axis=0)


def block_bytes(array: Any) -> int:
    """How much memory one block may take where the array lives."""
    free = _free_bytes(array)
    return _HOST_BLOCK_BYTES if free is None else int(min(_DEVICE_BLOCK_BYTES, _MEMORY_SHARE * free))


def _free_bytes(array: Any) -> int | None:
    """Memory that is left on a device of its own; None where the array shares the memory of the host."""
    if library_of(array) == "cupy":
        import cupy

        with array.device:
            return int(array.device.mem_info[0] + cupy.get_default_memory_pool().free_bytes())
    if library_of(array) == "torch" and array.device.type == "cuda":
        from torch import cuda

        idle = cuda.memory_reserved(array.device) - cuda.memory_allocated(array.device)
        return int(cuda.mem_get_info(array.device)[0] + idle)
    return None


def has_fast_double(array: Any) -> bool:
    """Tell whether matrix products in double precision are worth their time on the device of an array.

    They are on processors and on the data centre devices of NVIDIA and AMD; on others they take up to 64 times
    as long as in single precision.
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
    """The module of kernels that read single precision and sum in double; None where they do not work."""
    if library_of(array) != "torch" or array.device.type != "cuda":
        return None
    try:
        from zeronorm.design import device_kernels
    except ImportError:  # no Triton
        return None
    return device_kernels if device_kernels.usable_for(str(array.device)) else None


@contextmanager
def full_single_precision(array: Any) -> Iterator[None]:
    """Keep torch from multiplying single precision with ten bits, where the user allows that elsewhere."""
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


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether a library says with this error that the memory of its device is exhausted."""
    return isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__
