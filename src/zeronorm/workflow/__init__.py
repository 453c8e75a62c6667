"""Select and compare as one call each, for Python and for the command line.

``options`` declares the options of a run (``kinds`` says what an option is), ``run`` holds ``select`` and ``compare``,
``job`` does their work, in the ``places`` that the user names; ``inputs`` turns data into a table, ``procedures`` names
into what is fitted, ``training`` fits it on training parts, ``chance`` says what no information would give,
``measured`` what the records say, ``checks`` what is suspicious in the data; ``features`` and ``models`` describe the
final set, and ``result`` draws and writes it all.
"""
