"""Checks of the MUSTs: each has an id, defined once; each id has a vector or a test; nobody names another id."""

import re
from collections import defaultdict
from collections.abc import Iterable

from specheck import prose
from specheck.tree import Tree

NAMED = re.compile(r"\bCL[-_]([A-Z]{3})[-_](\d{3})(?!\d)")
Where = dict[str, list[str]]


def every_must_has_an_id(tree: Tree) -> list[str]:
    return [
        f"{tree.name(path)}:{block.line}: MUST without an id"
        for path in tree.prose()
        for block in prose.blocks(path)
        if block.has_must() and not block.ids()
    ]


def every_id_is_defined_once(tree: Tree) -> list[str]:
    defined, mentioned = _defined(tree), _mentioned(tree)
    twice = [f"{must} is defined {len(at)} times: {', '.join(at)}" for must, at in defined.items() if len(at) > 1]
    dangling = [
        f"{at[0]}: {must} is mentioned and defined nowhere" for must, at in mentioned.items() if must not in defined
    ]
    return twice + dangling


def every_id_is_covered(tree: Tree) -> list[str]:
    covered = _in_vectors(tree).keys() | _in_tests(tree).keys()
    return [
        f"{must} ({at[0]}) has neither a vector nor a test"
        for must, at in _defined(tree).items()
        if must not in covered
    ]


def no_unknown_id_is_named(tree: Tree) -> list[str]:
    defined = _defined(tree)
    named = [*_in_vectors(tree).items(), *_in_tests(tree).items()]
    return [f"{at[0]}: names {must}, which is not in the specification" for must, at in named if must not in defined]


def coverage(tree: Tree) -> str:
    """How many ids there are, and what covers them."""
    defined, vectors, tests = _defined(tree).keys(), _in_vectors(tree).keys(), _in_tests(tree).keys()
    both = defined & (vectors | tests)
    return (
        f"{len(both)} of {len(defined)} covered, {len(defined & vectors)} by vectors, {len(defined & tests)} by tests"
    )


def _defined(tree: Tree) -> Where:
    return _where(
        (must, f"{tree.name(path)}:{block.line}")
        for path in tree.prose()
        for block in prose.blocks(path)
        if block.has_must()
        for must in block.ids()
    )


def _mentioned(tree: Tree) -> Where:
    pairs = ((path, block) for path in tree.prose() for block in prose.blocks(path))
    return _where((must, f"{tree.name(path)}:{block.line}") for path, block in pairs for must in block.ids())


def _in_vectors(tree: Tree) -> Where:
    return _where((must, vector["id"]) for _, vector in tree.vectors() for must in vector["covers"])


def _in_tests(tree: Tree) -> Where:
    sources = ((path, path.read_text("utf-8", errors="replace")) for path in tree.tests())
    return _where(
        (f"CL-{area}-{number}", tree.name(path)) for path, text in sources for area, number in NAMED.findall(text)
    )


def _where(pairs: Iterable[tuple[str, str]]) -> Where:
    found = defaultdict(list)
    for must, at in pairs:
        found[must].append(at)
    return dict(sorted(found.items()))
