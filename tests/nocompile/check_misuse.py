"""Compiles a file as it is, which must succeed, and once for each of its cases, which must fail with
the message that the case names:

    #ifdef CASE_NAME  // error: regular expression
"""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

STANDARDS = ("-std=c++17", "-std=c++20")


def compile_case(command: list[str], case: str | None) -> subprocess.CompletedProcess[str]:
    define = [f"-D{case}"] if case else []
    return subprocess.run(command + define, capture_output=True, text=True)


def verdict(command: list[str], case: str | None, pattern: str) -> str:
    result = compile_case(command, case)
    if case is None:
        return "" if result.returncode == 0 else f"must compile, and does not:\n{result.stderr}"
    if result.returncode == 0:
        return f"{case} compiles, and must not"
    if not re.search(pattern, result.stderr):
        return f"{case} fails, but not with \"{pattern}\":\n{result.stderr}"
    return ""


def main() -> int:
    source, *compiler = sys.argv[1:]
    text = Path(source).read_text(encoding="utf-8")
    cases = re.findall(r"^#ifdef (CASE_\w+)  // error: (.+)$", text, re.MULTILINE)
    if not cases or len(cases) != len(re.findall(r"^#ifdef ", text, re.MULTILINE)):
        print("a case names no error")
        return 1
    work = [
        ([*compiler, standard, "-fsyntax-only", source], case, pattern)
        for standard in STANDARDS
        for case, pattern in [(None, ""), *cases]
    ]
    with ThreadPoolExecutor(2) as pool:
        found = [text for text in pool.map(lambda job: verdict(*job), work) if text]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
