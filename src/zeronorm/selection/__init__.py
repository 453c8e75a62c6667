"""The parts of a selection: the target, the problem passed to a method, and the path of subsets it returns."""

from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, Progress
from zeronorm.selection.target import KINDS, TASKS, Target

__all__ = ["KINDS", "TASKS", "Problem", "Progress", "SelectionPath", "Target"]
