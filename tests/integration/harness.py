"""A private daemon for each test, small checkpoints, and the program run as people run it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path

CLI = os.environ["WEIGHTCACHE_CLI"]
HOLDER = os.environ["WEIGHTCACHE_HOLDER"]

PATIENCE_S = 60  # how long anything may take before the test fails; nothing is measured by it
MIB = 1 << 20


def write_shard(path: Path, tensors: dict[str, bytes], holes: dict[str, int] | None = None) -> None:
    """A safetensors file: `tensors` by name, as U8; `holes` are tensors of zeros that take no room
    on the disk."""
    holes = holes or {}
    header, offset = {}, 0
    for name, size in [*((n, len(b)) for n, b in tensors.items()), *holes.items()]:
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(tensors.values()))
        file.truncate(8 + len(text) + offset)


def pattern(size: int, seed: int = 0) -> bytes:
    """Bytes that differ from seed to seed."""
    block = bytes((i * 31 + seed * 101 + 7) % 256 for i in range(1024))
    return (block * (size // len(block) + 1))[:size]


def eventually(condition: Callable[[], object], what: str) -> object:
    """The first true answer; fails if there is none in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true in {PATIENCE_S} s")
        time.sleep(0.01)
    return answer


class Case(unittest.TestCase):
    """Gives each test a folder of its own and an environment that sees nothing of the machine's."""

    user: int | None = None  # who runs everything; None: whoever runs the tests

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wc-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        if self.user is not None:
            os.chown(self.folder, self.user, self.user)
        self.socket = self.folder / "run" / "socket"
        kept = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"HOME": str(self.folder), "WEIGHTCACHE_SOCKET": str(self.socket),
                     "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        self.started: list[subprocess.Popen] = []
        self.addCleanup(self.end_everything)

    def end_everything(self) -> None:
        for process in reversed(self.started):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()  # passed on to the daemon: a supervisor that is killed is replaced
                try:
                    process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    process.kill()
            with process:  # closes its pipes, waits
                pass

    # ---- running -----------------------------------------------------------------------------

    def start(self, *arguments: object, program: str = CLI, **options) -> subprocess.Popen:
        """The program, in the background, its output in pipes."""
        defaults = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                    "stderr": subprocess.PIPE, "text": True, "env": self.env, "user": self.user,
                    "cwd": self.folder}
        process = subprocess.Popen([program, *map(str, arguments)], **{**defaults, **options})
        self.started.append(process)
        return process

    def end(self, process: subprocess.Popen, expect: int = 0) -> tuple[str, str]:
        """Its output, after it has ended as expected."""
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, expect, f"stdout: {out}\nstderr: {err}")
        return out, err

    def run_cli(self, *arguments: object, expect: int = 0, **options) -> tuple[str, str]:
        return self.end(self.start(*arguments, **options), expect)

    def json_of(self, *arguments: object, expect: int = 0, **options) -> dict:
        """The one document that --json prints."""
        out, err = self.run_cli(*arguments, "--json", expect=expect, **options)
        self.assertEqual(out.count("\n"), 1, f"not one line: {out!r}")
        document = json.loads(out)
        if expect == 0:
            self.assertNotIn("error", document)
        else:
            self.assertRegex(err, f"(?m)^weightcache: {document['error']['code']}: ")
        return document

    def fails(self, code: str, *arguments: object, **options) -> str:
        """The message, of a call that must fail with this code, in both ways of telling it."""
        status = {"invalid_argument": 2, "not_found": 3, "disconnected": 4, "timed_out": 5,
                  "exhausted": 6}.get(code, 1)
        out, err = self.run_cli(*arguments, expect=status, **options)
        self.assertEqual(out, "")
        self.assertTrue(err.splitlines()[-1].startswith(f"weightcache: {code}: "), err)
        document = self.json_of(*arguments, expect=status, **options)
        self.assertEqual(document["error"]["code"], code)
        return document["error"]["message"]

    # ---- things to load ----------------------------------------------------------------------

    def checkpoint(self, name: str = "model", seed: int = 0, tensors: int = 3,
                   size: int = 5000) -> Path:
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        write_shard(folder / "model.safetensors",
                    {f"layer.{i}.weight": pattern(size + i, seed + i) for i in range(tensors)})
        return folder

    def large_checkpoint(self, name: str = "large", mib: int = 1024) -> Path:
        """One that takes a while to read and no room on the disk."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        write_shard(folder / "model.safetensors", {"small": pattern(64)}, {"large": mib * MIB})
        return folder


class DaemonCase(Case):
    """With a daemon, which must have given everything back when the test's processes are gone."""

    serve_options: tuple[str, ...] = ()
    serve_settings: dict = {}

    def setUp(self) -> None:
        super().setUp()
        self.daemon = self.serve()
        self.addCleanup(self.nothing_is_left)

    def serve(self) -> subprocess.Popen:
        with (self.folder / "daemon.log").open("a") as log:
            daemon = self.start("serve", "--json", *self.serve_options, **self.serve_settings,
                                stderr=log)
        line = daemon.stdout.readline()
        self.assertTrue(line, (self.folder / "daemon.log").read_text())
        self.service = json.loads(line)
        return daemon

    def nothing_is_left(self) -> None:
        """Leases and loads end with their processes; memory goes with its entry; the daemon ends
        when it is told to."""
        for process in self.started:
            if process is not self.daemon and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        if self.daemon.poll() is not None:
            return
        self.daemon.send_signal(signal.SIGCONT)
        eventually(lambda: self.json_of("status")["leases"] == 0, "the end of all leases")
        entries = self.json_of("ls")["entries"]
        for fingerprint in {e["fingerprint"] for e in entries if e["state"] != "loading"}:
            self.run_cli("evict", f"@{fingerprint}", "--force")
        eventually(lambda: self.bytes_held() == 0, "the memory's return")
        self.assertEqual(self.json_of("ls")["entries"], [])
        stopped = self.json_of("stop")
        self.assertEqual(stopped["kept_bytes"] + stopped["dropped_bytes"], 0)
        self.end(self.daemon)

    def kill_for_good(self) -> None:
        """Supervisor and daemon: neither may start the other again."""
        self.daemon.send_signal(signal.SIGSTOP)
        os.kill(self.service["pid"], signal.SIGKILL)
        self.daemon.kill()
        self.daemon.wait()

    def bytes_held(self) -> int:
        devices = self.json_of("status")["devices"]
        return sum(d["bytes"] + d["loading_bytes"] + d["releasing_bytes"] for d in devices)

    def entries(self) -> dict[tuple[str, int], dict]:
        """Of ls, by name and generation."""
        return {(e["name"], e["generation"]): e for e in self.json_of("ls")["entries"]}

    def held_by_reader(self, name: str, *arguments: str, **options) -> subprocess.Popen:
        """A process that has attached and stays so."""
        reader = self.start("attach", name, "--hold", "--json", *arguments, **options)
        line = reader.stdout.readline()
        self.assertTrue(line, reader.stderr.read() if not line else "")
        reader.attached = json.loads(line)
        return reader

    @contextlib.contextmanager
    def being_loaded(self, name: str, size: int = 4096) -> Iterator[subprocess.Popen]:
        """Somebody loads `name` as long as this lasts; abandons it at the end, unless told to
        publish."""
        holder = self.start(name, size, program=HOLDER, stdin=subprocess.PIPE)
        self.assertEqual(holder.stdout.readline(), "granted\n",
                         holder.stderr.read() if holder.poll() else "")
        yield holder
        if holder.poll() is None:
            holder.stdin.close()
            holder.wait(PATIENCE_S)

    def order(self, holder: subprocess.Popen, text: str) -> None:
        holder.stdin.write(text + "\n")
        holder.stdin.flush()

    def stopped_while_loading(self, *arguments: object) -> subprocess.Popen:
        """A load that stands still (SIGSTOP) while it fills memory. On a fast machine it may end
        before it can be stopped; then another is tried."""
        for _ in range(20):
            loader = self.start("load", *arguments, "--threads", 1, "--progress", "none")
            while loader.poll() is None:
                states = [e for e in self.json_of("ls")["entries"] if e["state"] == "loading"]
                if not any(e["done_bytes"] > 0 for e in states):
                    continue
                loader.send_signal(signal.SIGSTOP)
                states = [e for e in self.json_of("ls")["entries"] if e["state"] == "loading"]
                if any(e["done_bytes"] < e["total_bytes"] * 0.9 for e in states):
                    return loader
                break
            loader.send_signal(signal.SIGCONT)
            loader.wait(PATIENCE_S)
            for entry in self.json_of("ls")["entries"]:
                self.run_cli("evict", entry["name"])
        raise AssertionError("no load was slow enough to be stopped while it filled memory")
