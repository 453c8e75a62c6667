"""What a run found, as plain values, and its files.

``record`` holds the values, ``plain`` turns them into what JSON and Parquet can hold, ``files`` writes and reads them,
``folder`` is where a run writes, ``models`` are saved predictors, ``provenance`` tells how a run was made, and
``sentences`` says what was found.
"""

from zeronorm.result._provenance import Clock, provenance

__all__ = ["Clock", "provenance"]
