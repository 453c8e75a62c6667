"""zeronorm demo"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zeronorm.cli import options as o

if TYPE_CHECKING:
    from zeronorm.datasets import Table

N_PROBES = 170


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("demo", epilog="Example: zeronorm demo --out demo-report")(demo)


def demo(
    out: o.Out = Path("demo-report"),
    jobs: o.Jobs = 0,
    seed: o.Seed = 0,
    force: o.Force = False,
    quiet: o.Quiet = False,
) -> None:
    """Run the main job on data that come with scikit-learn, with shuffled columns added as a test.

    Of 200 columns 30 are measurements of breast tumours and 170 are shuffled copies that cannot help.
    """
    from zeronorm.cli.printing import print_selection, shows_progress
    from zeronorm.workflow import run

    result = run.select(
        demo_table(seed),
        random_state=seed,
        n_jobs=jobs or None,
        out=out,
        force=force,
        verbose=shows_progress(quiet, False),
    )
    if not quiet:
        print_selection(result, out)


def demo_table(seed: int) -> Table:
    """Breast tumours with probe columns appended."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    from zeronorm.datasets import TableOptions, append_probes, build_table
    from zeronorm.datasets.raw import RawTable

    data = load_breast_cancer()
    X = append_probes(data.data, N_PROBES, random_state=seed)
    names = [*map(str, data.feature_names), *(f"probe {i + 1}" for i in range(N_PROBES))]
    labels = np.asarray(data.target_names)[data.target]
    raw = RawTable.from_matrix(X, names, targets={"diagnosis": labels}, default_target="diagnosis")
    source = f"Breast Cancer Wisconsin (Diagnostic) of scikit-learn with {N_PROBES} shuffled columns added"
    return build_table(raw, TableOptions(), source=source)
