"""Installs a build into a folder of its own, builds the examples against what lies there (by
find_package and by pkg-config), and runs them with the installed daemon.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 120


def run(command: list[str], environment: dict[str, str] | None = None, status: int = 0) -> str:
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS
    )
    if result.returncode != status:
        raise SystemExit(
            f"{' '.join(command)}: status {result.returncode}, expected {status}\n"
            f"{result.stdout}{result.stderr}"
        )
    return result.stdout + result.stderr


def expect(text: str, *parts: str) -> None:
    for part in parts:
        if part not in text:
            raise SystemExit(f"\"{part}\" is not in:\n{text}")


def build_examples(arguments: argparse.Namespace, prefix: Path, build: Path) -> None:
    flags = f"-fsanitize={arguments.sanitize}" if arguments.sanitize else ""
    # A C program with a sanitized C++ library needs the C++ part of the run-time (clang).
    c_flags = f"{flags} -fsanitize-link-c++-runtime" if arguments.sanitize else ""
    run([arguments.cmake, "-S", arguments.examples, "-B", str(build), "-G", arguments.generator,
         f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={arguments.cc}",
         f"-DCMAKE_CXX_COMPILER={arguments.cxx}", f"-DCMAKE_C_FLAGS={c_flags}",
         f"-DCMAKE_CXX_FLAGS={flags}",
         f"-DCMAKE_C_STANDARD_LIBRARIES={'-lstdc++' if arguments.sanitize else ''}"])
    run([arguments.cmake, "--build", str(build)])


def build_by_pkg_config(arguments: argparse.Namespace, prefix: Path, program: Path) -> None:
    pkg_config = shutil.which("pkg-config")
    found = list(prefix.rglob("weightcache.pc"))
    if len(found) != 1:
        raise SystemExit(f"weightcache.pc is not installed once: {found}")
    if pkg_config is None or arguments.sanitize:
        return
    environment = {**os.environ, "PKG_CONFIG_PATH": str(found[0].parent)}
    # The prefix that it was configured with is not where this test has put it.
    flags = run([pkg_config, f"--define-variable=prefix={prefix}", "--cflags", "--libs",
                 "weightcache"], environment).split()
    source = str(Path(arguments.examples) / "attach.c")
    run([arguments.cc, "-std=c99", source, "-o", str(program), *flags])


@contextmanager
def daemon(prefix: Path, socket: Path) -> Iterator[None]:
    """The installed daemon, from its first answer to its end in order."""
    command = [str(prefix / "bin/weightcache"), "serve", "--socket", str(socket)]
    with (socket.parent.parent / "log").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            for _ in range(400):
                done = subprocess.run(
                    [str(prefix / "bin/weightcache"), "status", "--socket", str(socket)],
                    capture_output=True, timeout=SECONDS)
                if done.returncode == 0:
                    break
                time.sleep(0.05)
            else:
                log.seek(0)
                raise SystemExit(f"the daemon never answered:\n{log.read()}")
            yield
        finally:
            process.terminate()
            ended = process.wait(SECONDS)
        if ended != 0:
            log.seek(0)
            raise SystemExit(f"the daemon ended with {ended}:\n{log.read()}")


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("cmake", "build", "generator", "examples", "cc", "cxx", "sanitize"):
        parser.add_argument(f"--{name}", default="")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weightcache-install-") as temporary:
        folder = Path(temporary)
        prefix, build, runtime = folder / "prefix", folder / "build", folder / "run"
        runtime.mkdir(mode=0o700)
        run([arguments.cmake, "--install", arguments.build, "--prefix", str(prefix)])
        build_examples(arguments, prefix, build)
        build_by_pkg_config(arguments, prefix, folder / "attach-by-pkg-config")

        environment = {**os.environ, "WEIGHTCACHE_SOCKET": str(runtime / "socket")}
        library = next(prefix.rglob("libweightcache.so")).parent
        environment["LD_LIBRARY_PATH"] = str(library)
        expect(run([str(build / "attach"), "example"], environment, 1), "disconnected", "socket")
        with daemon(prefix, runtime / "socket"):
            expect(run([str(build / "publish")], environment),
                   "example@1 loaded", "layer.counts I64 24 bytes", "layer.weight: 1 2 3 4 5 6")
            expect(run([str(build / "publish"), "second"], environment), "resident already")
            for program in (build / "attach", folder / "attach-by-pkg-config"):
                if program.exists():
                    expect(run([str(program), "example"], environment),
                           "example@1: 2 tensors", "F32   [2, 3] 24 bytes: 00 00 80 3f")
            expect(run([str(build / "attach"), "nothing"], environment, 1), "not_found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
