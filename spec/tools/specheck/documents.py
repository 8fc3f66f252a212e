"""Checks of the documents: links lead somewhere, and the OpenAPI description is valid."""

from collections.abc import Iterator
from pathlib import Path

from openapi_spec_validator import OpenAPIV31SpecValidator
from openapi_spec_validator.readers import read_from_filename
from referencing.exceptions import Unresolvable

from specheck import prose
from specheck.tree import Tree


def links_resolve(tree: Tree) -> list[str]:
    """Files and headings that the specification links to exist."""
    return [
        f"{tree.name(path)}:{line}: {target} leads nowhere"
        for path in tree.prose()
        for line, target in prose.links(path)
        if not target.startswith(("http://", "https://")) and not _resolves(path, target)
    ]


def _resolves(path: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    found = path.parent / file if file else path
    return found.exists() and (not anchor or (found.suffix == ".md" and anchor in prose.anchors(found)))


def openapi_is_valid(tree: Tree) -> list[str]:
    """openapi.yaml exists and follows OpenAPI 3.1."""
    path = tree.spec / "openapi.yaml"
    if not path.exists():
        return ["spec/openapi.yaml is missing"]
    return list(_faults(path))


def _faults(path: Path) -> Iterator[str]:
    document, base = read_from_filename(str(path))
    if not str(document.get("openapi", "")).startswith("3.1."):
        yield "openapi.yaml does not say openapi: 3.1.x"
        return
    try:
        for error in OpenAPIV31SpecValidator(document, base_uri=base).iter_errors():
            yield f"openapi.yaml {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
    except Unresolvable as error:
        yield f"openapi.yaml: the reference {error.ref} leads nowhere"
