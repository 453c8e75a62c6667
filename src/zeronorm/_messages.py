"""Messages that mention options of a run, as parameters of Python or as flags of the command line.

An option is mentioned with ``parameter`` or ``setting`` inside a text, and the text becomes a ``Message`` or the
message of an ``OptionError``. Both name parameters of Python; ``rendered`` names the options as another interface
does, without searching the text for names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

START, BETWEEN, END = "\x02", "\x04", "\x03"  # names from data are quoted, so they cannot hold these
MENTION = re.compile(f"{START}([^{END}]*){END}")


@dataclass(frozen=True)
class Mention:
    """An option in a message.

    Parameters
    ----------
    form : "subject" (The 'cv' parameter), "object" (the 'cv' parameter), "name" (parameter 'cv'), "the name", or a
        verb in front of a setting ("set cv=3"), which may be empty.
    name : name of the parameter in Python.
    value : the value to set, as Python writes it.
    text : the value as text.
    """

    form: str
    name: str
    value: str = ""
    text: str = ""

    def in_python(self) -> str:
        """The mention as a parameter of Python."""
        if self.value:
            return f"{self.form} {self.name}={self.value}".lstrip()
        forms = {"subject": "The {!r} parameter", "object": "the {!r} parameter", "name": "parameter {!r}"}
        return forms.get(self.form, "the parameter {!r}").format(self.name)

    def marked(self) -> str:
        """The mention as it stands in a text that becomes a message."""
        return START + BETWEEN.join((self.form, self.name, self.value, self.text)) + END


Naming = Callable[[Mention], str]


def parameter(name: str, form: str = "name") -> str:
    """The name of an option inside a text."""
    return Mention(form, name).marked()


def setting(name: str, value: Any, verb: str = "") -> str:
    """An option with a value inside a text, after a verb such as "set"."""
    from zeronorm._types import written

    return Mention(verb, name, written(value), str(value)).marked()


class Message(str):
    """A text that mentions options, as parameters of Python.

    Parameters
    ----------
    marked : the text with the marks of ``parameter`` and ``setting``.
    """

    marked: str

    def __new__(cls, marked: str) -> Message:
        message = super().__new__(cls, _filled(marked, Mention.in_python))
        message.marked = marked
        return message


def rendered(text: str, naming: Naming) -> str:
    """The text with its mentions as ``naming`` gives them; plain text as it is."""
    return _filled(marked_text(text), naming)


def marked_text(text: str) -> str:
    """The text with the marks of its mentions."""
    return text.marked if isinstance(text, Message) else text


def _filled(marked: str, naming: Naming) -> str:
    return MENTION.sub(lambda found: naming(Mention(*found[1].split(BETWEEN))), marked)


class OptionError(ValueError):
    """An option that cannot be used, or an error whose remedy is an option.

    Parameters
    ----------
    text : what is wrong and what to do.
    parameter : name of the option that is the subject of the text, if one is.
    """

    def __init__(self, text: str, parameter: str | None = None) -> None:
        subject = "" if parameter is None else f"{Mention('subject', parameter).marked()} "
        self.message = Message(subject + text)
        self.parameter = parameter
        super().__init__(str(self.message))
