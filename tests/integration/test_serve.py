"""The daemon as a command: in the background, twice, stopped."""

import json
import os
import signal
import stat
import unittest
from pathlib import Path

from harness import Case, DaemonCase, eventually


def is_gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Detached(Case):
    def tearDown(self):
        if self.socket.exists():
            self.run_cli("stop", "--drop")

    def test_returns_when_it_answers(self):
        document = self.json_of("serve", "--detach")
        self.assertEqual(document["socket"], str(self.socket))
        status = self.json_of("status")
        self.assertEqual((status["pid"], status["epoch"]), (document["pid"], document["epoch"]))
        self.assertEqual(document["log"], str(self.socket.parent / "log"))
        self.assertIn("serves", (self.socket.parent / "log").read_text())
        self.assertEqual(stat.S_IMODE((self.socket.parent / "log").stat().st_mode), 0o600)

    def test_it_leaves_the_terminal_and_every_pipe_of_its_starter(self):
        out, err = self.run_cli("serve", "--detach")  # communicate() ends: no pipe is held
        self.assertRegex(out, r"^serving in the background: pid \d+, socket ")
        pid = self.json_of("status")["pid"]
        self.assertEqual(os.readlink(f"/proc/{pid}/cwd"), "/")
        supervisor = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        self.assertEqual(os.getsid(pid), supervisor)
        self.assertEqual(os.readlink(f"/proc/{supervisor}/cwd"), "/")
        for fd in (0, 1):
            self.assertEqual(os.readlink(f"/proc/{pid}/fd/{fd}"), "/dev/null")

    def test_a_second_one_is_refused_with_the_first_one_s_pid(self):
        first = self.json_of("serve", "--detach")
        for options in ((), ("--detach",)):
            self.assertIn(f"pid {first['pid']}", self.fails("busy", "serve", *options))
        self.assertEqual(self.json_of("status")["epoch"], first["epoch"])

    def test_what_prevents_it_is_told_to_the_starter(self):
        self.socket.parent.mkdir(mode=0o700)
        self.socket.write_text("a file of somebody's")
        self.assertIn("not a socket", self.fails("already_exists", "serve", "--detach"))
        self.assertEqual(self.socket.read_text(), "a file of somebody's")
        self.socket.unlink()

    def test_it_starts_again_after_kill_with_what_was_loaded(self):
        first = self.json_of("serve", "--detach")
        self.run_cli("load", self.checkpoint())
        os.kill(first["pid"], signal.SIGKILL)
        eventually(lambda: is_gone(first["pid"]), "its end")
        status = self.json_of("status")
        self.assertNotEqual(first["epoch"], status["epoch"])
        self.assertEqual(self.json_of("verify", "model")["mismatches"], [])

    def test_a_new_one_may_be_started_when_it_and_its_supervisor_were_killed(self):
        first = self.json_of("serve", "--detach")
        supervisor = os.getsid(first["pid"])
        os.kill(supervisor, signal.SIGSTOP)
        for pid in (first["pid"], supervisor):
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: is_gone(pid), "its end")
        second = self.json_of("serve", "--detach")
        self.assertNotEqual(first["epoch"], second["epoch"])

    def test_a_relative_socket_is_this_directory_s(self):
        self.env["WEIGHTCACHE_SOCKET"] = "here/socket"
        document = self.json_of("serve", "--detach")
        self.assertEqual(document["socket"], str(self.folder / "here" / "socket"))
        self.socket = self.folder / "here" / "socket"
        self.run_cli("ls")

    def test_stop_ends_it_and_its_helper(self):
        pid = self.json_of("serve", "--detach")["pid"]
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.assertTrue(children)
        self.run_cli("load", self.checkpoint())
        document = self.json_of("stop", "--drop")
        self.assertEqual((document["pid"], document["kept_bytes"]), (pid, 0))
        self.assertGreater(document["dropped_bytes"], 0)
        for process in (pid, *map(int, children)):
            eventually(lambda: is_gone(process), "the daemon's end")
        self.assertFalse(self.socket.exists())
        self.fails("disconnected", "ls")


class Stop(DaemonCase):
    def test_says_what_becomes_of_the_memory(self):
        self.run_cli("load", self.checkpoint())
        out, _ = self.run_cli("stop")
        self.assertRegex(out, r"^stopped the daemon \(pid \d+\): .* kept, .* given back\n$")
        self.end(self.daemon)

    def test_an_attached_reader_outlives_it(self):
        self.run_cli("load", self.checkpoint())
        reader = self.held_by_reader("model")
        self.run_cli("stop")
        self.end(self.daemon)
        self.assertIsNone(reader.poll())
        reader.terminate()
        self.end(reader)


class Group(Case):
    def test_a_group_may_enter(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        daemon = self.start("serve", "--json", "--group", "65534")
        json.loads(daemon.stdout.readline())
        self.assertEqual(stat.S_IMODE(self.socket.parent.stat().st_mode), 0o750)
        self.assertEqual(stat.S_IMODE(self.socket.stat().st_mode), 0o660)
        self.assertEqual(self.socket.parent.stat().st_gid, 65534)
        daemon.terminate()
        self.end(daemon)


if __name__ == "__main__":
    unittest.main()
