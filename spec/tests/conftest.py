"""What the tests of the checker share: a small specification to break, and a copy of the real one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specheck.tree import Tree

ROOT = Path(__file__).resolve().parent.parent.parent


def must(name: str) -> str:
    """An id that exists in no specification but the small one; put together, so that nobody takes it for coverage."""
    return "CL" + "-" + name


def bracketed(name: str) -> str:
    return f"[{must(name)}]"


@pytest.fixture
def small(tmp_path: Path) -> Tree:
    """A specification of two MUSTs, one covered by a vector and one by a test."""
    write(tmp_path, "spec/rules.md", f"# Rules\n\nIt MUST hold. {bracketed('TST-001')}\n\n| x | y |\n| --- | --- |\n")
    write(tmp_path, "spec/more.md", f"| It MUST work. | {bracketed('TST-002')} |\n\nSee [rules](rules.md#rules).\n")
    write(tmp_path, "spec/vectors/topic.json", json.dumps({"kind": "topic", "vectors": [a_vector("TST-001")]}))
    write(tmp_path, "python/tests/test_it.py", f"# {must('TST-002')}\n")
    return Tree(tmp_path)


@pytest.fixture
def copy(tmp_path: Path) -> Tree:
    """A copy of the real prose and vectors."""
    ignored = shutil.ignore_patterns(".venv", "build", "tools", "tests", "__pycache__")
    shutil.copytree(ROOT / "spec", tmp_path / "spec", ignore=ignored)
    return Tree(tmp_path)


def a_vector(covered: str) -> dict[str, Any]:
    given = {"topic": "claims"}
    return {"id": "topic-x", "comment": "x", "covers": [must(covered)], "input": given, "result": "ok", "output": {}}


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def replace(root: Path, name: str, old: str, new: str) -> None:
    """Replaces what must be there."""
    text = (root / name).read_text("utf-8")
    assert old in text
    write(root, name, text.replace(old, new, 1))


def edit(tree: Tree, kind: str, change: Callable[[dict[str, Any]], object]) -> Tree:
    """The same tree after a change of the first vector of a kind."""
    path = tree.spec / "vectors" / f"{kind}.json"
    file = json.loads(path.read_text("utf-8"))
    change(file["vectors"][0])
    path.write_text(json.dumps(file), "utf-8")
    return Tree(tree.root)


def keep(tree: Tree, kind: str, name: str) -> Tree:
    """The same tree with this one vector and no other."""
    kept = [vector for _, vector in tree.vectors() if vector["id"] == name]
    assert len(kept) == 1
    for path in (tree.spec / "vectors").glob("*.json"):
        path.unlink()
    write(tree.root, f"spec/vectors/{kind}.json", json.dumps({"kind": kind, "vectors": kept}))
    return Tree(tree.root)
