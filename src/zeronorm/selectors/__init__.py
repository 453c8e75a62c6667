"""Selection methods, one file each, under the headings of the literature."""
