"""300 readers on the 1,024 open files that an ordinary user has."""

import os
import resource
import signal
import unittest

from harness import CLI, DaemonCase, eventually

NOBODY = 65534
READERS = int(os.environ.get("WEIGHTCACHE_READERS", "300"))
FILES = 1024


def limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


class ManyReaders(DaemonCase):
    user = NOBODY if os.geteuid() == 0 else None
    serve_settings = {"preexec_fn": limit_files}

    def setUp(self):
        if self.user is not None and os.access(CLI, os.X_OK) and not self.reachable():
            self.skipTest(f"{CLI} is in a folder that other users cannot enter")
        super().setUp()

    def reachable(self) -> bool:
        pid = os.fork()
        if pid == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os._exit(0 if os.access(CLI, os.X_OK) else 1)
        return os.waitpid(pid, 0)[1] == 0

    def test_all_of_them_attach_and_all_leases_end(self):
        self.run_cli("load", self.checkpoint())
        held = self.bytes_held()
        pid = self.service["pid"]
        before = len(os.listdir(f"/proc/{pid}/fd"))
        readers = [self.start("attach", "model", "--hold", preexec_fn=limit_files)
                   for _ in range(READERS)]
        for reader in readers:
            self.assertTrue(reader.stdout.readline().startswith("attached"),
                            (reader.poll(), self.entries()))
        self.assertEqual(self.entries()["model", 1]["leases"], READERS)
        self.assertEqual(len(self.json_of("leases")["leases"]), READERS)
        self.assertEqual(self.bytes_held(), held)
        self.assertLess(len(os.listdir(f"/proc/{pid}/fd")), FILES)
        for at, reader in enumerate(readers):
            reader.send_signal(signal.SIGINT if at % 2 else signal.SIGKILL)
        for at, reader in enumerate(readers):
            self.end(reader, expect=0 if at % 2 else -signal.SIGKILL)
        eventually(lambda: self.entries()["model", 1]["leases"] == 0, "the leases' end")
        # Before, a connection of the calls above may not have been buried yet.
        eventually(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before, "its descriptors' end")


if __name__ == "__main__":
    unittest.main()
