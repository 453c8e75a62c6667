"""Data sets by name: local folder, cache, and a stand-in for OpenML."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from zeronorm.datasets import DataError, known_names, load_dataset
from zeronorm.datasets import _catalogue as openml
from zeronorm.datasets._catalogue import BUNDLED, FILES, KNOWN, describe, find_local


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def fake_openml(tmp_path, monkeypatch):
    """A local server that answers like OpenML for sonar (data set 40)."""
    site = tmp_path / "site"
    site.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(site)))
    address = f"http://127.0.0.1:{server.server_port}/"
    rng = np.random.default_rng(0)
    header = "@relation sonar\n" + "".join(f"@attribute a{i} numeric\n" for i in range(60))
    rows = "\n".join(",".join(f"{v:.3f}" for v in rng.random(60)) + "," + "RM"[i % 2] for i in range(208))
    content = f"{header}@attribute Class {{R,M}}\n@data\n{rows}\n".encode()
    (site / "sonar.arff").write_bytes(content)
    description = {
        "url": f"{address}sonar.arff",
        "md5_checksum": hashlib.md5(content).hexdigest(),
        "default_target_attribute": "Class",
    }
    (site / "40").write_text(json.dumps({"data_set_description": description}))
    monkeypatch.setattr(openml, "API", address)
    monkeypatch.setattr(openml.fetch, "__defaults__", (address,))
    monkeypatch.setenv("ZERONORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ZERONORM_DATA", raising=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield site
    server.shutdown()
    server.server_close()
    thread.join()


def test_download_check_and_cache(fake_openml, tmp_path):
    table = load_dataset("sonar")
    assert table.X.shape == (208, 60)
    assert table.target_name == "Class"
    assert table.class_counts == {"M": 104, "R": 104}
    (fake_openml / "sonar.arff").unlink()
    again = load_dataset("sonar")
    np.testing.assert_array_equal(again.X, table.X)
    assert find_local("sonar") == tmp_path / "cache" / "sonar.arff"


def test_a_damaged_download_is_not_kept(fake_openml, tmp_path):
    with (fake_openml / "sonar.arff").open("ab") as stream:
        stream.write(b"garbage")
    with pytest.raises(DataError, match="damaged"):
        load_dataset("sonar")
    assert not list(tmp_path.glob("cache/*"))


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setenv("ZERONORM_CACHE", str(tmp_path))
    monkeypatch.delenv("ZERONORM_DATA", raising=False)
    monkeypatch.setattr(openml.fetch, "__defaults__", ("http://127.0.0.1:9/",))
    with pytest.raises(DataError, match="ZERONORM_DATA"):
        load_dataset("sonar")
    with pytest.raises(DataError, match="not on this machine"):
        load_dataset("sonar", download=False)


def test_the_local_folder_comes_first_and_sizes_are_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("ZERONORM_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "colon.npz", X=rng.random((62, 2000)), y=np.arange(62) % 2)
    assert load_dataset("colon").X.shape == (62, 2000)
    np.savez(tmp_path / "colon.npz", X=rng.random((61, 2000)), y=np.arange(61) % 2)
    with pytest.raises(DataError, match="62 and 2000"):
        load_dataset("colon")


def test_unknown_names():
    with pytest.raises(DataError, match="Did you mean 'colon'"):
        load_dataset("colonn")


def test_synthetic_problems_by_name():
    table = load_dataset("linear-toy", random_state=1)
    assert table.X.shape == (30, 202)
    assert "seed 1" in table.source


@pytest.mark.skipif(not os.environ.get("ZERONORM_DATA"), reason="ZERONORM_DATA is not set")
@pytest.mark.parametrize("name", KNOWN)
def test_real_files(name):
    if not (Path(os.environ["ZERONORM_DATA"]) / f"{name}.npz").exists():
        pytest.skip(f"{name}.npz is not in ZERONORM_DATA")
    table = load_dataset(name, missing="median")
    assert table.X.shape == (KNOWN[name].n_samples, KNOWN[name].n_features)
    assert name in known_names()


@pytest.mark.parametrize("name", BUNDLED)
def test_data_of_the_packages_need_no_network(name, monkeypatch):
    monkeypatch.setattr(openml.fetch, "__defaults__", ("http://127.0.0.1:9/",))
    table = load_dataset(name)
    assert (table.n_samples, table.n_features) == (BUNDLED[name].n_samples, BUNDLED[name].n_features)
    is_regression = name in ("diabetes", "fermentation-spectra")
    assert table.task == ("regression" if is_regression else "classification")
    assert table.target_name == BUNDLED[name].target
    backend = "scikit-learn" if BUNDLED[name].loader else "zeronorm"
    assert describe(name)["where"] == f"with {backend}"


# What was checked against the packages the data are from.
SHA256 = {
    "blood-cells.npz": "ade34222c51b8caed4edc4ae242c91dd65b5262888906e84e525a58b9b5fe86b",
    "coffee-spectra.npz": "055914ba065ee61c2962ea50f0adea6f5862863bb4b18494d1f71db27a08d832",
    "fermentation-spectra.npz": "645b80eba38ae8b00687fed6562b33a1060ed4adaaed683e40b0426362d364d4",
}
SHIPPED = [name for name, entry in BUNDLED.items() if entry.file]


def test_the_files_of_the_package_are_those_that_were_checked():
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in FILES.glob("*.npz")}
    assert found == SHA256
    assert {BUNDLED[name].file for name in SHIPPED} == set(SHA256)
    assert sum(file.stat().st_size for file in FILES.iterdir()) < 1_000_000


@pytest.mark.parametrize("name", SHIPPED)
def test_data_of_this_package_are_complete_and_named(name):
    table = load_dataset(name)
    assert np.isfinite(table.X).all()
    assert len(set(table.feature_names)) == table.n_features
    assert (table.n_features > 5 * table.n_samples) is (name != "blood-cells")  # spectra are wide
    assert (np.ptp(table.X, axis=0) > 0).mean() > 0.9


@pytest.mark.parametrize("name", SHIPPED)
def test_data_of_this_package_state_origin_and_licence(name):
    how, notice = describe(name)["how"], (FILES / "LICENCES.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in how or "MIT licence" in how
    assert f"## {BUNDLED[name].file}" in notice
    assert "Copyright (c) 2026 Pau Cabaneros" in notice
    assert "Copyright (c) 2017 F. Alexander Wolf" in notice


@pytest.mark.parametrize("name", KNOWN)
def test_every_entry_says_how_to_get_it(name, tmp_path, monkeypatch):
    monkeypatch.setenv("ZERONORM_CACHE", str(tmp_path))
    monkeypatch.delenv("ZERONORM_DATA", raising=False)
    with pytest.raises(DataError) as error:
        load_dataset(name, download=False)
    entry = KNOWN[name]
    for text in (entry.origin, f"{name}.npz", str(entry.n_samples), "ZERONORM_DATA", "breast-cancer"):
        assert text in str(error.value)
    assert describe(name)["where"] == ("download" if entry.openml else "not here")
