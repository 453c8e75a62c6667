"""The result of a run as plain values, and its files.

``record`` holds the values, ``plain`` converts them for JSON and Parquet, ``files`` writes and reads them, ``folder``
manages the output folder, ``models`` are saved predictors, ``provenance`` records how a run was made, and ``sentences``
describes the result in words.
"""

from zeronorm.result._provenance import Clock, provenance

__all__ = ["Clock", "provenance"]
