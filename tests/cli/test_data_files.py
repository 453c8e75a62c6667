"""Every file of the corpus as input of the command: a result, or an error of one sentence with a remedy."""

from __future__ import annotations

import re

import pytest

from datasets.corpus import BAD, DAMAGED, FOREIGN, GENES, GOOD, JOINS, write
from datasets.corpus_numbers import BAD_NUMBERS, NUMBERS
from zeronorm.cli._main import run
from zeronorm.cli.options import FLAGS

ALL_GOOD, ALL_BAD = GOOD | NUMBERS, BAD | BAD_NUMBERS
CHEAP = ["--method", "fisher", "--cv", "2", "--permutations", "0", "--jobs", "1", "--out", "out"]


def check_plain(text):
    """Check that a message has no text of other packages, of Python, or of paths."""
    assert not any(word in text.lower() for word in (*FOREIGN, "not a problem of the input"))
    assert not re.search(r"\b(None|nan|NaN)\b", text)
    assert not re.search(r"\b1 (rows|columns|samples|names|numbers|features)\b", text)
    assert not re.search(r"\b1 of (the )?[\w ]*(are|have|were)\b", text)
    assert not re.search(r"[a-z'][.?] [a-z]", text), "a sentence begins with a small letter"
    assert not re.search(r"\w='|=True", text), "a parameter of Python instead of an option"


# What to do: a verb in the imperative, an option of the command, or a question.
VERBS = "Add|Ask|Check|Choose|Copy|Correct|Extract|Fill|Give|Keep|Leave|Merge|Name|Open|Pass|Put|Rename|Save|Set|Use"
REMEDY = re.compile(rf"\b({VERBS}|Write)\b|\bmust be\b|Did you mean")


def with_flags(message):
    """A message of Python with the flags of the command line, found in its text without the marks of the program."""
    names = "|".join(sorted(FLAGS, key=len, reverse=True))
    message = re.sub(rf"[Tt]he '({names})' parameter", lambda m: FLAGS[m[1]], message)
    message = re.sub(rf"parameter '({names})'", lambda m: FLAGS[m[1]], message)
    message = re.sub(
        rf"([Ss])et ({names})=True", lambda m: f"{'Pass' if m[1] == 'S' else 'pass'} {FLAGS[m[2]]}", message
    )
    message = re.sub(rf"\b({names})=True", lambda m: FLAGS[m[1]], message)
    return re.sub(rf"\b({names})='?([\w-]+)'?", lambda m: f"{FLAGS[m[1]]} {m[2]}", message)


def check_refusal(capsys, message):
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("zeronorm: ")
    assert printed.err.count("\n") == 1
    text = printed.err.removeprefix("zeronorm: ").strip()
    assert text.endswith((".", "?"))
    assert with_flags(message).lower() in text.lower()
    assert REMEDY.search(text), text
    check_plain(text)


def flags(options):
    """Options of the reader as they are written on the command line."""
    found = []
    for name, value in options.items():
        flag = "--keep" if name == "with_columns" else f"--{name.replace('_', '-')}"
        values = value if isinstance(value, tuple) else [value]
        found += [flag] if value is True else [part for one in values for part in (flag, str(one))]
    return found


@pytest.mark.parametrize("case", ALL_GOOD)
def test_an_answer(case, tmp_path, monkeypatch, capsys):
    good = ALL_GOOD[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path / good.name, good.content)
    options = flags(good.options)
    if good.samples is not None:
        write(tmp_path / "samples.csv", good.samples)
        options += ["--samples", "samples.csv"]
    size = str(min(2, len(good.names)))
    assert run(["select", good.name, "--target", "y", "--features", size, *CHEAP, *options]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert f"{size} of {len(good.names)} feature" in printed.out
    assert "report: out" in printed.out
    check_plain("\n".join(line for line in printed.out.splitlines() if line[:1] not in "┏┃┡│└"))


@pytest.mark.parametrize("case", ALL_BAD)
def test_a_sentence_with_a_remedy(case, tmp_path, monkeypatch, capsys):
    name, content, message = ALL_BAD[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path / name, content)
    assert run(["select", name, "--target", "y", "--features", "2", *CHEAP]) == 2
    check_refusal(capsys, message)


@pytest.mark.parametrize("case", JOINS)
def test_a_sentence_about_two_tables(case, tmp_path, monkeypatch, capsys):
    samples, options, message = JOINS[case]
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "d.csv", GENES)
    write(tmp_path / "samples.csv", samples)
    joined = [*flags(options), "--samples", "samples.csv"]
    assert run(["select", "d.csv", "--target", "y", "--features", "2", *CHEAP, *joined]) == 2
    check_refusal(capsys, message)


@pytest.mark.parametrize("case", DAMAGED)
def test_a_sentence_about_a_bad_file(case, tmp_path, monkeypatch, capsys):
    name, make, message = DAMAGED[case]
    monkeypatch.chdir(tmp_path)
    if make is not None:
        make(tmp_path / name)
    assert run(["select", name, "--target", "y", "--features", "1", *CHEAP]) == 2
    check_refusal(capsys, message)
