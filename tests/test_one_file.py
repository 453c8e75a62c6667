"""A filter, chart, metric, file format, backend, loss or command comes in one file, and appears everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zeronorm

SOURCE = Path(zeronorm.__file__).parents[1]

FILTER = '''
"""A filter: the largest standard deviation first."""
import numpy as np
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selectors._base import BaseSelector


@register("spread", family="filters", tasks=("binary", "multiclass"), reference="nobody", test_params={})
class Spread(BaseSelector):
    """Take the columns with the largest standard deviation."""

    def __init__(self, n_features_to_select=None, *, estimator=None, feature_groups=None, always_keep=None):
        self.n_features_to_select = n_features_to_select
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep

    def _select(self, problem):
        return SelectionPath.from_scores(np.sqrt(problem.design.column_stats().variance))
'''
CHART = '''
"""A chart: the number of selected features in every fold."""
from dataclasses import dataclass
from zeronorm.report._cells import Grid
from zeronorm.report._chart import Chart, register_chart


@register_chart("counts", order=999)
@dataclass(frozen=True)
class CountsChart(Chart):
    """The number of features in each fold."""

    counts: tuple
    title = "Features counted by the file outside"
    caption = "One number for each fold."

    @classmethod
    def from_data(cls, report_data):
        return cls(tuple(len(found) for found in report_data.columns["selected"] if found is not None))

    def picture(self):
        return Grid(rows=["features"], columns=[str(i) for i in range(len(self.counts))],
                    levels=[[0.5] * len(self.counts)], palette="r",
                    cells=[[str(count) for count in self.counts]], column_ticks=[])
'''
METRIC = '''
"""A metric: the largest share of errors in a class."""
import numpy as np
from zeronorm.evaluation import Metric, register_metric


def worst_class_error(y_true, y_pred):
    truth, found = np.asarray(y_true), np.asarray(y_pred)
    return float(max(np.mean(found[truth == c] != c) for c in np.unique(truth)))


register_metric(Metric("worst_class_error", worst_class_error, label="error in the worst class", unit="%",
                       bounds=(0.0, 1.0)))
'''
FORMAT = '''
"""A file format: numbers with bars between them, the target last."""
import numpy as np
from zeronorm.datasets._raw import RawTable, reader


@reader(".bars")
def read_bars(file):
    """The matrix, and its last column as the target."""
    cells = np.array([line.split("|") for line in file.path.read_text().splitlines()], dtype=float)
    return RawTable.from_matrix(cells[:, :-1], targets={"last": cells[:, -1]}, default_target="last")
'''
BACKEND = '''
"""A backend: columns in a list, each an array of its own."""
import numpy as np
from zeronorm.design import Design, register_backend


class Columns:
    """The container that users pass."""

    def __init__(self, *columns):
        self.columns_ = [np.asarray(column, dtype=float) for column in columns]
        self.shape = (len(columns[0]), len(columns))


class ColumnsDesign(Design):
    def __init__(self, columns, n_samples, feature_names=None):
        super().__init__((n_samples, len(columns)), np.dtype(float), feature_names)
        self.columns = columns

    def _fill(self, columns, out):
        for index, k in enumerate(np.arange(len(self.columns))[columns]):
            out[:, index] = self.columns[k]

    def _take(self, columns):
        chosen = np.arange(len(self.columns))[columns]
        return ColumnsDesign([self.columns[k] for k in chosen], self.n_samples)

    def _take_rows(self, rows):
        n_samples = len(np.arange(self.n_samples)[rows])
        return ColumnsDesign([column[rows] for column in self.columns], n_samples)


@register_backend(lambda X: isinstance(X, Columns))
def from_columns(X, feature_names):
    """The design of a ``Columns``."""
    return ColumnsDesign(X.columns_, X.shape[0], feature_names)
'''
LOSS = '''
"""A loss: the smoothed absolute value."""
import numpy as np
from zeronorm.solvers.linear import SeparableLoss, register_loss


@register_loss("pseudo_huber")
class PseudoHuber(SeparableLoss):
    """sqrt(1 + (f - y)^2) - 1."""

    for_classes_only = False

    def value(self, f, y):
        return np.sqrt(1.0 + (f - y) ** 2) - 1.0

    def slope(self, f, y):
        return (f - y) / np.sqrt(1.0 + (f - y) ** 2)

    def curvature(self, f, y):
        return (1.0 + (f - y) ** 2) ** -1.5
'''

COMMAND = '''
"""A command: it counts the letters of a word."""


def add_to(app):
    app.command("letters")(letters)


def letters(word: str, twice: bool = False):
    """Count the letters of a word, which is a sentence too long for the list of a parser that cuts sentences off."""
    print(len(word) * (2 if twice else 1), "letters")
'''


RUN = "from zeronorm.cli._main import run\n"
# Each file with the group of its entry point and code that meets what the file adds.
FILES = {
    "filter": (
        FILTER,
        "zeronorm.selectors",
        RUN + "assert run(['methods']) == 0\n"
        "assert run(['select', 'table.csv', '--target', 'y', '--method', 'spread', '--features', '1',"
        " '--permutations', '0', '--json']) == 0\n"
        "from zeronorm.registry import get_method\n"
        "from zeronorm.testing import check_selector\n"
        "check_selector(get_method('spread').cls())\n",
    ),
    "chart": (
        CHART,
        "zeronorm.extensions",
        "import zeronorm\n"
        "result = zeronorm.select('table.csv', 'y', method='fisher', features=2, permutations=0)\n"
        "file = result.report('out-chart')\n"
        "assert 'Features counted by the file outside' in open(file).read()\n"
        "import matplotlib; matplotlib.use('Agg')\n"
        "from zeronorm.report import figure\n"
        "figure('counts', result.records, result)\n",
    ),
    "metric": (
        METRIC,
        "zeronorm.extensions",
        RUN + "assert run(['select', 'table.csv', '--target', 'y', '--method', 'fisher', '--features', '2',"
        " '--metric', 'worst_class_error', '--permutations', '0', '--out', 'out']) == 0\n"
        "import polars\n"
        "assert 'worst_class_error' in polars.read_parquet('out/records.parquet').columns\n"
        "assert 'error in the worst class' in open('out/report.html').read()\n"
        "from zeronorm import FisherScore, SelectorCV\n"
        "from sklearn.datasets import load_iris\n"
        "SelectorCV(FisherScore(), scoring='worst_class_error').fit(*load_iris(return_X_y=True))\n",
    ),
    "format": (
        FORMAT,
        "zeronorm.extensions",
        RUN + "from zeronorm.datasets import read_table\n"
        "assert read_table('data.bars').X.shape == (40, 3)\n"
        "assert run(['select', 'data.bars', '--method', 'fisher', '--features', '1', '--permutations', '0',"
        " '--json', '--out', 'out-format']) == 0\n"
        "try:\n"
        "    read_table('data.unknown')\n"
        "except ValueError as error:\n"
        "    print(error)\n",
    ),
    "backend": (
        BACKEND,
        "zeronorm.extensions",
        "import numpy as np\n"
        "import zeronorm\n"
        "from outside_backend import Columns, ColumnsDesign\n"
        "from zeronorm import FisherScore, RFE, as_design, evaluate\n"
        "from zeronorm.testing import check_design\n"
        "X = np.random.default_rng(0).normal(size=(30, 6))\n"
        "y = np.arange(30) % 2\n"
        "X[:, 4] += 3 * y\n"
        "data = Columns(*X.T)\n"
        "assert isinstance(as_design(data), ColumnsDesign)\n"
        "check_design(lambda: as_design(data), X)\n"
        "for selector in (FisherScore(1), RFE(n_features_to_select=1)):\n"
        "    assert selector.fit(data, y).get_support(indices=True).tolist() == [4]\n"
        "assert len(evaluate(FisherScore(), data, y, sizes=[1])) == 5\n"
        "result = zeronorm.select(data, y, method='fisher', features=1, permutations=0)\n"
        "assert [feature.index for feature in result.selected] == [4]\n",
    ),
    "loss": (
        LOSS,
        "zeronorm.extensions",
        "import numpy as np\n"
        "from zeronorm import Grafting\n"
        "X = np.random.default_rng(0).normal(size=(60, 6))\n"
        "y = X[:, 3] + 0.1 * X[:, 1]\n"
        "y[0] = 100.0\n"
        "found = Grafting(1, loss='pseudo_huber', task='regression').fit(X, y)\n"
        "assert found.get_support(indices=True).tolist() == [3]\n"
        "try:\n"
        "    Grafting(loss='nothing').fit(X, y > 0)\n"
        "except ValueError as error:\n"
        "    print(error)\n",
    ),
    "letters": (
        COMMAND,
        "zeronorm.commands",
        RUN + "import sys\n"
        "assert run(['methods']) == 0\n"
        "assert 'outside_letters' not in sys.modules, 'an own command needs no other package'\n"
        "assert run(['letters', 'word', '--twice']) == 0\n"
        "assert run(['--help']) == 0\n"
        "assert run(['letters']) == 2\n",
    ),
}
ONE_AFTER_THE_OTHER = """
import contextlib, io, json, sys, traceback

printed_by = {}
for name, code in json.load(sys.stdin).items():
    said, error = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(said):
            exec(code, {"__name__": "__main__"})
    except BaseException:
        error = traceback.format_exc()
    printed_by[name] = said.getvalue(), error
print(json.dumps(printed_by))
"""


def run_outside(folder, files, code, given=""):
    """Install files as a package outside and run code in a process that finds it."""
    entries = {}
    for name, (module, group, _) in files.items():
        (folder / f"outside_{name}.py").write_text(module)
        target = ":add_to" if group == "zeronorm.commands" else ""
        entries.setdefault(group, []).append(f"{name} = outside_{name}{target}")
    info = folder / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "".join(f"[{group}]\n" + "\n".join(lines) + "\n" for group, lines in entries.items())
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(SOURCE)])},
        cwd=folder,
        input=given,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_tables(folder):
    """40 samples, the third column with the largest standard deviation; and a file of a format from outside."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)) * [1.0, 1.0, 3.0, 1.0, 1.0]
    rows = [",".join([f"{v:.6f}" for v in x] + [["no", "yes"][int(x[0] > 0)]]) for x in X]
    (folder / "table.csv").write_text("\n".join(["a,b,c,d,e,y", *rows]) + "\n")
    Z = np.random.default_rng(0).normal(size=(40, 3)).round(3)
    lines = ["|".join([*map(str, z), str(int(z[1] > 0))]) for z in Z]
    (folder / "data.bars").write_text("\n".join(lines))
    (folder / "data.unknown").write_text("1")


@pytest.fixture(scope="module")
def printed_by(tmp_path_factory):
    """What the code of each file printed, and its error: one process for all, as starting one takes longest."""
    folder = tmp_path_factory.mktemp("outside")
    write_tables(folder)
    given = json.dumps({name: code for name, (_, _, code) in FILES.items()})
    return json.loads(run_outside(folder, FILES, ONE_AFTER_THE_OTHER, given).splitlines()[-1])


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("filter", ["spread", '"c"']),
        ("chart", []),
        ("metric", []),
        ("format", ['"x2"', ".bars"]),
        ("backend", []),
        ("loss", ["The 'loss' parameter of Grafting must be 'auto', 'squared_error'"]),
        ("letters", ["8 letters", "sentence too long for the"]),
    ],
)
def test_what_one_file_adds_appears_everywhere(printed_by, name, printed):
    said, error = printed_by[name]
    assert error is None, error
    in_one_line = " ".join(said.split())  # a help page breaks lines where its longest command asks for it
    for text in printed:
        assert text in in_one_line


def test_an_unknown_format_names_those_from_outside(printed_by):
    assert ".bars" in printed_by["format"][0].splitlines()[-1]


def test_a_broken_extension_says_so(tmp_path):
    code = (
        "import warnings\n"
        "from zeronorm.registry import load_extensions\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    load_extensions()\n"
        "print(caught[0].message)\n"
    )
    broken = {"outside": ("raise RuntimeError('broken')", "zeronorm.extensions", "")}
    said = run_outside(tmp_path, broken, code)
    assert "'outside' adds the extension 'outside' to zeronorm, but it cannot be loaded" in said


def test_a_broken_command_says_so_and_the_others_work(tmp_path):
    code = (
        "import warnings\n"
        "from zeronorm.cli._main import run\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    assert run(['broken']) == 2\n"
        "    assert run(['letters', 'word']) == 0\n"
        "assert len(caught) == 1\n"
        "print(caught[0].message)\n"
    )
    files = {
        "broken": ("raise RuntimeError('broken')", "zeronorm.commands", ""),
        "letters": (COMMAND, "zeronorm.commands", ""),
    }
    said = run_outside(tmp_path, files, code)
    assert "4 letters" in said
    assert "'outside' adds the command 'broken' to zeronorm, but it cannot be loaded" in said


def test_the_name_of_an_own_command_is_not_taken(tmp_path):
    code = "from zeronorm.cli._main import run\nassert run(['letters', 'word']) == 0\nassert run(['methods']) == 0\n"
    files = {"letters": (COMMAND, "zeronorm.commands", ""), "methods": (COMMAND, "zeronorm.commands", "")}
    assert "arom" in run_outside(tmp_path, files, code)
