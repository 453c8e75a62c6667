"""One file per command; heavy imports happen inside the commands, so that --help stays quick."""
