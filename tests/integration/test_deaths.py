"""Processes killed at named points: memory comes back, and who waits takes over."""

import json
import os
import signal
import unittest

from harness import DaemonCase, eventually

POINTS = ("load.granted", "load.reserved", "load.filling", "load.filled", "load.manifest",
          "load.publishing")


class LoaderKilled(DaemonCase):
    def test_its_memory_comes_back(self):
        folder = self.checkpoint()
        for point in POINTS:
            with self.subTest(point):
                self.run_cli("load", folder, expect=-signal.SIGKILL,
                             env={**self.env, "WEIGHTCACHE_KILL_AT": point})
                eventually(lambda: self.bytes_held() == 0, "the memory's return")
                self.assertEqual(self.json_of("ls")["entries"], [])
        self.assertEqual(self.json_of("load", folder)["outcome"], "loaded")
        self.assertEqual(self.json_of("verify", "model")["mismatches"], [])

    def test_the_next_in_line_takes_over(self):
        folder = self.checkpoint()
        for point in POINTS:
            with self.subTest(point):
                with self.being_loaded("model"):
                    first = self.waiting_load(folder, WEIGHTCACHE_KILL_AT=point)
                    second = self.waiting_load(folder)
                # The holder has abandoned: the first is granted and dies; then the second.
                self.end(first, expect=-signal.SIGKILL)
                out, _ = self.end(second)
                loaded = json.loads(out)
                self.assertEqual(loaded["outcome"], "loaded")
                self.assertEqual(self.json_of("verify", "model")["mismatches"], [])
                eventually(lambda: self.bytes_held() == loaded["bytes"], "the first one's memory")
                self.run_cli("evict", "model")

    def waiting_load(self, folder, **variables):
        loader = self.start("load", folder, "--json", "--progress", "plain",
                            env={**self.env, **variables})
        self.assertIn("waiting for another process that loads it", loader.stderr.readline())
        return loader

    def test_killed_in_the_middle_of_it(self):
        loader = self.stopped_while_loading(self.large_checkpoint())
        self.assertGreater(self.bytes_held(), 0)
        loader.kill()
        eventually(lambda: self.bytes_held() == 0, "the memory's return")
        self.assertEqual(self.json_of("ls")["entries"], [])


class ReaderKilled(DaemonCase):
    def test_its_lease_ends_and_others_keep_theirs(self):
        self.run_cli("load", self.checkpoint())
        dying, living = self.held_by_reader("model"), self.held_by_reader("model")
        self.assertEqual(self.entries()["model", 1]["leases"], 2)
        dying.kill()
        eventually(lambda: self.entries()["model", 1]["leases"] == 1, "the lease's end")
        (lease,) = self.json_of("leases")["leases"]
        self.assertEqual(lease["pid"], living.pid)

    def test_a_drain_ends_with_the_last_reader(self):
        self.run_cli("load", self.checkpoint())
        reader = self.held_by_reader("model")
        drain = self.start("drain", "model", "--json")
        eventually(lambda: self.entries()["model", 1]["state"] == "draining", "the drain's begin")
        reader.kill()
        self.end(drain)
        self.run_cli("drain", "model", "--undo")


class DaemonKilled(DaemonCase):
    def test_what_is_loaded_and_held_outlives_it(self):
        self.run_cli("load", self.checkpoint())
        reader = self.held_by_reader("model")
        os.kill(self.json_of("status")["pid"], signal.SIGKILL)
        eventually(lambda: self.json_of("status")["epoch"] != self.service["epoch"], "the next one")
        self.assertEqual(self.entries()["model", 1]["leases"], 1)
        self.assertEqual(self.json_of("verify", "model")["mismatches"], [])
        reader.send_signal(signal.SIGINT)
        self.end(reader)

    def test_readers_live_on_and_calls_say_disconnected(self):
        self.run_cli("load", self.checkpoint())
        reader = self.held_by_reader("model")
        with self.being_loaded("other"):
            waiting = self.start("wait", "other", "--json")
            eventually(lambda: self.json_of("status")["connections"] >= 4, "the waiter's connection")
            self.kill_for_good()
            self.end(waiting, expect=4)
        self.assertIsNone(reader.poll())
        reader.send_signal(signal.SIGINT)
        self.end(reader)
        self.fails("disconnected", "ls")


if __name__ == "__main__":
    unittest.main()
