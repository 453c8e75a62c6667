"""Words of our own that the sources should not hold, each with the word of the field in its place.

``python tools/own_words.py`` counts them by word; ``tools/house.py`` adds them up.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from pathlib import Path

# The word of the field: the words that stand for it. A phrase is found in names too (own_size, GrossTarget).
WORDS = {
    "C, cost": ("price", "prices", "priced"),
    "classifier, SVM, model": ("machine", "machines"),
    "index, position": ("place", "places"),
    "configuration": ("arm", "arms"),
    "task": ("cell", "cells"),
    "fold": ("training part", "training parts", "test part", "test parts"),
    "message, text": ("told", "words", "say"),
    "active, kept, removed": ("alive", "staying", "fallen"),
    "score, scorer": ("judge", "judges", "judged", "judging"),
    "gradient": ("pull", "pulls"),
    "scale": ("spread", "spreads"),
    "midrange": ("middle",),
    "descending": ("falling",),
    "selected size": ("own size", "own sizes"),
    "pass": ("sweep", "sweeps", "sweeping", "reading", "readings"),
    "distribution": ("law", "laws"),
    "ReportData": ("facts",),
    "outlier in y": ("gross target", "gross targets"),
    "nonlinear, nonlinearity": ("curved", "warn of curves"),
    "absolute weight": ("strength", "strengths"),
    "backend": ("home", "homes"),
    "contiguous, in memory": ("gathered", "resident"),
    "candidates": ("roster", "rosters"),
    "epsilon": ("tube", "tubes"),
    "suppress_nested_warnings": ("quiet inside",),
}
# What these words mean in the field itself, or in plain English.
ALLOWED = re.compile(
    r"\b(?:in (?:place|(?:its|the|each other s|another s|other s) place)"
    r"|take(?:s|n)? (?:its |the )?place|one place|decimal places?"
    r"|(?:support|relevance) vector machines?|machine (?:learning|precision)|vector machine"
    r"|(?:this|other|another|one|slow|busy|same) machine|t cells?|blood cells?|in other words|cell contents"
    r"|(?:inverse )?power laws?|adjoint law|(?:label|tick|cell|text) middle|middle (?:x|name)|xdg cache home"
    r"|price bonett|bonett price)\b"
)
# Folders where a word has its plain meaning: the cells of a table, the reading of a file, the law of a learning curve,
# who is alive, the middle of a picture, a falling edge of an image.
_TABLES = ("app", "cli", "datasets", "design", "report", "result", "selection", "workflow")
PLAIN_IN = {
    "cell": _TABLES,
    "cells": _TABLES,
    "reading": ("datasets", "design", "execution", "result", "workflow"),
    "law": ("evaluation", "report"),
    "laws": ("evaluation",),
    "alive": ("execution", "selection", "workflow"),
    "middle": ("report",),
    "home": ("datasets",),
    "falling": ("selection", "transformers"),
}
NAMES_ONLY = {"told", "words", "say"}  # plain English in a sentence
_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_TEXTS = {"STRING", "COMMENT", "FSTRING_MIDDLE"}


def plain(text: str) -> str:
    """The words of a name or a text in small letters: "GrossTarget" and "gross_target" are "gross target"."""
    return ALLOWED.sub(" ", " ".join(piece.lower() for piece in _PIECES.findall(text)))


def own_words(source: str, folder: str = "") -> tuple[Counter[str], Counter[str]]:
    """How often each word of our own is in the names of a source, and in its comments and strings."""
    names: list[str] = []
    texts: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            names.append(plain(token.string))
        elif tokenize.tok_name[token.type] in _TEXTS:
            texts.append(plain(token.string))
    words = [word for group in WORDS.values() for word in group if folder not in PLAIN_IN.get(word, ())]
    in_texts = [word for word in words if word not in NAMES_ONLY]
    return _counted(words, " | ".join(names)), _counted(in_texts, " | ".join(texts))


def _counted(words: list[str], text: str) -> Counter[str]:
    return Counter(re.findall(rf"\b(?:{'|'.join(sorted(words, key=len, reverse=True))})\b", text))


def own_words_of(files: list[Path], package: Path) -> tuple[Counter[str], Counter[str]]:
    """The same for all files of a package."""
    names: Counter[str] = Counter()
    texts: Counter[str] = Counter()
    for file in files:
        in_names, in_texts = own_words(file.read_text(encoding="utf-8"), file.relative_to(package).parts[0])
        names += in_names
        texts += in_texts
    return names, texts


if __name__ == "__main__":
    package = Path(__file__).parents[1] / "src" / "zeronorm"
    names, texts = own_words_of(sorted(package.rglob("*.py")), package)
    for instead, words in WORDS.items():
        counts = ", ".join(f"{word} {names[word]} + {texts[word]}" for word in words)
        print(f"{instead}: {counts}")
