"""Each rule of house.py on a tree made to break it, and then on this repository."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import house

ROOT = Path(__file__).resolve().parents[2]


class Made(unittest.TestCase):
    """Rules catch what they are for: a rule that can't complain protects nothing."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = Path(holder.name)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def test_direction_is_one_way(self) -> None:
        self.write("src/base/a.cpp", '#include "wire/codec.hpp"\n')
        self.write("src/daemon/b.cpp", '#include "memory/cuda/vmm.hpp"\n')
        self.write("src/daemon/c.cpp", '#include "memory/host/reserve.hpp"\n#include "base/fd.hpp"\n')
        self.write("src/attic/d.cpp", "\n")
        found = list(house.include_direction(self.root))
        self.assertEqual(len(found), 3, found)
        self.assertIn("src/attic/d.cpp", found[0])
        self.assertIn("src/base/a.cpp:1", found[1])
        self.assertIn("src/daemon/b.cpp:1", found[2])

    def test_lengths(self) -> None:
        self.write("src/base/long.cpp", "x\n" * 501)
        self.write("src/base/wide.cpp", "x" * 101 + "\n")
        self.write("src/base/fits.cpp", ("x" * 100 + "\n") * 500)
        self.assertEqual(len(list(house.lengths(self.root))), 2)

    def test_banned_words(self) -> None:
        self.write(
            "src/base/bad.cpp",
            "printf(1);\nassert(x);\nauto p = new Thing();\nthrow 1;\n::close(3);\n"
            "cuInit(0);\nsleep(1);\nint TODO = 1;\n",
        )
        self.write(
            "src/base/good.cpp",
            'static_assert(true);\nlog("printf(x)");\n// sleep(1)\nrenew (x);\nfd.close();\n',
        )
        found = list(house.banned_words(self.root))
        self.assertEqual(len(found), 8, found)
        self.assertTrue(all("bad.cpp" in complaint for complaint in found))

    def test_try_stands_alone(self) -> None:
        self.write(
            "src/base/a.cpp",
            "auto x = TRY(f());\nTRY(f());\n(void)TRY(f());\nx.y = TRY(f());\n"
            "const std::map<int, int> m =\n    TRY(f());\nstd::byte* p = TRY(f());\n",
        )
        self.assertEqual(list(house.try_stands_alone(self.root)), [])
        self.write("src/base/b.cpp", "return g(TRY(f()));\nauto y = 1 + TRY(f());\nreturn TRY(f());\n")
        self.assertEqual(len(list(house.try_stands_alone(self.root))), 3)

    def test_unbuilt_files_are_found(self) -> None:
        self.write("src/base/in.cpp", "")
        self.write("src/base/out_test.cpp", "")
        commands = self.write(
            "compile_commands.json",
            json.dumps([{"directory": str(self.root), "file": "src/base/in.cpp"}]),
        )
        found = list(house.everything_is_built(self.root, commands))
        self.assertEqual(found, ["src/base/out_test.cpp:1: is in no target"])

    def test_rooms_need_a_short_readme(self) -> None:
        (self.root / "src/base").mkdir(parents=True)
        self.write("src/wire/README.md", "x\n" * 16)
        self.assertEqual(len(list(house.rooms_have_readmes(self.root))), 2)

    def test_large_files_are_found(self) -> None:
        self.write("big.bin", "x" * (house.MAX_FILE_BYTES + 1))
        self.assertEqual(len(list(house.large_files(self.root, ["big.bin", "gone"]))), 1)

    def test_documents_must_list_codes_verbs_and_variables(self) -> None:
        self.write("include/weightcache/weightcache.h", "WC_NOT_FOUND = -2, WC_IO = -14\n")
        self.write("docs/PROTOCOL.md", "not_found\n")
        self.write("docs/CLI.md", "`load`\n")
        self.write("src/cli/verb_load.cpp", 'getenv("WEIGHTCACHE_SECRET")\n')
        self.write("src/cli/verb_ls.cpp", "\n")
        found = list(house.documents_list_everything(self.root))
        self.assertEqual(len(found), 3, found)


class ThisTree(unittest.TestCase):
    def complain(self, found: list[str]) -> None:
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_include_direction(self) -> None:
        self.complain(list(house.include_direction(ROOT)))

    def test_lengths(self) -> None:
        self.complain(list(house.lengths(ROOT)))

    def test_banned_words(self) -> None:
        self.complain(list(house.banned_words(ROOT)))

    def test_try_stands_alone(self) -> None:
        self.complain(list(house.try_stands_alone(ROOT)))

    def test_rooms_have_readmes(self) -> None:
        self.complain(list(house.rooms_have_readmes(ROOT)))

    def test_documents_list_everything(self) -> None:
        self.complain(list(house.documents_list_everything(ROOT)))

    def test_everything_is_built(self) -> None:
        build = os.environ.get("WEIGHTCACHE_BUILD")
        if build is None:
            self.skipTest("WEIGHTCACHE_BUILD names no build folder")
        self.complain(list(house.everything_is_built(ROOT, Path(build) / "compile_commands.json")))

    def test_no_large_file_is_tracked(self) -> None:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True, check=False
        )
        if listed.returncode != 0:
            self.skipTest("not a git checkout")
        self.complain(list(house.large_files(ROOT, listed.stdout.splitlines())))


if __name__ == "__main__":
    unittest.main()
