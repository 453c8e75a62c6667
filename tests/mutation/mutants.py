"""Faults that a programmer could make, as changes of a source file, and what is left out of them.

A comparison off by the case of equality or turned round, a number off by one, + for −, "and" for "or", a condition
negated or never true, two arguments swapped, a keyword argument or a statement left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# -- What no test is meant for --

FILES_LEFT_OUT = {
    "design/_device_kernels.py": "runs on a GPU, and so do its tests",
    "design/_devices.py": "asks which GPU there is and how much memory it has",
}
# A fault inside a function of this name, or in the value or the use of a constant of this name, is not drawn.
NAMES_LEFT_OUT = {
    r"_*repr_*(html_*)?|_*str_*|message|_?messages|_describe\w*|\w*_message|_note\w*": "wording",
    r"_?block_width|_?outer_square_parts|_?even_parts|_parts|_column_parts|_?reading_threads|block_bytes|_free_bytes"
    r"|_?prefers_\w+|_?is_worth_\w+|_?(estimated_)?seconds\w*|_n_threads|_?memory_needed": "how fast, not what",
    r"\w*(BYTES|BLOCK|TILE|AT_A_TIME|AT_ONCE|THREAD|BATCH|CACHE|BUDGET|SECONDS|PARTS?|GAP|WORK|DATA|ENTRIES)\w*"
    r"|_?(MOST|LARGEST|FEWEST|MANY|FEW|LEAST|SMALL|WIDE|NARROW)\w*_(COPY|MATRIX|VECTORS|COLUMNS|MOVES|SPARSE|FREE"
    r"|SAMPLES|CHANGES|PIVOTS|DIRECTIONS|DECODINGS|CLASSES|DOUBT|DEAD|IDLE)|_?(WIDE|WIDEST|MANY|NARROWEST)"
    r"|_?TRACK_FROM|_?SHRINK_FROM|_?PIVOT_FROM|_PAIR_COST|_DATA_FRACTION|BAND_FRACTION|\w+_WORTH_\w+"
    r"|WORTH_\w+|PATIENCE_S|STALE_\w+|_KEPT_SHARE|_SCAN_\w+|FIX_FROM": "how fast, not what",
    r"_?(MAX|MOST)_(ITER|ROUNDS|STEPS|PASSES|NEWTON_STEPS|JOINING)|MAX_\w+|\w*_MAX_ITER|ENOUGH_ITER|\w*PASSES\w*"
    r"|VISITS|ROUNDS|PASSES|GRADIENTS|HISTORY|BISECTIONS|_?HALVINGS|_?REFINEMENTS|_NEWTON_LIMIT|_CLIMB_\w+"
    r"|PIECES_UNTIL_FRESH|_?CANDIDATES|_?ADDITIONS|PATIENCE|MULTIPLIER_STEPS": "a bound of iterations",
    r"\w*(TOL|TOLERANCE|ROUNDING|EPSILON|PRECISION|JITTER|NOISE|ULPS)|_?(NEARLY_)?DEPENDENT|INDEPENDENT|TIED|FLAT"
    r"|SATURATION|SUFFICIENT|CLOSED?|EXACT|OPTIMAL|ACCEPTABLE|TINY|NO_SLACK|ZERO_WEIGHT|_EQUAL|WRONG_SIDE|PATH_END"
    r"|ROUGHLY|_SERIES_BELOW|_?NEGLIGIBLE\w*|SMALLEST_(PIVOT|CURVATURE)|_?LEAST_(CURVATURE|CHANGE|GAIN)"
    r"|_BARRIER_FACTOR|_DROWNED|TO_THE_BOUND|FAR|FAINT|OPEN|ROOM|WEIGHTS|SMALLEST_SHARE|GROWTH|STIFFNESS"
    r"|SHORTEST_STEP|LARGEST_(COST|VALUE|ALPHA)|_FARTHEST|_REST|_START_RIDGE|RIDGE": "how exactly, not what",
}
KEYWORDS_LEFT_OUT = {
    r"dtype|copy|out|check_finite|overwrite_\w+|assume_\w+|casting|subok|buffering|maxsize": "how fast, not what",
    "n_jobs|max_workers|n_threads|memory_budget|block_size|verbose|progress": "how fast, not what",
    "strict|encoding|newline|exist_ok|stacklevel|frozen|eq|repr|slots|kw_only": "a guard, or plain letters anyway",
    "remedy|message|hint|doc|description|category|source|misprints|name|label": "wording",
}
# The order of the two arguments does not matter, or a type error follows.
SYMMETRIC = (
    r"(np\.|math\.|xp\.)?(minimum|maximum|min|max|add|multiply|dot|vdot|inner|allclose|isclose|array_equal|logical_and"
    r"|logical_or|logical_xor|intersect1d|union1d|hypot|equal|not_equal|gcd|fmax|fmin)|zip|isinstance|issubclass"
    r"|getattr|hasattr|setattr|print|range|cast|warn|warnings\.warn"
)
WORDING_CALLS = r"(warnings\.)?warn|\w*[eE]rror|\w*Warning|\w*message|print|\w+\.(debug|info|warning)"


def _why_not(name: str, table: dict[str, str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in table)


# -- One fault --


@dataclass(frozen=True)
class Mutant:
    """One change of a file: the text between two positions is replaced."""

    file: str  # relative to src/zeronorm
    function: str  # with the classes and functions around it
    line: int
    lines: tuple[int, ...]  # of the statement, or of its head
    text: str  # of the line
    start: int
    end: int
    replacement: str
    meaning: str

    def applied_to(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.meaning}   [{self.text}]"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The key of an entry in ``no_change.py``, which is valid as long as the line does not change."""
        return self.file, self.function, self.text, self.meaning


SWAPS: dict[type, tuple[tuple[str, str], ...]] = {
    ast.Lt: (("<", "<="), ("<", ">")),
    ast.LtE: (("<=", "<"), ("<=", ">=")),
    ast.Gt: ((">", ">="), (">", "<")),
    ast.GtE: ((">=", ">"), (">=", "<=")),
    ast.Eq: (("==", "!="),),
    ast.NotEq: (("!=", "=="),),
    ast.In: (("in", "not in"),),
    ast.NotIn: (("not in", "in"),),
    ast.Is: (("is", "is not"),),
    ast.IsNot: (("is not", "is"),),
    ast.Add: (("+", "-"),),
    ast.Sub: (("-", "+"),),
    ast.Mult: (("*", "/"),),
    ast.Div: (("/", "*"),),
    ast.FloorDiv: (("//", "*"),),
    ast.Mod: (("%", "//"),),
    ast.Pow: (("**", "*"),),
    ast.And: (("and", "or"),),
    ast.Or: (("or", "and"),),
}
BOUNDARY = {("<", "<="), ("<=", "<"), (">", ">="), (">=", ">")}
Change = tuple[int, int, str, str]


def mutants_of(file: Path, source: Path) -> list[Mutant]:
    """All single changes of a file that are faults."""
    relative = str(file.relative_to(source))
    if relative in FILES_LEFT_OUT:
        return []
    return list(_Drawing(file.read_text("utf-8"), relative).mutants())


def is_program(text: str) -> bool:
    """Whether the changed text can be parsed: dropping a sign may leave a bracket open."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


class _Drawing:
    def __init__(self, text: str, file: str) -> None:
        self.text, self.file, self.lines = text, file, text.splitlines()
        self.bytes = text.encode()
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line.encode()))

    def offset(self, node: ast.AST, end: bool = False) -> int:
        row, column = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return len(self.bytes[: self.starts[row - 1] + column].decode())

    def of(self, node: ast.AST) -> str:
        return self.text[self.offset(node) : self.offset(node, True)]

    def mutants(self) -> Iterator[Mutant]:
        yield from self._within(ast.parse(self.text), (), None)

    def _within(self, node: ast.AST, names: tuple[str, ...], statement: ast.stmt | None) -> Iterator[Mutant]:
        """The faults of a part of the program and, unless no test is meant for it, of the parts of that."""
        if isinstance(node, ast.stmt):
            statement = node
        if statement is not None and node is not None:
            for start, end, replacement, meaning in self._changes(node):
                line = self.text.count("\n", 0, start) + 1
                yield Mutant(
                    self.file,
                    ".".join(names) or "module",
                    line,
                    tuple(_head_lines(statement)),
                    self.lines[line - 1].strip(),
                    start,
                    end,
                    replacement,
                    meaning,
                )
        inner = names
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if _why_not(node.name, NAMES_LEFT_OUT):
                return
            inner = (*names, node.name)
        for child in self._parts(node):
            # Defaults of arguments are set where the function is defined, but belong to it.
            yield from self._within(child, inner, statement)

    def _parts(self, node: ast.AST) -> Iterator[ast.AST]:
        """Without docstrings, annotations, decorators, messages and imports, and without what is left out by name."""
        left_out: list[ast.AST | None] = []
        if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.Assert)):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Call) and re.fullmatch(WORDING_CALLS, self.of(node.func)):
            return
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and self._is_left_out_constant(node):
            return
        if isinstance(node, (ast.BinOp, ast.Compare)) and self._mentions_left_out(node):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in self.of(node.test):
            return
        if isinstance(node, (ast.AnnAssign, ast.arg)):
            left_out.append(node.annotation)
        if isinstance(node, ast.FunctionDef):
            left_out += [node.returns, *node.decorator_list]
        if isinstance(node, ast.ClassDef):
            left_out += [*node.decorator_list, *node.keywords]
        if isinstance(node, ast.keyword) and node.arg and _why_not(node.arg, KEYWORDS_LEFT_OUT):
            return
        for child in ast.iter_child_nodes(node):
            if not any(child is part for part in left_out):
                yield child

    def _is_left_out_constant(self, node: ast.Assign | ast.AnnAssign) -> bool:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        upper = [name for name in names if name.isupper()]
        return bool(upper) and any(_why_not(name, NAMES_LEFT_OUT) or name == "__all__" for name in upper)

    def _mentions_left_out(self, node: ast.AST) -> bool:
        """A limit that only decides on speed or accuracy is compared or computed with."""
        operands = [part for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute))]
        names = [part.id if isinstance(part, ast.Name) else part.attr for part in operands]
        return any(name.isupper() and _why_not(name, NAMES_LEFT_OUT) for name in names)

    # -- The changes of one node --

    def _changes(self, node: ast.AST) -> Iterator[Change]:
        if isinstance(node, (ast.BinOp, ast.Compare)) and self._mentions_left_out(node):
            return
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, operands[:-1], operands[1:], strict=True):
                tiny = any(_is_tiny(side) for side in (left, right))
                for change in self._swaps(operator, left, right):
                    if not (tiny and tuple(change[3].split(" → ")) in BOUNDARY):
                        yield change
        elif isinstance(node, ast.BinOp):
            strings = any(
                isinstance(p, (ast.JoinedStr, ast.Constant)) and _is_text(p) for p in ast.walk(node)
            )
            if not strings:
                yield from self._swaps(node.op, node.left, node.right)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values[:-1], node.values[1:], strict=True):
                yield from self._swaps(node.op, left, right)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            dropped = self.text[self.offset(node) : self.offset(node.operand)]
            yield self.offset(node), self.offset(node.operand), "", f"drop {dropped.strip()!r}"
        elif isinstance(node, ast.Constant):
            yield from self._other_number(node)
        elif isinstance(node, ast.Call):
            yield from self._other_call(node)
        else:
            yield from self._other_statement(node)

    def _swaps(self, operator: ast.AST, left: ast.AST, right: ast.AST) -> Iterator[Change]:
        start, end = self.offset(left, True), self.offset(right)
        for old, new in SWAPS.get(type(operator), ()):
            gap = self.text[start:end]
            if gap.count(old) == 1 and "#" not in gap:
                yield start, end, gap.replace(old, new), f"{old} → {new}"

    def _other_number(self, node: ast.Constant) -> Iterator[Change]:
        value = node.value
        if isinstance(value, bool):
            new = str(not value)
        elif isinstance(value, int):
            new = str(value + 1)
        elif isinstance(value, float) and (value == 0.0 or 1e-2 <= abs(value) <= 1e4):
            new = repr(1.0 if value == 0.0 else 2.0 * value)
        else:
            return
        yield self.offset(node), self.offset(node, True), new, f"{self.of(node)} → {new}"

    def _other_call(self, node: ast.Call) -> Iterator[Change]:
        called = self.of(node.func)
        if re.fullmatch(WORDING_CALLS, called):
            return
        first_two = node.args[:2]
        plain = all(isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) for part in first_two)
        if len(first_two) == 2 and plain and not re.fullmatch(SYMMETRIC, called):
            one, two = (self.of(part) for part in first_two)
            if one != two and "np." not in one + two:  # a number for a type: an error at once
                between = self.text[self.offset(first_two[0], True) : self.offset(first_two[1])]
                yield (
                    self.offset(first_two[0]),
                    self.offset(first_two[1], True),
                    f"{two}{between}{one}",
                    f"{called}: swap {one} and {two}",
                )
        for keyword in node.keywords:
            if keyword.arg is None or _why_not(keyword.arg, KEYWORDS_LEFT_OUT):
                continue
            start, end = self.offset(keyword), self.offset(keyword.value, True)
            rest = self.text[end:]
            end += len(rest) - len(rest.lstrip(" ,\n")) if rest.lstrip().startswith(",") else 0
            yield start, end, "", f"{called}: without {keyword.arg}="

    def _other_statement(self, node: ast.AST) -> Iterator[Change]:
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            start, end, test = self.offset(node.test), self.offset(node.test, True), self.of(node.test)
            if "TYPE_CHECKING" in test or self._mentions_left_out(node.test):
                return
            short = " ".join(test.split())[:60]
            yield start, end, f"(not ({test}))", f"not ({short})"
            if isinstance(node, ast.If):
                yield start, end, "False", f"never ({short})"
        elif (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)) or isinstance(
            node, ast.AugAssign
        ):
            yield self.offset(node), self.offset(node, True), "pass", f"leave out {self._short(node)}"
        elif isinstance(node, ast.Assign) and not isinstance(node.targets[0], (ast.Name, ast.Tuple)):
            if re.fullmatch(r"self\.(\w+) = \1", self.of(node)):
                return  # of a constructor: one check of all methods finds each of them, which would flatter the tests
            yield self.offset(node), self.offset(node, True), "pass", f"leave out {self._short(node)}"
        elif isinstance(node, (ast.Break, ast.Continue)):
            yield self.offset(node), self.offset(node, True), "pass", f"leave out {self._short(node)}"

    def _short(self, node: ast.AST) -> str:
        return " ".join(self.of(node).split())[:60]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def _is_tiny(node: ast.AST) -> bool:
    """A tolerance: that a real number equals it to the last digit means nothing."""
    value = getattr(node, "value", None)
    return isinstance(node, ast.Constant) and isinstance(value, float) and 0.0 < value < 1e-2


def _head_lines(statement: ast.stmt) -> range:
    """The lines of a statement, without those of the statements inside."""
    body: list[ast.stmt] = getattr(statement, "body", [])
    end = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(end, statement.lineno) + 1)


# -- Which tests can notice it --


def kernels_of(sources: dict[str, ast.Module]) -> dict[str, list[tuple[str, range]]]:
    """Compiled functions by name: their files and their lines, which the interpreter never sees run."""
    found: dict[str, list[tuple[str, range]]] = {}
    for file, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and _is_compiled(node):
                first = node.decorator_list[0].lineno
                found.setdefault(node.name, []).append((file, range(first, (node.end_lineno or first) + 1)))
    return found


def _is_compiled(node: ast.FunctionDef) -> bool:
    names = {part.id for d in node.decorator_list for part in ast.walk(d) if isinstance(part, ast.Name)}
    return bool(names & {"kernel", "reduction", "sweep"})


class Reach:
    """Tests, by number, that a change at a position can affect, from the lines that each test ran."""

    def __init__(self, source: Path, ran: dict[str, dict[int, set[int]]]) -> None:
        self.ran = ran
        self.sources = {
            str(path.relative_to(source)): ast.parse(path.read_text("utf-8"))
            for path in sorted(source.rglob("*.py"))
        }
        self.kernels = kernels_of(self.sources)
        self.uses: dict[str, list[tuple[str, int]]] = {}
        for file, tree in self.sources.items():
            for node in ast.walk(tree):
                name = getattr(node, "id", None) or getattr(node, "attr", None)
                if name is not None and isinstance(getattr(node, "ctx", None), ast.Load):
                    self.uses.setdefault(name, []).append((file, node.lineno))  # type: ignore[attr-defined]
        self._of_kernel: dict[str, set[int]] = {}
        self.functions = {
            file: [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            for file, tree in self.sources.items()
        }

    def tests(self, mutant: Mutant) -> set[int]:
        kernel = self._kernel_at(mutant.file, mutant.line)
        if kernel is not None:
            return self.of_kernel(kernel)
        lines = self.ran.get(mutant.file, {})
        if self.is_definition(mutant):
            return self._of_definition(mutant, self._function_at(mutant.file, mutant.lines[0]))
        return lines.get(mutant.line) or self._of_lines(mutant.file, mutant.lines)

    def is_definition(self, mutant: Mutant) -> bool:
        """Whether it changes what is set at import."""
        function = self._function_at(mutant.file, mutant.lines[0])
        return function is None or mutant.lines[0] == function.lineno

    def of_kernel(self, name: str) -> set[int]:
        """Tests that call the kernel, compiled or not, or run a line of Python that names it, or one that calls it."""
        if name not in self._of_kernel:
            self._of_kernel[name] = set()  # kernels that call each other
            found: set[int] = set()
            for file, lines in self.kernels.get(name, []):
                found |= self._of_lines(file, lines)  # the first of them, or those that Python ran itself
            for file, line in self.uses.get(name, []):
                caller = self._kernel_at(file, line)
                if caller is not None:
                    found |= self.of_kernel(caller)
                elif self._function_at(file, line) is None:
                    found |= self._of_file(file)
                else:
                    found |= self.ran.get(file, {}).get(line, set())
            self._of_kernel[name] = found
        return self._of_kernel[name]

    def _of_definition(self, mutant: Mutant, function: ast.FunctionDef | None) -> set[int]:
        """Defaults and constants are set at import: tests that run the function, or a line that names the constant."""
        if function is not None:
            return self._of_lines(mutant.file, range(function.lineno, (function.end_lineno or 0) + 1))
        found: set[int] = set()
        for node in ast.walk(self.sources[mutant.file]):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.lineno == mutant.lines[0]:
                for part in ast.walk(node):
                    if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                        found |= self.of_kernel(part.id)  # by its uses, as for a kernel
        return found or self._of_file(mutant.file)

    def _of_lines(self, file: str, lines: range | tuple[int, ...]) -> set[int]:
        return set().union(*(self.ran.get(file, {}).get(line, set()) for line in lines))

    def _of_file(self, file: str) -> set[int]:
        own = set().union(*self.ran.get(file, {}).values())
        names = [name for name, found in self.kernels.items() if any(path == file for path, _ in found)]
        return own.union(*(self.of_kernel(name) for name in names))

    def _kernel_at(self, file: str, line: int) -> str | None:
        here = ((name, *position) for name, found in self.kernels.items() for position in found)
        return next((name for name, path, lines in here if path == file and line in lines), None)

    def _function_at(self, file: str, line: int) -> ast.FunctionDef | None:
        inside = [node for node in self.functions[file] if node.lineno <= line <= (node.end_lineno or 0)]
        return max(inside, key=lambda node: node.lineno, default=None)
