"""The conda recipe and the container image install what ``pyproject.toml`` names."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import zeronorm

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "packaging/conda/meta.yaml").read_text(encoding="utf-8")
IMAGE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
NAMES_OF_CONDA = {"matplotlib": "matplotlib-base"}  # the library without its windows


def section(name: str) -> dict[str, str]:
    """The packages with their versions in one list of the recipe."""
    lines = re.search(rf"^  {name}:\n((?:    - .*\n)+)", RECIPE, re.M)
    assert lines is not None
    entries = [line.strip("- ").split(" ", 1) for line in lines[1].splitlines()]
    return {entry[0].strip(): entry[1] if len(entry) > 1 else "" for entry in entries}


def promised() -> dict[str, str]:
    """The dependencies of the library and of its command line, as conda names them."""
    extras = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *extras["app"], *extras["demo"]]
    found = {}
    for line in lines:
        match = re.match(r"([\w-]+)((?:[<>=].*?)?)(?:;.*)?$", line)
        if match and "[" not in line:
            found[NAMES_OF_CONDA.get(match[1], match[1])] = match[2].strip()
    return found


def test_the_recipe_has_the_dependencies_of_the_package():
    run = section("run")
    assert run.pop("python") == PROJECT["requires-python"]
    assert run == promised()


def test_the_recipe_builds_the_present_version_with_the_declared_backend():
    assert f'"{zeronorm.__version__}"' in RECIPE
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    host = section("host")
    assert [f"hatchling{host['hatchling']}"] == build
    assert f"zeronorm = {PROJECT['scripts']['zeronorm']}" in RECIPE


def test_the_license_files_of_the_recipe_are_those_of_the_package():
    for file in PROJECT["license-files"]:
        assert f"- {file}" in RECIPE
        assert (ROOT / file).is_file()


def test_everything_that_the_image_copies_is_there_and_reaches_it():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [part for line in re.findall(r"^COPY (.+) \S+$", IMAGE, re.M) for part in line.split()]
    for part in copied:
        assert (ROOT / part).exists(), part
        assert f"!{part}" in ignored, part


def test_the_image_runs_the_command_on_a_supported_python():
    version = re.search(r"^FROM python:(3\.\d+)-slim$", IMAGE, re.M)
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]
    extra = re.search(r'pip install .*"\.\[(\w+)\]"', IMAGE)
    assert extra is not None
    assert extra[1] in PROJECT["optional-dependencies"]
    assert 'ENTRYPOINT ["zeronorm"]' in IMAGE
    assert "zeronorm" in PROJECT["scripts"]
