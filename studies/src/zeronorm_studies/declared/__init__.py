"""One file per study."""
