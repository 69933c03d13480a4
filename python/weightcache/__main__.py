"""``python -m weightcache``: the command line, and ``demo``, which is Python's own verb."""

from __future__ import annotations

import os
import shutil
import sys

from weightcache._library import PACKAGE


def program() -> str:
    """The program of the wheel, else the machine's."""
    beside = PACKAGE / "bin" / "weightcache"
    found = str(beside) if beside.exists() else shutil.which("weightcache")
    if found is None:
        sys.exit("weightcache: the program is neither in the package nor on the PATH")
    return found


def main() -> None:
    if sys.argv[1:2] == ["demo"]:
        from weightcache.demo import main as demo

        sys.exit(demo(sys.argv[2:]))
    path = program()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
