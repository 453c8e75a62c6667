"""Messages that mention options of a run, as parameters of Python or as flags of the command line.

``parameter`` and ``setting`` mark an option in a text; ``Message`` and ``OptionError`` take the marked text and show
the options as parameters of Python. ``rendered`` shows them as another interface names them, for example as flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

START, BETWEEN, END = (
    "\x02",
    "\x04",
    "\x03",
)  # control characters, which names from data cannot hold because they are quoted
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
        """The mention with its marks, for a text that becomes a message."""
        return START + BETWEEN.join((self.form, self.name, self.value, self.text)) + END


Naming = Callable[[Mention], str]


def parameter(name: str, form: str = "name") -> str:
    """A marked option, for use inside the text of a message."""
    return Mention(form, name).marked()


def setting(name: str, value: Any, verb: str = "") -> str:
    """A marked option with a value, after a verb such as "set", for use inside the text of a message."""
    from zeronorm._types import written

    return Mention(verb, name, written(value), str(value)).marked()


class Message(str):
    """A text that mentions options, shown as parameters of Python.

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
    """The text with its options named by ``naming``; text without marks is returned as it is."""
    return _filled(marked_text(text), naming)


def marked_text(text: str) -> str:
    """The text with the marks of its options."""
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
