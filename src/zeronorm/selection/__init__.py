"""What a selection is: the target, the problem that a method is given, and the path of subsets that it returns."""

from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, Progress
from zeronorm.selection.target import KINDS, TASKS, Target

__all__ = ["KINDS", "TASKS", "Problem", "Progress", "SelectionPath", "Target"]
