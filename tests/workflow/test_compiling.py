"""A first run says that it compiles; later runs do not."""

from __future__ import annotations

import textwrap

from zeronorm.selection._problem import RunBar
from zeronorm.workflow._compiling import NOTICE, compilation_shown


class Display:
    """Records what a progress bar shows."""

    def __init__(self):
        self.lines, self.texts, self.console = [], [], self

    def print(self, text, **_options):
        self.lines.append(text)

    def update(self, _identifier, **changes):
        self.texts.append(changes["description"])


def kernels_of(tmp_path, monkeypatch):
    """Two loops that no cache holds, one of which calls the other."""
    source = """
        from zeronorm._jit import kernel

        @kernel
        def one(x):
            return x + 1.0

        @kernel
        def two(x):
            return one(x) + 1.0
    """
    (tmp_path / "loops_of_a_test.py").write_text(textwrap.dedent(source))
    monkeypatch.syspath_prepend(tmp_path)
    import loops_of_a_test

    return loops_of_a_test


def test_the_first_loop_prints_one_line_and_each_is_counted(tmp_path, monkeypatch):
    loops, display = kernels_of(tmp_path, monkeypatch), Display()
    with compilation_shown(RunBar(display, 0)):
        assert loops.two(1.0) == 3.0
        assert display.lines == [NOTICE]
        assert display.texts == ["compiling loop 1", "compiling loop 2"]
        loops.two(2.0)
    assert len(display.texts) == 2
    loops.two(1)  # other types, after the run
    assert len(display.texts) == 2


def test_without_a_display_nothing_listens():
    from numba.core import event

    before = {name: len(found) for name, found in event._registered.items()}
    with compilation_shown(RunBar(None, None)):
        assert {name: len(found) for name, found in event._registered.items()} == before
