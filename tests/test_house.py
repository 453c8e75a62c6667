"""The script that measures the package counts right, on small sources made for it."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ("house", "call_trace", "own_words", "task_branches")


@pytest.fixture(scope="module")
def house():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tools"))
        import house

        yield house
    for name in TOOLS:
        sys.modules.pop(name, None)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Two modules that call each other, three functions deep."""
    folder = tmp_path / "two_modules"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "first.py").write_text(
        "import two_modules.second as s\ndef f(n): return s.g(n)\ndef h(n): return sorted([n])\n"
    )
    (folder / "second.py").write_text(
        "import two_modules.first as f\ndef g(n): return f.h(n)\ndef unused(): pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import two_modules.first

    yield folder, two_modules.first
    for name in [name for name in sys.modules if name.startswith("two_modules")]:
        sys.modules.pop(name)


def test_a_trace_holds_the_functions_of_the_package_in_the_order_they_were_entered(house, package):
    folder, first = package
    found = house.trace(lambda: [first.f(1), first.f(2)], folder)
    assert found.functions == (("first.py", "f"), ("second.py", "g"), ("first.py", "h"))
    assert found.depth == 3
    assert found.files == {"first.py", "second.py"}
    assert found.mutual == {frozenset({"first.py", "second.py"})}


def test_a_call_that_raises_leaves_no_profile_behind(house, package):
    folder, first = package
    with pytest.raises(TypeError):
        house.trace(lambda: first.f(1, 2), folder)
    assert sys.getprofile() is None


def test_a_trace_of_another_copy_of_the_package_is_an_error(house, package, tmp_path):
    _, first = package
    with pytest.raises(ValueError, match="another copy"):
        house.trace(lambda: first.f(1), tmp_path / "elsewhere")


def test_numeric_constants_are_names_in_capitals_with_numbers_alone(house):
    source = """
        A, _B = 1, -2.5
        TABLE: dict[int, float] = {1: 2.0}
        BYTES = 1 << 20
        GOLDEN = np.uint64(7)
        TEXT, FLAG, MIXED = "a", True, ("a", 1)
        DERIVED = OTHER
        small = 3
        def f():
            LOCAL = 4
    """
    found = house.numeric_constants(ast.parse(textwrap.dedent(source)))
    assert found == ["A", "_B", "TABLE", "BYTES", "GOLDEN"]


def test_classes_that_train_a_linear_model_have_a_method_of_their_own(house):
    source = """
        class Interface(Protocol):
            def train(self): ...
        class Linear:
            def train(self): ...
        class Heir(Linear): ...
        class KernelOne:
            def train(self): ...
    """
    assert house.linear_trainers([ast.parse(textwrap.dedent(source))]) == ["Linear"]


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ('task == "regression"', 1),
        ('task in ("binary", "multiclass")', 1),
        ('table["regression"]', 1),
        ('table.get("binary")', 1),
        ('{"binary": 1, "regression": 2}', 1),
        ('"regression" if real else "classification"', 1),
        ('a if task == "regression" else b', 1),
        ("isinstance(target, Binary)", 1),
        ("isinstance(target, int)", 0),
        ('x: Literal["classification", "regression"]', 0),
        ('kernel == "linear"', 0),
    ],
)
def test_branches_on_the_name_of_a_task(house, line, count):
    assert len(house.task_branches(ast.parse(line))) == count


def test_words_of_our_own_are_found_in_names_and_in_text(house):
    own_words = sys.modules["own_words"].own_words
    source = 'class GrossTarget:\n    own_size = 1  # price of a machine\n    in_place = "support vector machine"\n'
    names, texts = own_words(source)
    assert names == {"gross target": 1, "own size": 1}
    assert texts == {"price": 1, "machine": 1}
    assert own_words("cell = 1") == ({"cell": 1}, {})
    assert own_words("cell = 1", "datasets") == ({}, {})


def test_a_figure_says_whether_it_is_kept(house):
    assert house.Figure("a / b", (3, 1_000), (3, 999)).row == ["a / b", "3 / 1,000", "≤ 3 / 999", "no"]
    assert house.Figure("levels", (3, 15), (3,)).row[-1] == "yes"
    assert house.Figure("only shown", (3,)).row[-2:] == ["–", ""]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the list of committed files")
def test_a_new_method_is_named_in_the_index_and_in_its_own_file(house):
    files = house.files_of_a_method()
    assert files[0] == "its own"
    assert files[1:] == ("src/zeronorm/__init__.pyi",)
    assert "tests/test_house.py" not in files


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the list of committed files")
def test_the_figures_of_the_sources_are_all_counted(house, monkeypatch):
    file = house.PACKAGE / "design" / "_base.py"
    assert {file, house.PACKAGE / "registry.py"} < set(house.sources())
    monkeypatch.setattr(house, "sources", lambda: [file])
    figures = {figure.name: figure for figure in house.source_figures()}
    assert figures["members of Design: all / public"].now[1] >= 10
    assert figures["lines of the package"].now == (len(file.read_text(encoding="utf-8").splitlines()),)
    assert all(len(figure.now) == len(figure.wanted) for figure in figures.values())


def test_the_vocabulary_of_contributors_has_every_word_that_is_counted(house):
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, table = guide.partition("## Vocabulary")
    rows = [row.split("|") for row in table.partition("\n## ")[0].splitlines() if row.count("|") == 4]
    avoided = {word for row in rows for word in row[3].strip().split(", ")}
    for instead, words in sys.modules["own_words"].WORDS.items():
        assert avoided & set(words), (
            f"the vocabulary does not say what to write instead of {words[0]!r}: {instead}"
        )


def test_the_guide_for_contributors_is_short_and_names_files_that_exist():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(guide.encode()) <= 8_192
    paths = re.findall(r"`([\w./<>]+/[\w<>]+\.(?:py|rst|csv))`", guide)
    assert len(paths) >= 8
    for path in paths:
        named = re.split("_?<", path)[0]  # up to the name that the reader chooses
        assert any((folder / named).exists() for folder in (ROOT, ROOT / "src" / "zeronorm")), path
    commands = set(re.findall(r"`make ([\w-]+)`", guide))
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert commands <= targets


def test_figures_that_were_reached_are_kept(house):
    from zeronorm import ZeroNormSVM

    gram, fit = house.gram_figure(), house.fit_figure(ZeroNormSVM(), (20, 150, 15))
    assert gram.now[0] <= gram.wanted[0]
    assert fit.now[2] <= fit.wanted[2]
