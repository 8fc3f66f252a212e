"""Checks the specification and its vectors: python check.py [ROOT]. Exit code 1 and a list if anything is wrong."""

import sys
from collections.abc import Callable
from pathlib import Path

from specheck import documents, musts, vectors
from specheck.tree import Tree

ROOT = Path(__file__).resolve().parent.parent.parent
Check = Callable[[Tree], list[str]]
CHECKS: dict[str, Check] = {
    "vectors follow vectors.schema.json": vectors.schema,
    "vector ids are unique": vectors.unique_ids,
    "there are enough vectors, and enough negative ones": vectors.enough,
    "vectors are what tools/generate.py makes": vectors.regenerated,
    "errors of vectors are in errors.md with their layer": vectors.errors_are_specified,
    "HTTP statuses have the codes of errors.md": vectors.statuses_are_specified,
    "a model with Tink as its cipher agrees with every vector": vectors.model_agrees,
    "every MUST has an id": musts.every_must_has_an_id,
    "every id is defined, once": musts.every_id_is_defined_once,
    "no vector or test names an unknown id": musts.no_unknown_id_is_named,
    "every id has a vector or a test": musts.every_id_is_covered,
    "links lead somewhere": documents.links_resolve,
    "openapi.yaml is valid OpenAPI 3.1": documents.openapi_is_valid,
}


def run(tree: Tree) -> int:
    """Runs all checks and prints what they find; the number of checks that failed."""
    failed = sum(_report(title, check, tree) for title, check in CHECKS.items())
    for title, count in (("vectors", vectors.counts), ("MUST ids", musts.coverage)):
        print(f"{title}: {_counted(count, tree)}")
    print(f"spec check: {len(CHECKS) - failed} of {len(CHECKS)} checks passed, {failed} failed")
    return failed


def _counted(count: Callable[[Tree], str], tree: Tree) -> str:
    try:
        return count(tree)
    except (KeyError, TypeError, ValueError) as error:
        return f"cannot be counted ({type(error).__name__})"


def _report(title: str, check: Check, tree: Tree) -> bool:
    try:
        found = check(tree)
    except Exception as error:  # noqa: BLE001 - a broken input fails its check and must not hide the others
        found = [f"{type(error).__name__}: {error}"]
    print(f"{'FAIL' if found else 'ok  '}  {title}")
    for problem in found:
        print(f"      {problem}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(min(run(Tree(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)), 1))
