"""Find the branches on a task's name, which the objects of ``selection`` should decide instead.

A branch is a comparison, a membership test, a ``match`` case, a subscript or ``.get`` in which a constant is the name
of a task, alone or in a tuple, list or set; a table with the names of tasks as keys; ``isinstance`` of one kind of
target; and a conditional expression that yields the name of a task on a test that is not counted itself. Annotations
(``Literal["classification", "regression"]``) are none.
"""

from __future__ import annotations

import ast

TASKS = {"binary", "multiclass", "multilabel", "regression", "classification"}
TARGETS = {"Binary", "Multiclass", "Multilabel", "Real", "TimeToEvent"}


def task_branches(tree: ast.AST) -> list[int]:
    """The line of each branch on a task's name."""
    return sorted(getattr(node, "lineno", 0) for node in ast.walk(tree) if _is_branch(node))


def _names_a_task(node: ast.AST | None) -> bool:
    """Whether an expression is a task's name, or a literal tuple, list or set of nothing else."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value in TASKS
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return bool(node.elts) and all(_names_a_task(element) for element in node.elts)
    return False


def _is_branch(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        return any(_names_a_task(part) for part in (node.left, *node.comparators))
    if isinstance(node, ast.MatchValue):
        return _names_a_task(node.value)
    if isinstance(node, ast.Subscript):  # not the annotation Literal["classification", "regression"]
        return isinstance(node.slice, ast.Constant) and _names_a_task(node.slice)
    if isinstance(node, ast.IfExp):
        decided = any(_is_branch(inner) for inner in ast.walk(node.test))
        return not decided and (_names_a_task(node.body) or _names_a_task(node.orelse))
    if isinstance(node, ast.Call):
        return _is_deciding_call(node)
    if isinstance(node, ast.Dict):
        return bool(node.keys) and all(_names_a_task(key) for key in node.keys)
    return False


def _is_deciding_call(node: ast.Call) -> bool:
    if isinstance(node.func, ast.Name):
        named = (getattr(part, "id", "") for part in ast.walk(node.args[-1])) if node.args else iter(())
        return node.func.id == "isinstance" and any(name in TARGETS for name in named)
    asks = isinstance(node.func, ast.Attribute) and node.func.attr in {"get", "startswith"}
    return asks and bool(node.args) and _names_a_task(node.args[0])
