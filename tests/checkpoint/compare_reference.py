"""Compares this reader's verdict with the reference implementation's (PyPI `safetensors`).

Thousands of files from a seed: what the reference refuses, this reader refuses; what only this one
refuses, it refuses by one of the rules in which it is meant to be stricter, told by its message; what
both accept, they read as the same tensors. A difference is printed with the seed and the file kept.

    python compare_reference.py --verdict build/.../checkpoint_verdict --python VENV/bin/python
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mutations import Maker

# Rule -> how this reader's message says that it is broken.
STRICTER = {
    4: r"the header starts with ",
    5: r"of the header, after the object, is 0x",
    8: r"nested deeper than 3 levels",
    9: r"stands twice",
    10: r"\"__metadata__\"(: the value of .*)? is .*, not (an object of text to )?text",
    11: r"it has a further field|tensor .*: (it|dtype) is an? (array|object), not ",
    12: r"tensor's name is empty|its name is .* bytes long|its name has a control character",
    14: r"a dimension of shape is \"\d+\", past|shape has more than 64 dimensions",
    16: r"the product of the dimensions is past",
    26: r"more than 1,000,000 tensors",
}

REFERENCE = """
import json, sys
from safetensors import deserialize, safe_open
for line in sys.stdin:
    path = line.rstrip("\\n")
    try:
        with open(path, "rb") as file:
            tensors = {name: [part["dtype"], list(part["shape"]), len(part["data"])]
                       for name, part in deserialize(file.read())}
        with safe_open(path, "np") as file:
            metadata = file.metadata() or {}
        print("ok\\t" + json.dumps({"tensors": tensors, "metadata": metadata}), flush=True)
    except Exception as error:
        print("refused\\t" + repr(str(error)), flush=True)
"""


def ask(command: list[str], paths: list[Path]) -> list[tuple[str, str]]:
    """A program's verdict on each: the word, and what follows it."""
    asked = subprocess.run(command, input="".join(f"{path}\n" for path in paths), text=True,
                           capture_output=True)
    lines = asked.stdout.split("\n")[:-1]  # a name may hold U+2028, which splitlines() takes for an end
    if asked.returncode != 0 or len(lines) != len(paths):
        sys.exit(f"{command[0]}: status {asked.returncode}, {len(lines)} of {len(paths)} answers: "
                 f"{asked.stderr[-2000:]}")
    return [tuple(line.split("\t", 1)) for line in lines]  # type: ignore[misc]


def rule_of(message: str) -> int | None:
    return next((rule for rule, shape in STRICTER.items() if re.search(shape, message)), None)


def same(ours: str, theirs: str) -> bool:
    mine, other = json.loads(ours), json.loads(theirs)
    tensors = {name: [part["dtype"], part["shape"], part["bytes"]]
               for name, part in mine["tensors"].items()}
    return tensors == other["tensors"] and mine["metadata"] == other["metadata"]


def difference(ours: tuple[str, str], theirs: tuple[str, str]) -> str | None:
    if ours[0] == "ok":
        if theirs[0] != "ok":
            return f"only the reference refuses: {theirs[1]}"
        return None if same(ours[1], theirs[1]) else f"read otherwise: {ours[1]} {theirs[1]}"
    if ours[0] != "corrupt":
        return f"the code is {ours[0]}: {ours[1]}"
    if theirs[0] == "ok" and rule_of(ours[1]) is None:
        return f"only this reader refuses, by no rule in which it is stricter: {ours[1]}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verdict", required=True, help="checkpoint_verdict, as built")
    parser.add_argument("--python", default=sys.executable, help="a Python with safetensors, numpy")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--files", type=int, default=6000)
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    print(f"seed {seed}")
    maker = Maker(seed)
    folder = Path(tempfile.mkdtemp(prefix="wc-reference-"))
    kinds, paths = [], []
    for number in range(options.files):
        kind, content = maker.any()
        path = folder / f"{number:05}-{kind}.safetensors"
        path.write_bytes(content)
        kinds.append(kind)
        paths.append(path)
    ours = ask([options.verdict], paths)
    theirs = ask([options.python, "-c", REFERENCE], paths)
    counts: collections.Counter[str] = collections.Counter()
    bad = 0
    for path, mine, other in zip(paths, ours, theirs):
        told = difference(mine, other)
        if told is not None:
            bad += 1
            print(f"seed {seed}: {path}: {told}")
        both = mine[0] == "ok" and other[0] == "ok"
        neither = mine[0] != "ok" and other[0] != "ok"
        counts["both accept" if both else "both refuse" if neither else
               f"only this one refuses, rule {rule_of(mine[1])}"] += 1
    for what, count in sorted(counts.items()):
        print(f"{count:6} {what}")
    # A comparison of nothing but refusals, or without a single stricter one, would prove little.
    poor = counts["both accept"] < options.files // 20 or counts["both refuse"] < options.files // 20
    if poor or not any(what.startswith("only") for what in counts):
        print("too few files of a kind: the comparison proves nothing")
        bad += 1
    if bad == 0:
        shutil.rmtree(folder)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
