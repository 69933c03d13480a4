"""The package as a thing: its structs, its program, its types, what it needs."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import weightcache
from weightcache import _structs

LAYOUT = Path(__file__).parents[1] / "abi" / "layout.txt"


def test_the_structs_lie_as_the_c_compiler_lays_them():
    layout: dict[str, dict[str, tuple[int, int]]] = {}
    current = ""
    for line in LAYOUT.read_text().splitlines():
        words = line.split()
        if words[0] == "struct":
            current = words[1]
            layout[current] = {"": (0, int(words[2]))}
        elif line.startswith("  "):
            layout[current][words[0]] = (int(words[1]), int(words[2]))
    checked = 0
    for struct in vars(_structs).values():
        if not (isinstance(struct, type) and struct.__name__ in layout):
            continue
        expected = layout[struct.__name__]
        assert ctypes.sizeof(struct) == expected[""][1], struct.__name__
        actual = {
            name: (getattr(struct, name).offset, getattr(struct, name).size)
            for name, *_ in struct._fields_
        }
        actual["struct_size"] = (0, 8)
        assert {**actual, "": expected[""]} == expected, struct.__name__
        checked += 1
    assert checked >= 20


def test_the_command_line_is_python_m_weightcache(daemon):
    for command in (
        [sys.executable, "-m", "weightcache"],
        [str(Path(sys.executable).parent / "weightcache")],
    ):
        done = subprocess.run(
            [*command, "status", "--json"], env=daemon.env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert '"epoch"' in done.stdout
    failed = subprocess.run([*command, "attach", "nothing"], env=daemon.env, capture_output=True)
    assert failed.returncode == 3


def test_importing_it_imports_no_framework(run):
    run("""
import sys, weightcache
assert not {"torch", "numpy", "jax", "transformers"} & set(sys.modules)
assert weightcache.__version__.count(".") == 2
""")


def test_every_public_name_is_there():
    for name in weightcache.__all__:
        assert getattr(weightcache, name) is not None
