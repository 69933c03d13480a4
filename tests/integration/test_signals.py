"""Ctrl-C in every verb: it ends at once, says `cancelled`, and nothing of it stays."""

import json
import os
import signal
import unittest

from harness import DaemonCase, eventually


class CtrlC(DaemonCase):
    def interrupted(self, process, number=signal.SIGINT) -> str:
        """Of a process that is in the middle of it; its error message."""
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        out, err = self.end(process, expect=1)
        message = next(line for line in err.splitlines() if line.startswith("weightcache: "))
        self.assertTrue(message.startswith("weightcache: cancelled: "), err)
        self.assertEqual(json.loads(out)["error"]["code"], "cancelled")
        return message

    def connected(self, process) -> None:
        """Until it has a connection, or is as good as there."""
        def has_socket() -> bool:
            links = []
            for fd in os.scandir(f"/proc/{process.pid}/fd"):
                try:
                    links.append(os.readlink(fd.path))
                except OSError:
                    continue
            return any(link.startswith("socket:") for link in links)
        eventually(has_socket, "its connection")

    def test_no_verb_hangs_on_a_daemon_that_does_not_answer(self):
        folder = self.checkpoint()
        calls = (("ls",), ("status",), ("leases",), ("attach", "x"), ("attach", "x", "--hold"),
                 ("wait", "x"), ("verify", "x"), ("inspect", "x"), ("load", folder), ("evict", "x"),
                 ("pin", "x"), ("unpin", "x"), ("drain", "x"), ("stop",))
        os.kill(self.service["pid"], signal.SIGSTOP)
        processes = [self.start(*call, "--json") for call in calls]
        for process in processes:
            self.connected(process)
            self.interrupted(process)
        os.kill(self.service["pid"], signal.SIGCONT)
        eventually(lambda: self.json_of("status")["connections"] == 1, "the end of their connections")
        self.assertEqual(self.json_of("ls")["entries"], [])

    def test_a_load_gives_its_memory_back(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            loader = self.stopped_while_loading(self.large_checkpoint(), "--json")
            self.assertGreater(self.bytes_held(), 0)
            self.interrupted(loader, number)
            eventually(lambda: self.bytes_held() == 0, "the memory's return")
            self.assertEqual(self.json_of("ls")["entries"], [])

    def test_a_verify_ends_and_gives_its_lease_up(self):
        self.run_cli("load", self.large_checkpoint())
        verifier = self.start("verify", "large", "--json")
        eventually(lambda: verifier.poll() is not None or self.json_of("status")["leases"] == 1,
                   "the lease of verify")
        verifier.send_signal(signal.SIGSTOP)
        if self.json_of("status")["leases"] == 1:
            self.interrupted(verifier)
        eventually(lambda: self.json_of("status")["leases"] == 0, "the lease's end")

    def test_whoever_waits_stops_waiting(self):
        with self.being_loaded("model"):
            folder = self.checkpoint()
            for call in (("wait", "model"), ("attach", "model", "--wait", "1h"), ("load", folder),
                         ("wait", "nobody-loads-this")):
                before = self.json_of("status")["connections"]
                process = self.start(*call, "--json")
                eventually(lambda: self.json_of("status")["connections"] > before, "its connection")
                self.interrupted(process)
                eventually(lambda: self.json_of("status")["connections"] == before, "its end")

    def test_a_drain_that_is_interrupted_says_so_and_stays_draining(self):
        self.run_cli("load", self.checkpoint())
        self.held_by_reader("model")
        drain = self.start("drain", "model", "--json")
        eventually(lambda: self.entries()["model", 1]["state"] == "draining", "the drain's begin")
        self.interrupted(drain)
        self.assertEqual(self.entries()["model", 1]["state"], "draining")
        self.run_cli("drain", "model", "--undo")

    def test_the_end_of_a_hold_is_success(self):
        self.run_cli("load", self.checkpoint())
        for number in (signal.SIGINT, signal.SIGTERM):
            reader = self.held_by_reader("model")
            reader.send_signal(number)
            self.end(reader)
        eventually(lambda: self.json_of("status")["leases"] == 0, "the leases' end")

    def test_a_signal_that_the_starter_ignores_stays_ignored(self):
        self.run_cli("load", self.checkpoint())
        reader = self.held_by_reader(
            "model", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        reader.send_signal(signal.SIGINT)
        self.run_cli("attach", "model")
        self.assertIsNone(reader.poll())
        reader.terminate()
        self.end(reader)

    def test_the_daemon_in_the_foreground_ends_cleanly(self):
        self.daemon.send_signal(signal.SIGINT)
        self.end(self.daemon)
        self.fails("disconnected", "ls")
        self.assertFalse(self.socket.exists())


if __name__ == "__main__":
    unittest.main()
