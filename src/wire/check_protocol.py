"""docs/PROTOCOL.md against the sources: every message, field, enumerator, error code and limit.

With --self-test: removing any of them from the page is noticed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


def tables_of(schema: str) -> dict[str, list[str]]:
    found = re.findall(r"table\s+(\w+)\s*\{([^}]*)\}", schema)
    return {name: re.findall(r"(\w+)\s*:", body) for name, body in found}


def messages_of(schema: str) -> list[str]:
    return re.findall(r"\w+", re.search(r"union\s+Body\s*\{([^}]*)\}", schema)[1])


def enumerators_of(schema: str) -> Iterator[tuple[str, int]]:
    for body in re.findall(r"enum\s+\w+\s*:\s*\w+\s*\{([^}]*)\}", schema):
        for name, number in re.findall(r"(\w+)\s*=\s*(\d+)", body):
            yield name, int(number)


def codes_of(header: str) -> Iterator[tuple[str, int]]:
    for name, number in re.findall(r"WC_(\w+) = (-\d+)", header):
        yield name.lower(), int(number)


def limits_of(header: str) -> Iterator[tuple[str, int]]:
    for name, value in re.findall(r"constexpr\s+[\w:]+\s+(k\w+)\s*=\s*([^;]+);", header):
        yield name, eval(value, {"__builtins__": {}})  # products of literals, in our own header


def complaints(page: str, schema: str, header: str, limits: str) -> Iterator[str]:
    tables = tables_of(schema)
    messages = messages_of(schema)
    for name in messages:
        if f"**`{name}`**" not in page:
            yield f"the message {name} is not described"
    for name in tables.keys() - set(messages) - {"Message"}:
        if f"`{name}`" not in page:
            yield f"the record {name} is not described"
    for name, fields in tables.items():
        for field in fields:
            if f"`{field}`" not in page:
                yield f"{name}.{field} is not described"
    for name, number in enumerators_of(schema):
        if not re.search(rf"`{name}` {number}\b", page):
            yield f"the enumerator {name} = {number} is not described"
    for name, number in codes_of(header):
        if f"| {number} | `{name}` |" not in page:
            yield f"the code {name} ({number}) is not in the table of errors"
    section = page.split("\n## Limits\n")[1].split("\n## ")[0]
    for name, value in limits_of(limits):
        if name in ("kMinVersion", "kMaxVersion"):
            continue
        if not re.search(rf"(?<![\d,]){value:,}(?!,?\d)", section):
            yield f"the limit {name} = {value:,} is not in the list of limits"


def self_test(page: str, sources: tuple[str, str, str]) -> Iterator[str]:
    schema, header, limits = sources
    marks = [f"**`{name}`**" for name in messages_of(schema)]
    marks += [f"| {number} | `{name}` |" for name, number in codes_of(header)]
    marks += sorted({f"`{field}`" for fields in tables_of(schema).values() for field in fields})
    for mark in marks:
        if not list(complaints(page.replace(mark, ""), *sources)):
            yield f"the page without {mark} passes"
    for _, value in limits_of(limits):
        if value > 1 and not list(complaints(page.replace(f"{value:,}", "many"), *sources)):
            yield f"the page without the limit {value:,} passes"


def main() -> int:
    page = (ROOT / "docs/PROTOCOL.md").read_text(encoding="utf-8")
    sources = (
        without_comments((ROOT / "src/wire/messages.fbs").read_text(encoding="utf-8")),
        (ROOT / "include/weightcache/weightcache.h").read_text(encoding="utf-8"),
        without_comments((ROOT / "src/wire/limits.hpp").read_text(encoding="utf-8")),
    )
    check = self_test if "--self-test" in sys.argv else complaints
    found = list(check(page, sources) if check is self_test else check(page, *sources))
    for line in found:
        print(f"docs/PROTOCOL.md: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
