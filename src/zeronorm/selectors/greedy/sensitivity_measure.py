"""How much a trained function depends on each of its inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zeronorm.selectors.greedy.sensitive_models import SensitiveModel
from zeronorm.selectors.problem import Problem

FloatArray = NDArray[np.float64]

BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class Sensitivity:
    """The measure: of the output (eq. 6, by ``order`` and ``norm``) or of the training objective (eq. 10)."""

    criterion: str
    order: int
    norm: str

    def values(self, model: SensitiveModel, problem: Problem) -> FloatArray:
        """One value per column the model was trained on."""
        design = problem.design.take(model.columns)
        n_functions = problem.targets().shape[1]
        width = max(1, BLOCK_BYTES // (8 * problem.n_samples * n_functions))
        result = np.empty(design.n_features)
        for part, block in design.iter_blocks(width):
            if self.criterion == "objective":
                result[part] = self._of_objective(model, part, block)
            else:
                result[part] = self._of_output(model, part, block)
        return result

    def _of_output(self, model: SensitiveModel, part: slice, block: FloatArray) -> FloatArray:
        t = self.responses(model, part, block)
        if self.norm == "l1":
            return np.asarray(np.abs(t).mean(axis=0).sum(axis=1))
        return np.asarray(np.sqrt(np.square(t).mean(axis=0).sum(axis=1)))

    def responses(self, model: SensitiveModel, part: slice, block: FloatArray) -> FloatArray:
        """t of eq. 6: the answer of each function at each sample to each column."""
        if self.order == 1:
            return model.slopes(part, block)
        shift = block.mean(axis=0) - block
        if self.order == 0:
            return model.changes(part, block, shift)
        shift = shift[:, :, None]
        second = 0.5 * shift**2 * model.curvatures(part, block)
        return np.asarray(shift * model.slopes(part, block) + second)

    @staticmethod
    def _of_objective(model: SensitiveModel, part: slice, block: FloatArray) -> FloatArray:
        slopes = model.slopes(part, block)
        return np.asarray(np.abs(np.einsum("kc,kj,kjc->j", model.loss_slopes(), block, slopes)))
