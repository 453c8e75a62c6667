"""What is built and tested agrees with what ``pyproject.toml`` promises."""

from __future__ import annotations

import importlib.util
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

import zeronorm

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = {
    path.stem: path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")
}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def lowest(package):
    """The oldest version of a dependency that is promised to work."""
    found = [re.fullmatch(rf"{re.escape(package)}>=([\d.]+)", line) for line in PROJECT["dependencies"]]
    return next(match[1] for match in found if match)


@pytest.mark.parametrize("text", [WORKFLOWS["ci"], MAKEFILE], ids=["CI", "Makefile"])
def test_the_oldest_scikit_learn_is_the_one_that_is_tested(text):
    assert re.findall(r"scikit-learn==([\d.]+)\.\*", text) == [lowest("scikit-learn")]


def test_the_oldest_dependencies_are_the_ones_that_are_tested():
    promised = {tuple(line.split(">=")) for line in PROJECT["dependencies"]}
    assert set(re.findall(r"'([\w-]+)==([\d.]+)\.\*'", MAKEFILE)) == promised


def test_the_oldest_python_is_the_one_that_is_tested():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    for name, text in WORKFLOWS.items():
        versions = [tuple(map(int, v.split("."))) for v in re.findall(r'"(3\.\d+)"', text)]
        assert min(versions) == tuple(map(int, oldest.split("."))), name


def test_the_oldest_versions_are_tested_every_week():
    assert "cron:" in WORKFLOWS["weekly"]
    commands = set(re.findall(r"run: make (.+)", WORKFLOWS["weekly"]))
    assert {"test-oldest", "test-slow", "mutation", "release-check"} <= commands


def test_every_command_of_the_workflows_exists():
    targets = set(re.findall(r"^([\w./$()-]+):", MAKEFILE, re.MULTILINE))
    for text in WORKFLOWS.values():
        for line in re.findall(r"run: make (.+)", text):
            assert set(line.replace(".venv", "$(VENV)").split()) <= targets


def test_every_system_and_every_promised_python_is_tested():
    promised = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert promised == ["3.11", "3.12", "3.13", "3.14"]
    assert f"python: {promised}".replace("'", '"') in WORKFLOWS["ci"]
    assert "os: [ubuntu-latest, macos-latest, windows-latest]" in WORKFLOWS["ci"]


@pytest.mark.parametrize(("tool", "mirror"), [("ruff", "ruff-pre-commit"), ("mypy", "mirrors-mypy")])
def test_the_hooks_run_the_versions_of_the_development_extra(tool, mirror):
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    pinned = re.search(rf"{mirror}\n +rev: v([\d.]+)\n", hooks)[1]
    assert f"{tool}=={pinned}" in PROJECT["optional-dependencies"]["dev"]


def test_the_command_line_parser_has_one_limit():
    (extra,) = (line for line in PROJECT["optional-dependencies"]["demo"] if line.startswith("typer"))
    limit = extra.partition(",")[2]
    others = [MAKEFILE, *WORKFLOWS.values(), (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")]
    assert limit.startswith("<")
    assert {found for text in others for found in re.findall(r"typer([<>=][^'\", \n]*)", text)} <= {limit}


def test_the_version_is_written_once():
    assert "version" in PROJECT["dynamic"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [zeronorm.__version__]


def test_one_address_everywhere():
    addresses = PROJECT["urls"]
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} <= set(addresses)
    assert all(address.startswith(addresses["Repository"]) for address in addresses.values())
    assert f"repository-code: {addresses['Repository']}\n" in (ROOT / "CITATION.cff").read_text(
        encoding="utf-8"
    )


@pytest.fixture(scope="module")
def check_wheel():
    spec = importlib.util.spec_from_file_location("check_wheel", ROOT / "docs" / "check_wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built(project, folder):
    builder = pytest.importorskip("hatchling.builders.wheel").WheelBuilder(str(project))
    return Path(next(iter(builder.build(directory=str(folder), versions=["standard"]))))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("dist"))


def test_the_wheel_holds_all_sources_and_nothing_else(check_wheel, wheel):
    assert check_wheel.problems(wheel, ROOT / "src") == []


def test_the_wheel_of_the_library_has_no_studies(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "studies" in name]


def test_the_studies_are_a_wheel_of_their_own_with_the_same_version(check_wheel, wheel, tmp_path):
    studies = built(ROOT / "studies", tmp_path)
    assert check_wheel.problems(studies, ROOT / "studies" / "src") == []
    assert studies.name == wheel.name.replace("zeronorm-", "zeronorm_studies-")
    with zipfile.ZipFile(studies) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/entry_points.txt"))
        text = archive.read(name).decode()
    assert text.split("\n")[:2] == ["[zeronorm.commands]", "study = zeronorm_studies.command:add_to"]


def test_a_missing_and_a_foreign_file_are_noticed(check_wheel, wheel, tmp_path):
    other = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(other, "w") as changed:
        for name in whole.namelist():
            if name != "zeronorm/py.typed":
                changed.writestr(name, whole.read(name))
        changed.writestr("zeronorm/data.csv", "1,2")
    assert check_wheel.problems(other, ROOT / "src") == [
        "missing: zeronorm/py.typed",
        "does not belong there: zeronorm/data.csv",
    ]


def test_the_wheel_asks_for_what_the_project_promises(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    plain = {
        line
        for line in re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)
        if "extra ==" not in line
    }
    assert plain == set(PROJECT["dependencies"])
    assert f"Requires-Python: {PROJECT['requires-python']}" in metadata
    assert f"\nVersion: {zeronorm.__version__}\n" in metadata
