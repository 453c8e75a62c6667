"""Data sets of openml.org, downloaded once, checked against the published checksum, kept in the cache."""

from __future__ import annotations

import hashlib
import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from zeronorm.datasets.errors import DataError, shown

API = "https://www.openml.org/api/v1/json/data/"
TIMEOUT_S = 60


def cache_folder() -> Path:
    """Where downloads are kept: ``ZERONORM_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("ZERONORM_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache") / "zeronorm"


def fetch(identifier: int, file: Path, api: str = API) -> str:
    """Download the ARFF file of an OpenML data set to ``file``; return the name of its target column."""
    description = json.loads(_download(f"{api}{identifier}"))["data_set_description"]
    content = _download(description["url"])
    checksum = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if checksum != description["md5_checksum"]:
        raise DataError(
            f"The download of OpenML data set {identifier} is damaged: its MD5 is {checksum}, "
            f"{description['md5_checksum']} was published. Try again."
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}.part")
    partial.write_bytes(content)
    partial.replace(file)
    return str(description.get("default_target_attribute", ""))


def _download(address: str) -> Any:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            return answer.read()
    except (urllib.error.URLError, TimeoutError, OSError) as error:
        raise DataError(
            f"{shown(address)} cannot be downloaded: {error}. Check the network, or put the file into the folder "
            "that the environment variable ZERONORM_DATA names."
        ) from error
