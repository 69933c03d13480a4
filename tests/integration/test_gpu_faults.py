"""Each call of a GPU's driver fails once, at each of its uses: nothing leaks, nothing half-loaded is
seen, and the message names the call."""

import unittest

from gpus import GpuCase
from harness import eventually


class EachDriverCallFails(GpuCase):
    def test_of_a_load(self):
        folder = self.checkpoint()
        load = ("load", folder, "--device", "0", "--threads", 1)
        for status, err, nth in self.each_call_fails(*load):
            names = [name for name, _ in self.entries()]
            self.assertEqual(names, [] if status else ["model"], f"call {nth}: {err}")
            if not status:  # it was a clean-up call
                self.run_cli("evict", "model")
            eventually(lambda: self.used(0) == 0, f"the memory's return after call {nth}")
        self.assertEqual(self.json_of("verify", "model")["mismatches"], [])

    def test_of_an_attach(self):
        self.run_cli("load", self.checkpoint(), "--device", "0")
        for _, err, nth in self.each_call_fails("attach", "model"):
            entry = self.entries()["model", 1]
            self.assertEqual((entry["state"], entry["leases"]), ("published", 0), f"{nth}: {err}")
        self.assertEqual(self.json_of("verify", "model")["mismatches"], [])

    def test_of_a_verify(self):
        folder = self.checkpoint()
        self.run_cli("load", folder, "--device", "0")
        for _, err, nth in self.each_call_fails("verify", "model"):
            self.assertEqual(self.json_of("status")["leases"], 0, f"call {nth}: {err}")


if __name__ == "__main__":
    unittest.main()
