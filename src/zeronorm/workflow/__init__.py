"""Select and compare as one call each: what the command line does, for Python too."""
