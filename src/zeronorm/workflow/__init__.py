"""Select and compare as one call each, for Python and for the command line.

``run`` holds ``select`` and ``compare``, ``job`` does their work, in the ``places`` that the user names; ``inputs``
turns data into a table, ``procedures`` names into what is fitted, ``training`` fits it on training parts, ``chance``
says what no information would give, ``measured`` what the records say, ``checks`` what is suspicious in the data;
``features`` and ``models`` describe the final set; ``result`` and ``files`` hold it all and write it down.
"""

from collections.abc import Callable
from contextvars import ContextVar

# The command in the words of whoever called, for the provenance of a result; the command line sets it.
COMMAND: ContextVar[str | None] = ContextVar("zeronorm_command", default=None)
# How a report says a note or a warning that names parameters; the command line puts its options in their place.
WORDING: ContextVar[Callable[[str], str]] = ContextVar("zeronorm_wording", default=str)
