"""The checks of MUSTs and ids, fed with specifications that break them."""

import pytest

from conftest import bracketed, must, replace, write
from specheck import musts
from specheck.tree import Tree


def test_small_specification_passes(small: Tree) -> None:
    assert musts.every_must_has_an_id(small) == []
    assert musts.every_id_is_defined_once(small) == []
    assert musts.every_id_is_covered(small) == []
    assert musts.no_unknown_id_is_named(small) == []
    assert musts.coverage(small) == "2 of 2 covered, 1 by vectors, 1 by tests"


@pytest.mark.parametrize(
    "text",
    [
        "It MUST do this.",
        "A long sentence that goes\non and MUST NOT end.",
        "| It MUST do this. | no id |",
        f"- It MUST do this. {bracketed('TST-003')}\n- It MUST do that.",
        f"A paragraph. {bracketed('TST-001')}\n\nIt MUST do this.",
        f"Text {bracketed('TST-001')}:\n| It MUST do this. |",
        "It MUST do this. [TST-003]",
    ],
)
def test_must_without_id(small: Tree, text: str) -> None:
    write(small.root, "spec/bad.md", text)
    assert len(musts.every_must_has_an_id(small)) == 1


@pytest.mark.parametrize("text", ["A must.", "MUSTARD", "```\nIt MUST do this.\n```", "MUST is a word of RFC 2119."])
def test_not_a_must(small: Tree, text: str) -> None:
    write(small.root, "spec/good.md", text)
    assert musts.every_must_has_an_id(small) == []


def test_id_defined_twice(small: Tree) -> None:
    write(small.root, "spec/twice.md", f"It MUST hold again. {bracketed('TST-001')}")
    assert "defined 2 times: spec/rules.md:3, spec/twice.md:1" in musts.every_id_is_defined_once(small)[0]


def test_id_mentioned_but_not_defined(small: Tree) -> None:
    write(small.root, "spec/mention.md", f"See {bracketed('TST-009')}.")
    assert "defined nowhere" in musts.every_id_is_defined_once(small)[0]


def test_id_mentioned_beside_its_definition(small: Tree) -> None:
    write(small.root, "spec/mention.md", f"See {bracketed('TST-001')}.")
    assert musts.every_id_is_defined_once(small) == []


def test_id_without_vector_and_test(small: Tree) -> None:
    write(small.root, "spec/new.md", f"It MUST be tested. {bracketed('TST-003')}")
    assert musts.every_id_is_covered(small) == [f"{must('TST-003')} (spec/new.md:1) has neither a vector nor a test"]


@pytest.mark.parametrize(
    "name",
    ["python/test_it.py", "java/core/src/main/java/A.java", "keyservice/a.go", "java/target/src/test/java/A.java"],
)
def test_id_named_outside_tests_is_not_covered(small: Tree, name: str) -> None:
    write(small.root, "spec/new.md", f"It MUST be tested. {bracketed('TST-003')}")
    write(small.root, name, must("TST-003"))
    assert len(musts.every_id_is_covered(small)) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("java/core/src/test/java/dev/ATest.java", must("TST-003")),
        ("java/core/src/test/java/dev/BTest.java", f"void {must('TST-003').replace('-', '_')}() {{}}"),
        ("keyservice/internal/a_test.go", f"// {must('TST-003')}"),
        ("conformance-tests/cases/a.go", must("TST-003")),
        ("spec/tests/test_a.py", must("TST-003")),
    ],
)
def test_id_named_in_a_test_is_covered(small: Tree, name: str, text: str) -> None:
    write(small.root, "spec/new.md", f"It MUST be tested. {bracketed('TST-003')}")
    write(small.root, name, text)
    assert musts.every_id_is_covered(small) == []


def test_longer_number_is_not_the_id(small: Tree) -> None:
    replace(small.root, "python/tests/test_it.py", must("TST-002"), must("TST-0021"))
    assert len(musts.every_id_is_covered(small)) == 1


def test_unknown_id_in_a_vector(small: Tree) -> None:
    replace(small.root, "spec/vectors/topic.json", must("TST-001"), must("TST-008"))
    assert "topic-x: names" in musts.no_unknown_id_is_named(small)[0]


def test_unknown_id_in_a_test(small: Tree) -> None:
    write(small.root, "keyservice/a_test.go", must("TST-009"))
    assert "keyservice/a_test.go: names" in musts.no_unknown_id_is_named(small)[0]
