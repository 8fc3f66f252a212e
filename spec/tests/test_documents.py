"""The checks of links and of openapi.yaml, fed with documents that break them."""

import pytest

from conftest import write
from specheck import documents
from specheck.tree import Tree

OPENAPI = "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\n"


def test_links_that_resolve(small: Tree) -> None:
    write(small.root, "spec/decisions/1.md", "[up](../rules.md) [folder](../decisions/) [here](#a-b)\n\n## A `b`!\n")
    write(small.root, "spec/out.md", "[out](https://example.org/x) `[CL](x)` is text\n\n```\n[code](nowhere.md)\n```\n")
    write(small.root, "spec/x", "")
    assert documents.links_resolve(small) == []


@pytest.mark.parametrize(
    "target",
    ["nowhere.md", "../nowhere/", "rules.md#nowhere", "#nowhere", "vectors/topic.json#rules", "file:///etc/passwd"],
)
def test_links_that_do_not(small: Tree, target: str) -> None:
    write(small.root, "spec/bad.md", f"# Bad\n\ntext\n[x]({target})\n")
    assert documents.links_resolve(small) == [f"spec/bad.md:4: {target} leads nowhere"]


def test_openapi_that_is_valid(small: Tree) -> None:
    write(small.root, "spec/openapi.yaml", OPENAPI)
    assert documents.openapi_is_valid(small) == []


def test_openapi_that_is_missing(small: Tree) -> None:
    assert documents.openapi_is_valid(small) == ["spec/openapi.yaml is missing"]


@pytest.mark.parametrize(
    "text",
    [
        OPENAPI.replace("3.1.0", "3.0.3"),
        OPENAPI.replace("openapi:", "swagger:"),
        OPENAPI.replace("title: t, ", ""),
        OPENAPI.replace("{}", "{/a: {get: {responses: {'200': {}}}}}"),
        OPENAPI.replace("{}", "{'/a/{b}': {get: {responses: {'200': {description: d}}}}}"),
        OPENAPI.replace("{}", "{/a: {get: {responses: {'200': {$ref: '#/components/responses/none'}}}}}"),
    ],
)
def test_openapi_that_is_not_valid(small: Tree, text: str) -> None:
    write(small.root, "spec/openapi.yaml", text)
    assert len(documents.openapi_is_valid(small)) > 0
