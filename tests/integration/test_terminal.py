"""On a terminal: tables that fit it, colours unless they are unwanted, a bar that leaves no trace."""

import fcntl
import os
import pty
import re
import struct
import termios
import unittest

from harness import DaemonCase

ESCAPE = re.compile(r"\x1b\[[0-9;]*[mK]")


class Terminal(DaemonCase):
    def on_terminal(self, *arguments: object, columns: int = 80, which: str = "stdout",
                    **env: str) -> str:
        """What a terminal of this width gets."""
        main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.start(*arguments, env={**self.env, **env}, **{which: other})
        os.close(other)
        parts = []
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # EIO: the other end is closed
                break
            if not part:
                break
            parts.append(part)
        os.close(main)
        self.end(process)
        return b"".join(parts).decode().replace("\r\n", "\n")

    def setUp(self):
        super().setUp()
        self.run_cli("load", self.checkpoint("a-model-whose-name-is-as-long-as-names-really-are"))
        self.run_cli("load", self.checkpoint("short", seed=1))

    def test_tables_fit(self):
        for columns in (40, 60, 80, 120):
            for verb in ("ls", "status"):
                shown = ESCAPE.sub("", self.on_terminal(verb, columns=columns))
                table = shown[shown.find("NAME" if verb == "ls" else "DEVICE"):]
                self.assertLessEqual(max(map(len, table.splitlines())), columns, shown)
        wide = ESCAPE.sub("", self.on_terminal("ls", columns=200))
        self.assertIn("a-model-whose-name-is-as-long-as-names-really-are", wide)
        narrow = ESCAPE.sub("", self.on_terminal("ls", columns=50))
        self.assertIn("…", narrow)
        self.assertIn("short", narrow)

    def test_colours_only_where_they_are_wanted(self):
        self.assertIn("\x1b[32mpublished\x1b[0m", self.on_terminal("ls"))
        self.assertNotIn("\x1b", self.on_terminal("ls", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal("ls", TERM="dumb"))
        self.assertIn("\x1b[32m", self.on_terminal("ls", NO_COLOR=""))
        self.assertNotIn("\x1b", self.run_cli("ls")[0])

    def test_json_is_the_same_on_a_terminal(self):
        self.assertNotIn("\x1b", self.on_terminal("ls", "--json"))

    def test_the_bar_goes_away(self):
        shown = self.on_terminal("load", self.large_checkpoint(mib=64), which="stderr")
        self.assertTrue(shown.startswith("\r\x1b[Kloading"), repr(shown))
        self.assertTrue(shown.endswith("\r\x1b[K"), repr(shown[-80:]))
        self.assertIn("MiB", shown)
        for columns in (20, 40, 80):
            shown = self.on_terminal("verify", "large", columns=columns, which="stderr")
            for drawn in re.split(r"\r\x1b\[K|\n", shown):
                self.assertLess(len(drawn), columns)

    def test_no_progress_when_none_is_wanted(self):
        shown = self.on_terminal("load", self.large_checkpoint(mib=64), "--progress", "none",
                                 which="stderr")
        self.assertEqual(shown, "")

    def test_help_fits(self):
        for columns in (60, 80):
            shown = self.on_terminal("load", "--help", columns=columns)
            prose = shown[:shown.index("\nexamples:")]
            for line in prose.splitlines():
                self.assertLessEqual(len(line), columns, line)


if __name__ == "__main__":
    unittest.main()
