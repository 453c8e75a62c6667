"""Where the computations of a run take place: in this process, on a device, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from zeronorm._messages import OptionError, setting
from zeronorm.design._array_api import to_device

if TYPE_CHECKING:
    from zeronorm.datasets import Table

PATIENCE_S = 10


def table_on_device(table: Table, device: str | None) -> Table:
    """The table with its features copied to a device."""
    if device is None:
        return table
    if table.n_missing:
        raise OptionError(
            f"needs data without missing values. {table.source} has {table.n_missing}; "
            f"fill them before, or set {setting('missing', 'drop-rows')} or {setting('missing', 'drop-columns')}.",
            "device",
        )
    return replace(table, X=to_device(table.X, device, feature_names=table.feature_names))


def jobs_at(device: str | None, dask: str | None, n_jobs: int | None) -> int | None:
    """The number of parallel jobs: one on a device, one per worker on a cluster, else ``n_jobs``."""
    if device is not None and dask is not None:
        raise ValueError(
            "The 'device' and 'dask' parameters exclude each other: a device belongs to this process. Set one of them."
        )
    if device is not None and n_jobs not in (None, 1):
        raise OptionError(
            f"must be 1 with a device, which all processes would share. Got {n_jobs} instead.",
            "n_jobs",
        )
    if n_jobs is not None:
        return n_jobs
    return 1 if device is not None else -1 if dask is not None else None


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Context manager that runs parallel computations on the workers of a Dask scheduler; None: in this process.

    The workers need the same packages, and data files under the same paths.
    """
    if address is None:
        yield
        return
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise OptionError(
            "needs the package distributed, which is not installed; install zeronorm[dask].",
            "dask",
        ) from error
    from joblib import parallel_config

    try:
        client = distributed.Client(address, timeout=PATIENCE_S, name="zeronorm")
    except Exception as error:  # another server may answer at this address
        raise OptionError(
            f"must be the address of a running Dask scheduler, such as tcp://host:8786. No scheduler "
            f"answers at {address!r}; start `dask scheduler` and `dask worker` first.",
            "dask",
        ) from error
    with client, parallel_config(backend="dask"):
        yield
