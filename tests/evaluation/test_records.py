"""Records as frames: their columns, types and files."""

from __future__ import annotations

import builtins

import numpy as np
import pandas as pd
import polars as pl
import pytest

from evaluation.made_data import make_data
from zeronorm import FisherScore, evaluate
from zeronorm.evaluation._records import columns_of


def hide_modules(monkeypatch, *hidden):
    real_import = builtins.__import__

    def import_module(name, globals=None, *args, **kwargs):
        if name in hidden and globals and globals.get("__name__") == "zeronorm.evaluation._records":
            raise ImportError(name)
        return real_import(name, globals, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", import_module)


def test_pandas_without_polars(monkeypatch):
    X, y = make_data()
    expected = evaluate(FisherScore(), X, y, cv=3, sizes=[2])
    hide_modules(monkeypatch, "polars")
    frame = evaluate(FisherScore(), X, y, cv=3, sizes=[2])
    assert isinstance(frame, pd.DataFrame)
    assert frame["error_rate"].tolist() == expected["error_rate"].to_list()
    assert list(frame.columns) == expected.columns
    hide_modules(monkeypatch, "polars", "pandas")
    with pytest.raises(ImportError, match="install polars"):
        evaluate(FisherScore(), X, y, cv=3, sizes=[2])


def test_columns_have_their_types_even_where_they_are_empty():
    X, y = make_data()
    records = evaluate(FisherScore(), X, y, cv=3, metrics="error_rate")
    types = dict(zip(records.columns, records.dtypes, strict=True))
    assert records["size"].null_count() == len(records) == records["error"].null_count()
    assert records["test_groups"].null_count() == len(records)
    assert records["decision"].null_count() == 0  # of the whole procedure
    wanted = {
        pl.Int64: ("split", "size", "n_selected", "n_train", "n_test"),
        pl.Float64: ("error_rate", "fit_seconds", "seconds"),
        pl.String: ("method", "error"),
        pl.Boolean: ("converged",),
        pl.List(pl.Int64): ("selected", "predictions", "truth", "test_rows"),
        pl.List(pl.Float64): ("decision",),
        pl.List(pl.String): ("test_groups",),
    }
    assert types == {name: kind for kind, names in wanted.items() for name in names}


def test_parquet_round_trip(tmp_path):
    X, y = make_data()
    records = evaluate(FisherScore(), X, np.where(y, "a", "b"), cv=3, sizes=[2, None])
    records.write_parquet(tmp_path / "records.parquet")
    assert pl.read_parquet(tmp_path / "records.parquet").equals(records)


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame, dict])
def test_columns_of_records_are_plain_lists(frame):
    columns = {"method": ["a", "b"], "size": [3, None]}
    assert columns_of(frame(columns)) == columns
