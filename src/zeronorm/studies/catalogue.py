"""The studies by name; a study is imported only when it is asked for."""

from __future__ import annotations

import difflib
import importlib

from zeronorm.studies.study import Study, StudyError

NAMES: tuple[str, ...] = (
    "weston2003-linear",
    "weston2000-nonlinear",
    "huang2008-accuracy",
    "huang2008-time",
    "huang2008-dual",
    "weston2003-colon",
    "weston2003-lymphoma",
    "weston2003-yeast",
    "weston2003-polynomial",
    "lal2006-claims",
    "gadat2007-iris",
    "gadat2007-synthetic",
    "gadat2007-spam",
    "gadat2007-leukemia",
    "gadat2007-challenge",
    "gadat2007-usps",
    "gadat2007-faces",
    "guyon2003-spectra",
    "systematic",
)


def get_study(name: str) -> Study:
    """The study declared under ``name``."""
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, n=3)
        hint = f"Did you mean {', '.join(close)}?" if close else "`zeronorm study --list` lists them."
        raise StudyError(f"There is no study named {name!r}. {hint}")
    module = importlib.import_module(f"zeronorm.studies.declared.{name.replace('-', '_')}")
    study = module.STUDY
    assert isinstance(study, Study)
    return study


def all_studies() -> list[Study]:
    """All studies, in the order of the catalogue."""
    return [get_study(name) for name in NAMES]
