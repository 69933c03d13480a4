"""The documents: the tutorial runs, what is public is described, and links lead somewhere."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weightcache

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *(f"docs/{name}.md" for name in ("PYTHON", "TUTORIAL", "RECIPES", "ENGINES"))]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def test_the_tutorial_runs_from_its_first_block_to_its_last(daemon, folder):
    pytest.importorskip("transformers")
    found = blocks("docs/TUTORIAL.md", "python")
    assert len(found) >= 10
    script = folder / "tutorial.py"
    script.write_text("\n".join(found))
    done = subprocess.run(
        [sys.executable, script], cwd=folder, env=daemon.env, text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert "disconnected" in done.stdout and "tensors;" in done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_python_in_the_documents_is_python(page):
    for block in blocks(page, "python"):
        compile(block, page, "exec")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def public_things() -> list[tuple[str, object]]:
    found = []
    for module in (weightcache, *(getattr(weightcache, name) for name in weightcache._SUBMODULES)):
        for name in module.__all__:
            thing = getattr(module, name)
            found.append((f"{module.__name__}.{name}", thing))
            if inspect.isclass(thing) and thing.__module__.startswith("weightcache"):
                found += [
                    (f"{module.__name__}.{name}.{of}", member)
                    for of, member in vars(thing).items()
                    if not of.startswith("_") and inspect.isfunction(member)
                ]
    return found


UNDERSTOOD = {
    "items",
    "values",
    "keys",
    "tensors",
    "get_tensor",
    "get_tensors",
    "get_slice",
    "method_of",
}


def test_everything_public_is_described():
    bare = [
        name
        for name, thing in public_things()
        if callable(thing) and not inspect.getdoc(thing) and name.split(".")[-1] not in UNDERSTOOD
    ]
    assert bare == []


def test_the_reference_is_made_from_the_docstrings(run, folder):
    pytest.importorskip("pdoc")
    done = subprocess.run(
        [sys.executable, "-m", "pdoc", "--output-directory", folder / "reference", "weightcache"],
        text=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = {page.stem for page in (folder / "reference" / "weightcache").glob("*.html")}
    assert {"transformers", "safetensors", "quantization"} <= pages
    assert "iter_tensors" in (folder / "reference" / "weightcache.html").read_text()


def test_the_demo_shows_it_all_and_leaves_nothing(no_daemon, folder, every_type):
    env = {**no_daemon.env, "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir()
    command = [sys.executable, "-m", "weightcache", "demo"]
    for arguments in ([], [every_type[0]]):
        done = subprocess.run([*command, *arguments], env=env, text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "loaded:" in done.stdout and "resident:" in done.stdout
        assert "another process attached" in done.stdout and "leases" in done.stdout
        assert list((folder / "tmp").iterdir()) == []
    assert subprocess.run([*command, "--help"], env=env, capture_output=True).returncode == 0
    assert subprocess.run([*command, "a", "b"], env=env, capture_output=True).returncode == 2
