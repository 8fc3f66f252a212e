"""The program as a whole: what it prints, and its exit code."""

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, must, replace, write
from specheck import musts, prose
from specheck.tree import Tree

OPENAPI = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\n"


@pytest.fixture
def complete(copy: Tree) -> Tree:
    """A copy in which nothing is missing: a test names every id that is not covered."""
    uncovered = [fault.split(" ")[0] for fault in musts.every_id_is_covered(copy)]
    write(copy.root, "python/tests/test_all.py", "\n".join(uncovered))
    write(copy.root, "spec/openapi.yaml", OPENAPI)
    for path in copy.prose():
        for _, target in prose.links(path):
            _make(path.parent / target.partition("#")[0], target)
    return copy


def _make(path: Path, target: str) -> None:
    """Makes what is linked to outside of the copy."""
    if "://" in target or path.exists():
        return
    folder = path if target.endswith("/") else path.parent
    folder.mkdir(parents=True, exist_ok=True)
    if folder != path:
        path.touch()


def run(root: Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "spec/tools/check.py"), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_everything_in_order(complete: Tree) -> None:
    code, output = run(complete.root)
    assert code == 0, output
    assert "FAIL" not in output
    assert "13 of 13 checks passed, 0 failed" in output
    assert "negative (" in output


FAULTS = {
    "vector": (
        "spec/vectors/topic.json",
        '"topic": "claims"',
        '"topic": "claims2"',
        "not what tools/generate.py makes",
    ),
    "form": ("spec/vectors/topic.json", '"comment"', '"remark"', "vectors[0]"),
    "json": ("spec/vectors/topic.json", "{", "[", "JSONDecodeError"),
    "schema": ("spec/vectors.schema.json", '"object"', '"objects"', "SchemaError"),
    "must": ("spec/limits.md", "Everything has a limit", "Everything MUST have a limit", "MUST without an id"),
    "link": ("spec/README.md", "(limits.md)", "(limit.md)", "limit.md leads nowhere"),
    "error": ("spec/errors.md", "| input | `topic-invalid`", "| parse | `topic-invalid`", "is not in errors.md"),
    "openapi": ("spec/openapi.yaml", "openapi: 3.1.0", "openapi: 2.0", "does not say openapi: 3.1.x"),
    "openapi-yaml": ("spec/openapi.yaml", "{title", "{{title", "Error"),
    "coverage": ("python/tests/test_all.py", must("KEY-001"), "", "has neither a vector nor a test"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_one_fault(complete: Tree, name: str) -> None:
    path, old, new, said = FAULTS[name]
    replace(complete.root, path, old, new)
    code, output = run(complete.root)
    assert code == 1
    assert "FAIL" in output
    assert said in output
    assert "Traceback" not in output
