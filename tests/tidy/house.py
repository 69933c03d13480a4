"""The rules of the house, as functions from a tree to a list of complaints.

Each rule takes the root folder and yields texts `path:line: what is wrong (what to do)`. Only what a
script can see stands here; clang-tidy and clang-format do the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

# Folder of src/ -> folders that its files may include from. Its own is always allowed.
DIRECTION: dict[str, set[str]] = {
    "base": set(),
    "checkpoint": {"base"},
    "manifest": {"base"},
    "memory": {"base"},
    "memory/host": {"base", "memory"},
    "memory/cuda": {"base", "memory"},
    "wire": {"base"},
    "catalog": {"base", "manifest"},
    "load": {"base", "checkpoint", "manifest", "memory"},
    "daemon": {"base", "catalog", "manifest", "memory", "memory/host", "wire"},
    "client": {"base", "manifest", "memory", "memory/host", "wire"},
    "doctor": {"base", "client", "load", "memory", "memory/cuda", "memory/host"},
    "api": {
        "base", "checkpoint", "client", "doctor", "load", "manifest", "memory", "memory/cuda",
        "memory/host", "wire",
    },
    "cli": {"base"},
}
# One file of cli/ wires the daemon to the command line.
EXTRA_DIRECTION: dict[str, set[str]] = {"cli/serve.cpp": {"daemon"}}

MAX_LINES = 500
MAX_COLUMNS = 100
MAX_FILE_BYTES = 256 * 1024

# Pattern -> (what to use instead, files that may).
BANNED: list[tuple[str, str, str]] = [
    (r"\b(?:std::)?f?printf\s*\(", "write through the log function, or fmt in cli", r"^$"),
    (r"(?<![_\w])assert\s*\(", "return an Error, or static_assert", r"^$"),
    (r"(?<![_\w:])new\s+[A-Za-z_:]+[\s({\[]", "std::make_unique", r"^src/api/"),
    (r"(?<![_\w])throw\b", "return an Error", r"^(include/weightcache/weightcache\.hpp|examples/|src/cli/)"),
    (r"::close\s*\(", "Fd owns descriptors", r"^src/base/fd\.cpp$"),
    (r"\bcu[A-Z][A-Za-z]+\s*\(", "memory/cuda alone talks to the driver", r"^src/memory/cuda/"),
    (r"(?<![_\w])u?sleep\s*\(", "wait for the event itself", r"^$"),
    (r"\bTODO\b|\bFIXME\b|\bXXX\b", "do it, or write an issue", r"^$"),
]

SOURCE_SUFFIXES = (".cpp", ".hpp", ".h", ".c")


def sources(root: Path, *folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path.is_file():
                yield path


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    yield from enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)


def code_of(path: Path) -> Iterator[tuple[int, str]]:
    """The lines with comments gone and string literals empty."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), start=1):
        yield number, re.sub(r'"(?:[^"\\]|\\.)*"', '""', line.split("//")[0])


def folder_of(inside_src: str) -> str:
    """The room of a path below src/: `memory/host` for a nested room, else the first folder."""
    parts = inside_src.split("/")
    nested = "/".join(parts[:2])
    return nested if nested in DIRECTION and len(parts) > 2 else parts[0]


def include_direction(root: Path) -> Iterator[str]:
    src = root / "src"
    for path in sources(root, "src"):
        inside = path.relative_to(src).as_posix()
        room = folder_of(inside)
        if room not in DIRECTION:
            yield f"src/{inside}:1: the folder \"{room}\" has no rule in house.py"
            continue
        allowed = DIRECTION[room] | {room} | EXTRA_DIRECTION.get(inside, set())
        for number, line in lines_of(path):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match or "/" not in match[1]:
                continue
            target = folder_of(match[1])
            if target == "weightcache" or match[1].startswith("tests/"):
                continue
            if target not in allowed:
                yield f"src/{inside}:{number}: {room} may not include {match[1]}"


def lengths(root: Path) -> Iterator[str]:
    for path in sources(root, "src", "include", "tests", "bench", "examples"):
        name = path.relative_to(root).as_posix()
        count = 0
        for count, line in lines_of(path):
            if len(line) > MAX_COLUMNS:
                yield f"{name}:{count}: {len(line)} columns ({MAX_COLUMNS} at most)"
        limit = MAX_LINES if not name.startswith("include/") else 2 * MAX_LINES
        if count > limit:
            yield f"{name}:{count}: {count} lines ({limit} at most: which concept needs a room?)"


def banned_words(root: Path) -> Iterator[str]:
    for path in sources(root, "src", "include"):
        name = path.relative_to(root).as_posix()
        for number, code in code_of(path):
            for pattern, instead, allowed in BANNED:
                if re.search(pattern, code) and not re.search(allowed, name):
                    yield f"{name}:{number}: `{code.strip()}` ({instead})"


def try_stands_alone(root: Path) -> Iterator[str]:
    """TRY is a whole statement, or the whole right-hand side of one."""
    shape = re.compile(r"^\s*(?:(?:if|for|while) \(.*\) |else )?(?:(?:[\w:<>,&*\s\[\]\.\->()]+?)\s=\s)?(?:\(void\))?TRY\(")
    for path in sources(root, "src"):
        name = path.relative_to(root).as_posix()
        if name == "src/base/result.hpp":
            continue
        previous = ""
        for number, code in code_of(path):
            if re.search(r"\bTRY\(", code):
                continued = previous.rstrip().endswith("=") and code.lstrip().startswith("TRY(")
                if not continued and not shape.match(code):
                    yield f"{name}:{number}: `{code.strip()}` (TRY as the whole right-hand side)"
            if code.strip():
                previous = code


def everything_is_built(root: Path, compile_commands: Path) -> Iterator[str]:
    """Every .cpp and .c below src, tests, bench and examples is compiled by the given build."""
    built = set()
    for command in json.loads(compile_commands.read_text(encoding="utf-8")):
        file = Path(command["directory"], command["file"]).resolve()
        built.add(file)
        if file.parent.name == "Unity":  # made by CMake: it includes what it stands for
            included = re.findall(r'^#include "(.+)"$', file.read_text(encoding="utf-8"), re.M)
            built.update(Path(path).resolve() for path in included)
    for path in sources(root, "src", "tests", "bench", "examples"):
        if path.suffix not in (".cpp", ".c") or "nocompile" in path.parts:
            continue
        if path.resolve() not in built:
            yield f"{path.relative_to(root).as_posix()}:1: is in no target"


def rooms_have_readmes(root: Path) -> Iterator[str]:
    for room in DIRECTION:
        folder = root / "src" / room
        if not folder.is_dir():
            continue
        readme = folder / "README.md"
        if not readme.is_file():
            yield f"src/{room}: has no README.md"
        elif (count := len(readme.read_text(encoding="utf-8").splitlines())) > 15:
            yield f"src/{room}/README.md:{count}: {count} lines (15 at most)"


def large_files(root: Path, tracked: list[str]) -> Iterator[str]:
    for name in tracked:
        path = root / name
        if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
            yield f"{name}:1: {path.stat().st_size} bytes ({MAX_FILE_BYTES} at most)"


def documents_list_everything(root: Path) -> Iterator[str]:
    """Error codes, verbs and environment variables stand in the documents."""
    header = (root / "include/weightcache/weightcache.h").read_text(encoding="utf-8")
    protocol = (root / "docs/PROTOCOL.md").read_text(encoding="utf-8")
    cli = (root / "docs/CLI.md").read_text(encoding="utf-8")
    for code in re.findall(r"WC_(\w+) = -\d+", header):
        if code.lower() not in protocol:
            yield f"docs/PROTOCOL.md:1: does not tell of the code {code.lower()}"
    for path in sources(root, "src"):
        name = path.relative_to(root).as_posix()
        if name.endswith("_test.cpp"):
            continue
        for number, line in lines_of(path):
            for variable in re.findall(r'"(WEIGHTCACHE_[A-Z_]+)"', line):
                if variable not in cli:
                    yield f"{name}:{number}: {variable} is not in docs/CLI.md"
    for verb in sorted(p.stem for p in (root / "src/cli").glob("verb_*.cpp")):
        if f"`{verb.removeprefix('verb_')}" not in cli:
            yield f"docs/CLI.md:1: does not tell of the verb {verb}"
