"""Damaged models and results: loaded as they are meant, or refused with a message; never another exception."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

import zeronorm
from fuzz.attempt import CLEAR_REFUSAL, RIGHT, WRONG, classified_error
from fuzz.damage import damages
from fuzz.inputs import ANY, clean_data
from fuzz.runner import table
from zeronorm.result._models import GaussianModel, LinearModel
from zeronorm.result._record import schema
from zeronorm.result._schema import KEYWORDS, WITHOUT_EFFECT, Mismatch, check, described

QUICK_EVERY = 80  # every eightieth damage of the files of a whole run, which take a report each


def _model(kind, task="classification", n_classes=2):
    rng = np.random.default_rng(0)
    rows = n_classes * (n_classes - 1) // 2 if task == "classification" else 1
    common = {
        "task": task, "target": "y", "features": ["a", "b", "c"], "mean": [0.5, 1.0, -1.0],
        "scale": [1.0, 2.0, 0.5], "weights": rng.normal(size=(rows, 3)).tolist(),
        "intercepts": rng.normal(size=rows).tolist(), "scheme": "single" if rows == 1 else "pairs",
        "classes": list("pqr")[:n_classes] if task == "classification" else [], "fill": [0.0, 1.0, 2.0],
    }  # fmt: skip
    if kind == "linear":
        return LinearModel(**common)
    support = rng.normal(size=(5, 3)).tolist()
    return GaussianModel(
        **(common | {"weights": rng.normal(size=(rows, 5)).tolist(), "support": support, "gamma": 0.3})
    )


MODELS = {
    "linear": _model("linear"),
    "Gaussian": _model("gaussian"),
    "linear pairs": _model("linear", n_classes=3),
    "Gaussian regression": _model("gaussian", "regression"),
}


def _attempt_model(content, folder):
    (folder / "model.json").write_text(json.dumps(content))
    try:
        model = LinearModel.load(folder)
        predicted = model.predict(np.ones((4, 3)))
    except Exception as error:
        return classified_error(error, ANY)
    known = model.classes if model.classes else None
    is_right = (
        all(label in known for label in predicted.tolist()) if known else bool(np.isfinite(predicted).all())
    )
    return (RIGHT if is_right else WRONG), str(predicted)


def _report(cases):
    print(f"\n{len(cases)} damaged files: {table(cases)}")
    bad = [f"{name}: {kind}: {seen}" for name, kind, seen in cases if kind not in (RIGHT, CLEAR_REFUSAL)]
    assert not bad, "\n".join(bad[:20])


@pytest.mark.parametrize("name", MODELS)
def test_damaged_models(name, tmp_path):
    MODELS[name].save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    assert LinearModel.load(tmp_path) == MODELS[name]
    cases = [(what, *_attempt_model(damaged, tmp_path)) for what, damaged in damages(content)]
    _report(cases)
    lost = [what for what, kind, _ in cases if what.endswith((" removed", "unknown field")) and kind == RIGHT]
    assert not lost, lost


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("Gaussian", {"gamma": ...}, "the field 'gamma' is missing"),
        ("Gaussian", {"support": ...}, "the field 'support' is missing"),
        ("linear", {"classes": ["p", "q", "r"]}, r"cannot be that of the classes \[\"p\", \"q\", \"r\"\]"),
        ("linear", {"task": "counting"}, "'task' must be \"classification\" or \"regression\", not"),
        ("linear", {"task": "regression"}, "a model of regression must have no classes"),
        ("linear", {"fill": ...}, "the field 'fill' is missing"),
        ("linear pairs", {"scheme": "classes", "intercepts": [0.0] * 2}, "'intercepts' has 2 values|has 3 values"),
        ("linear", {"features": ["a", "b", "b"]}, "'features' must have distinct values"),
    ],
)  # fmt: skip
def test_what_was_loaded_without_a_message(name, change, message, tmp_path):
    MODELS[name].save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text()) | change
    (tmp_path / "model.json").write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))
    with pytest.raises(ValueError, match=message):
        LinearModel.load(tmp_path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, "9" * 5000, '"\udcff"'])
def test_files_that_no_parser_takes(text, tmp_path):
    (tmp_path / "model.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match="is not a model of zeronorm"):
        LinearModel.load(tmp_path)
    with pytest.raises(ValueError, match=r"cannot be read|is damaged"):
        zeronorm.Result.read(tmp_path / "model.json")


# -- results --


@pytest.fixture(scope="module")
def run_folders(tmp_path_factory):
    X, y = clean_data(False, n=36)
    folder = tmp_path_factory.mktemp("runs")
    options = {"features": 2, "cv": 3, "permutations": 0}
    zeronorm.select(X, y, method="fisher", out=folder / "selection", save_model=True, **options)
    zeronorm.compare(X, y, methods=["fisher", "golub"], out=folder / "comparison", **options)
    return folder


def _attempt_report(folder):
    try:
        result = zeronorm.Result.load(folder)
        repr(result), result.headline, result._repr_html_()
        result.report(folder, force=True)
    except Exception as error:
        return classified_error(error, ANY)
    return RIGHT, ""


def _all_of(run_folders, kind, folder, every, first=0):
    shutil.copytree(run_folders / kind, folder, dirs_exist_ok=True)
    content = json.loads((folder / "result.json").read_text())
    del content["provenance"]["packages"]["numba"]  # in a message it would count as the text of a library
    assert _attempt_report(folder) == (RIGHT, "")
    cases = []
    for what, damaged in list(damages(content))[first::every]:
        (folder / "result.json").write_text(json.dumps(damaged))
        cases.append((what, *_attempt_report(folder)))
    _report(cases)


@pytest.mark.parametrize("kind", ["selection", "comparison"])
def test_reports_of_damaged_results(kind, run_folders, tmp_path):
    _all_of(run_folders, kind, tmp_path, QUICK_EVERY)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("kind", ["selection", "comparison"])
def test_reports_of_all_damaged_results(kind, part, run_folders, tmp_path):
    _all_of(run_folders, kind, tmp_path, 4, part)


# -- the validator against another one --


def _uses(schema_part):
    if isinstance(schema_part, dict):
        for key, value in schema_part.items():
            named = key in ("properties", "$defs")
            yield from (k for v in value.values() for k in _uses(v)) if named else (key, *_uses(value))
    elif isinstance(schema_part, list):
        for item in schema_part:
            yield from _uses(item)


@pytest.mark.parametrize("kind", ["model", "result"])
def test_every_keyword_of_a_description_is_checked(kind):
    assert set(_uses(described(kind))) <= KEYWORDS | WITHOUT_EFFECT
    jsonschema.Draft202012Validator.check_schema(described(kind))


def _accepts(content, description):
    try:
        check(content, description)
    except Mismatch:
        return False
    return True


def test_the_validator_accepts_what_another_one_does(run_folders):
    content = json.loads((run_folders / "selection" / "result.json").read_text())
    theirs = jsonschema.Draft202012Validator(schema())
    differ = [
        what
        for what, damaged in list(damages(content))[::3]
        if _accepts(damaged, schema()) != theirs.is_valid(damaged)
        and not any(huge in what for huge in ("1e400", "NaN", "infinity"))  # numbers of theirs, not of ours
    ]
    assert not differ, differ[:20]


def test_arrays_are_tied_by_their_axes(tmp_path):
    model = replace(MODELS["linear"], mean=[0.0, 1.0])
    model.save(tmp_path / "model.json")
    with pytest.raises(ValueError, match=r"'mean' has 2 values, but 'features' has 3; their lengths must be"):
        LinearModel.load(tmp_path)
