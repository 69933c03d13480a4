"""Makes a virtual environment with the packages named, unless it is there and has them.

    python make_venv.py FOLDER PACKAGE...
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path


def has(python: Path, packages: list[str]) -> bool:
    if not python.exists():
        return False
    tried = subprocess.run([python, "-c", "import " + ", ".join(packages)], capture_output=True)
    return tried.returncode == 0


def main(folder: str, *packages: str) -> int:
    python = Path(folder) / "bin" / "python"
    if has(python, list(packages)):
        return 0
    venv.create(folder, with_pip=True, clear=True)
    return subprocess.run([python, "-m", "pip", "install", "--quiet", *packages]).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
