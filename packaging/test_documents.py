"""The manual pages and completion scripts that the build made: whole, valid, and of this program."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

CLI = Path(os.environ["WEIGHTCACHE_CLI"])
BUILD = Path(os.environ["WEIGHTCACHE_BUILD"])


def output_of(*command: str, **options) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def verbs() -> list[str]:
    """As --help lists them."""
    listed = output_of(str(CLI), "--help").split("\nverbs:\n")[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z]+)", listed, flags=re.MULTILINE)


class ManualPages(unittest.TestCase):
    def pages(self) -> list[Path]:
        return sorted((BUILD / "man").glob("*.1"))

    def test_there_is_one_for_each_verb_and_one_for_the_program(self):
        wanted = {"weightcache"} | {f"weightcache-{verb}" for verb in verbs()}
        self.assertEqual({page.stem for page in self.pages()}, wanted)

    def test_they_tell_every_option_of_their_verb(self):
        for verb in verbs():
            page = (BUILD / "man" / f"weightcache-{verb}.1").read_text(encoding="utf-8")
            for option in set(re.findall(r"--[a-z-]+", output_of(str(CLI), verb, "--help"))):
                self.assertIn(option.replace("-", "\\-"), page, verb)

    def test_groff_has_nothing_to_warn_of(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for page in self.pages():
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page],
                                  capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "", page)

    def test_man_shows_them(self):
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        shown = output_of("man", "-l", str(BUILD / "man" / "weightcache-load.1"),
                          env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        if "minimized" in shown or not shown.strip():
            self.skipTest("man is cut down on this machine")
        self.assertIn("weightcache load [OPTIONS] SOURCE", shown)

    def test_mandoc_finds_no_error(self):
        if not shutil.which("mandoc"):
            self.skipTest("mandoc is not installed")
        for page in self.pages():
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "error", page],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.stdout + done.stderr, "", page)


class Completion(unittest.TestCase):
    def script(self, shell: str) -> Path:
        return BUILD / "completion" / f"weightcache.{shell}"

    def test_the_shells_can_read_them(self):
        for shell in ("bash", "zsh", "fish"):
            with self.subTest(shell):
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed")
                subprocess.run([shell, "-n", self.script(shell)], check=True)

    def bash_offers(self, *words: str, names: str = "") -> list[str]:
        """What bash would offer for the last of `words`, the daemon holding `names`."""
        stand_in = f"weightcache() {{ printf '%s' {sh_quoted(names)}; }}"
        typed = " ".join(sh_quoted(word) for word in ("weightcache", *words))
        return output_of("bash", "-c", f"""
            source {sh_quoted(str(self.script("bash")))}
            {stand_in}
            COMP_WORDS=({typed})
            COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            _weightcache
            (( ${{#COMPREPLY[@]}} )) && printf '%s\\n' "${{COMPREPLY[@]}}"
            true""").splitlines()

    def test_bash_offers_verbs(self):
        self.assertEqual(sorted(self.bash_offers("")), sorted(verbs()))
        self.assertEqual(self.bash_offers("ver"), ["verify"])

    def test_bash_offers_the_options_of_the_verb(self):
        self.assertEqual(self.bash_offers("load", "--t"), ["--transport", "--timeout", "--tier", "--threads"])
        self.assertIn("--socket", self.bash_offers("rm", "--"))
        self.assertIn("--force", self.bash_offers("rm", "--"))

    def test_bash_offers_the_values_of_an_option(self):
        self.assertEqual(self.bash_offers("attach", "--access", "s"), ["shared"])
        self.assertEqual(self.bash_offers("ls", "--progress", "n"), ["none"])

    def test_bash_offers_the_names_of_entries(self):
        self.assertEqual(self.bash_offers("attach", "ll", names="llama-8b\nqwen\nllama-70b\n"),
                         ["llama-8b", "llama-70b"])

    def test_no_name_is_ever_run(self):
        mark = BUILD / "completion" / "was-run"
        offered = self.bash_offers("attach", "", names=f"$(touch {mark})\n`touch {mark}`\n")
        self.assertFalse(mark.exists())
        self.assertEqual(len(offered), 2)
        self.assertTrue(all("\\" in name for name in offered), offered)


def sh_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


if __name__ == "__main__":
    unittest.main()
