"""Check that a wheel contains all sources and nothing else: ``python docs/check_wheel.py dist src``."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path


def problems(wheel: Path, sources: Path) -> list[str]:
    """Source files that are missing from the wheel, and files of the wheel that are not sources."""
    names = set(zipfile.ZipFile(wheel).namelist())
    files = (path for path in sources.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    expected = {str(path.relative_to(sources)) for path in files}
    missing = [f"missing: {name}" for name in sorted(expected - names)]
    own = {name for name in names if ".dist-info/" not in name}
    return missing + [f"does not belong there: {name}" for name in sorted(own - expected)]


def main(folder: str, sources: str) -> int:
    wheels = sorted(Path(folder).glob("*.whl"))
    if len(wheels) != 1:
        print(f"{folder!r} must contain one wheel. Got {len(wheels)}; run `make release-check`.")
        return 1
    found = problems(wheels[0], Path(sources))
    print("\n".join(found) or f"{wheels[0].name} contains all sources and nothing else.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
