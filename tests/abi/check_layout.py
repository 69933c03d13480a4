"""Compares the layout that a compiler gives the header's structs with the kept table.

A released member keeps its place for ever: a difference means that the header is wrong, unless a
member was appended to a struct, or a constant to an enum. Then the table is written anew with
--write, and the change is part of the same commit.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    program, table = arguments
    actual = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    if "--write" in sys.argv:
        Path(table).write_text(actual, encoding="utf-8")
        return 0
    kept = Path(table).read_text(encoding="utf-8")
    difference = "\n".join(
        difflib.unified_diff(kept.splitlines(), actual.splitlines(), "kept", "actual", lineterm="")
    )
    if difference:
        print(difference)
    return 1 if difference or not actual else 0


if __name__ == "__main__":
    sys.exit(main())
