"""Fast classifiers for thousands of small fits, one file each."""
