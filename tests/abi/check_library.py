"""What the shared library shows to the world: exactly the kept list of symbols, each declared in the
header and each called with wrong arguments by a test; no static constructor; only libraries that
every system has or that the build asks for.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# The run-time's own: frame_dummy, and __cpu_indicator_init of __builtin_cpu_supports().
RUN_TIME_CONSTRUCTORS = 2
NEEDED = re.compile(
    r"lib(stdc\+\+|gcc_s|c|m|dl|pthread|uring|xxhash|simdjson|(clang_rt\.)?[atu]?b?san.*)\.so[.\d]*"
    r"|ld-linux.*"
)


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(nm: str, library: str) -> set[str]:
    names = set()
    for line in output(nm, "-D", "--defined-only", library).splitlines():
        _, kind, name = line.split(maxsplit=2)
        if kind != "A":  # the version node itself
            names.add(name.split("@")[0])
    return names


def constructors(arguments: argparse.Namespace) -> Iterator[str]:
    if re.search(r"__[atu]?b?san_", output(arguments.nm, "-D", arguments.library)):
        return  # a sanitizer brings its own
    count = 0
    for line in output(arguments.readelf, "-SW", arguments.library).splitlines():
        match = re.search(r"\.init_array\s+\S+\s+\S+\s+\S+\s+([0-9a-f]+)", line)
        if match:
            count += int(match[1], 16) // 8
    if count > RUN_TIME_CONSTRUCTORS:
        yield f"{count - RUN_TIME_CONSTRUCTORS} static constructors"
    # As compilers call what makes a file's global objects; a stripped library tells only the count.
    for line in output(arguments.nm, arguments.library).splitlines():
        if "_GLOBAL__sub_I_" in line or "__cxx_global_var_init" in line:
            yield f"static constructor {line.split()[-1]}"


def complaints(arguments: argparse.Namespace) -> Iterator[str]:
    actual = exported(arguments.nm, arguments.library)
    kept = set(Path(arguments.symbols).read_text(encoding="utf-8").split())
    header = Path(arguments.header).read_text(encoding="utf-8")
    caller = Path(arguments.called_by).read_text(encoding="utf-8")
    declared = set(re.findall(r"^WC_API[^(]*?\b(wc_\w+)\(", header, re.MULTILINE))
    for name in sorted(kept - actual):
        yield f"{name} was exported, and is no longer"
    for name in sorted(actual - kept):
        yield f"{name} is exported, but not in the kept list"
    for name in sorted(actual ^ declared):
        yield f"{name} is exported or declared, but not both"
    for name in sorted(actual):
        if not re.search(rf"\b{name}\(", caller):
            yield f"{name} is never called with wrong arguments"
    yield from constructors(arguments)
    for name in re.findall(r"\(NEEDED\).*\[(.*?)\]", output(arguments.readelf, "-dW", arguments.library)):
        if not NEEDED.fullmatch(name):
            yield f"needs {name}"


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("library", "header", "symbols", "called-by", "nm", "readelf"):
        parser.add_argument(f"--{name}", required=True)
    found = list(complaints(parser.parse_args()))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
