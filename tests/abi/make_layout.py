"""Writes a C program that prints the layout of every struct, and the number of every constant, of
the C header. What it finds it finds in the header's text, so nothing can be left out of the table.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def structs(text: str) -> dict[str, list[str]]:
    found = {}
    for match in re.finditer(r"typedef struct (\w+) \{(.*?)\} (\w+);", text, re.DOTALL):
        name, body, alias = match.groups()
        if name != alias:
            raise SystemExit(f"the struct {name} is called {alias}")
        found[name] = [
            re.search(r"(\w+)$", member.strip())[1] for member in body.split(";") if member.strip()
        ]
    return found


def constants(text: str) -> list[str]:
    found = []
    for body in re.findall(r"enum \{(.*?)\}", text, re.DOTALL):
        found += re.findall(r"(WC_\w+)\s*=", body)
    return found


def program(header: str) -> str:
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "weightcache/weightcache.h"', ""]
    lines.append("int main(void) {")
    for name, members in structs(header).items():
        lines.append(f'  printf("struct {name} %zu\\n", sizeof({name}));')
        for member in members:
            lines.append(
                f'  printf("  {member} %zu %zu\\n", offsetof({name}, {member}), '
                f"sizeof((({name}*)0)->{member}));"
            )
    for name in constants(header):
        lines.append(f'  printf("{name} %d\\n", {name});')
    lines += ["  return 0;", "}", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    source, target = sys.argv[1:]
    text = without_comments(Path(source).read_text(encoding="utf-8"))
    Path(target).write_text(program(text), encoding="utf-8")
