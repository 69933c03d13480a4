"""A machine of simulated GPUs under the program, in as many processes as a test likes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path

from harness import DaemonCase, eventually

LIBRARIES = Path(os.environ["WEIGHTCACHE_SIMULATED"])
GPU = [f"GPU-051a0000-0000-0000-0000-00000000000{n}" for n in range(2)]
MIB = 1 << 20


class GpuCase(DaemonCase):
    """Two GPUs. The daemon knows nothing of them: its environment names no driver. After each test
    no process has leaked anything of the driver's, and the GPUs are empty."""

    memory = "64MiB"

    def setUp(self) -> None:
        super().setUp()
        # On a tmpfs: the daemon takes no descriptor of a file that lies on a disk.
        self.machine = Path(tempfile.mkdtemp(prefix="wc-sim-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, self.machine, ignore_errors=True)
        self.addCleanup(self.gpus_are_empty)
        self.ledger = self.folder / "ledger"
        self.env |= {"WEIGHTCACHE_LIBCUDA": str(LIBRARIES / "libcuda.so.1"),
                     "WEIGHTCACHE_LIBNVML": str(LIBRARIES / "libnvidia-ml.so.1"),
                     "WEIGHTCACHE_SIM_DIR": str(self.machine), "WEIGHTCACHE_SIM_GPUS": "2",
                     "WEIGHTCACHE_SIM_MEMORY": self.memory,
                     "WEIGHTCACHE_SIM_LEDGER": str(self.ledger)}
        # Cleanups run in the other order: nothing_is_left() comes before gpus_are_empty().
        self.addCleanup(self.nothing_is_left)

    def gpus_are_empty(self) -> None:
        eventually(lambda: self.used(0) + self.used(1) == 0, "the GPUs' memory being free")
        self.nobody_leaked()

    def nobody_leaked(self) -> None:
        for line in self.ledger_lines():
            self.assertIn("nothing leaked", line)

    def ledger_lines(self) -> list[str]:
        """One for each process that ended in order."""
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    def used(self, gpu: int) -> int:
        """Bytes that some process holds: files whose lock can't be taken."""
        used = 0
        for path in (self.machine / f"gpu-{gpu}").glob("memory-*"):
            try:
                with path.open("rb") as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        used += path.stat().st_size
            except FileNotFoundError:
                pass  # swept by the simulation meanwhile
        return used

    def with_env(self, **variables: str) -> dict[str, dict[str, str]]:
        """For start() and all that is made of it."""
        return {"env": {**self.env, **variables}}

    def each_call_fails(self, *arguments: object):
        """Runs the program again and again, the driver's first call failing, then its second, ...,
        until it makes fewer. Yields its status, its stderr and which call it was."""
        for nth in range(1, 400):
            seen = len(self.ledger_lines())
            process = self.start(*arguments, **self.with_env(WEIGHTCACHE_SIM_FAIL=f"*:{nth}=999"))
            _, err = process.communicate(timeout=60)
            lines = self.ledger_lines()
            self.assertEqual(len(lines), seen + 1, err)
            self.assertIn("nothing leaked", lines[-1], f"call {nth}: {err}")
            if ", 0 failed" in lines[-1]:
                self.assertEqual(process.returncode, 0, err)
                self.assertGreater(nth, 15)
                return
            if process.returncode != 0:
                self.assertEqual(process.returncode, 1, err)
                self.assertRegex(err, r"cu[A-Z]\w+: CUDA_ERROR_UNKNOWN", f"call {nth}")
            yield process.returncode, err, nth
        raise AssertionError("the program makes calls without an end")

    def log(self) -> str:
        return (self.folder / "daemon.log").read_text()

    def maps_of(self, pid: int) -> str:
        return Path(f"/proc/{pid}/maps").read_text()

    def no_driver_in_the_daemon(self) -> None:
        """Nor in its supervisor."""
        for pid in {self.daemon.pid, self.service["pid"]}:
            self.assertIsNone(re.search(r"libcuda|libnvidia-ml", self.maps_of(pid)))
