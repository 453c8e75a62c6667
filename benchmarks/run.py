"""``make bench``: run all jobs (or those whose name contains an argument), print a table, write JSON."""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from harness import JOBS, as_record  # noqa: E402


def main(filters: list[str]) -> int:
    for file in sorted(HERE.glob("bench_*.py")):
        importlib.import_module(file.stem)
    chosen = [j for j in JOBS.values() if not filters or any(f in j.name for f in filters)]
    records = []
    print(f"{'job':<44} {'ours s':>9} {'peer s':>9} {'ratio':>9}  reached  target")
    for job in chosen:
        record = as_record(job.name, job.measure())
        records.append(record)
        peer = f"{record['peer_s']:9.3f}" if record["peer_s"] is not None else " " * 9
        ratio = f"{record['ratio']:9.1f}" if record["ratio"] is not None else " " * 9
        reached = "yes" if record["reached"] else "NO"
        print(
            f"{job.name:<44} {record['ours_s']:9.3f} {peer} {ratio}  {reached:<7}  {record['target']}",
            flush=True,
        )
        if record["note"]:
            print(f"    {record['note']}", flush=True)
    write(records, complete=not filters)
    return 0


def write(records: list[dict[str, object]], complete: bool) -> None:
    import numba
    import numpy
    import scipy
    import sklearn

    import zeronorm

    versions = {m.__name__: m.__version__ for m in (zeronorm, numpy, scipy, sklearn, numba)}
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
        "jobs": records,
    }
    target = HERE / "results" / ("latest.json" if complete else "partial.local.json")
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"written: {target}")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
