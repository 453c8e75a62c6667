"""Keep neighbouring positions of an ordered axis from being selected together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from zeronorm.selectors.path import SelectionPath


def keep_apart(path: SelectionPath, min_separation: int, useless: NDArray[np.bool_]) -> SelectionPath:
    """Move every feature that is less than ``min_separation`` positions from a better one to the end.

    "Better" counts only features that were kept themselves; ``useless`` ones (constant columns) never are.
    The path's own size is the number kept.
    """
    blocked = useless.copy()
    kept, moved = [], []
    for feature in path.order:
        if blocked[feature]:
            moved.append(feature)
            continue
        kept.append(feature)
        blocked[max(0, feature - min_separation + 1) : feature + min_separation] = True
    return replace(path, order=np.asarray(kept + moved, dtype=np.intp), own_size=len(kept))
