"""Select and compare as one call each, for Python and for the command line.

``run`` holds ``select`` and ``compare``; ``inputs`` turns data into a table, ``procedures`` names into what is
fitted, ``chance`` says what no information would give, ``measured`` what the records say, ``checks`` what is
suspicious in the data; ``features`` and ``models`` describe the final set; ``result`` and
``files`` hold it all and write it down.
"""

from contextvars import ContextVar

# The command in the words of whoever called, for the provenance of a result; the command line sets it.
COMMAND: ContextVar[str | None] = ContextVar("zeronorm_command", default=None)
