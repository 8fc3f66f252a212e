"""The checks of vectors, fed with vectors that are broken in one place."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from conftest import edit, keep, replace
from specheck import vectors
from specheck.tree import Tree

Change = Callable[[dict[str, Any]], object]


def test_real_vectors_pass(copy: Tree) -> None:
    for check in (
        vectors.schema,
        vectors.unique_ids,
        vectors.enough,
        vectors.regenerated,
        vectors.errors_are_specified,
        vectors.statuses_are_specified,
        vectors.model_agrees,
    ):
        assert check(copy) == []


BROKEN_FORMS: list[tuple[str, str, Change]] = [
    ("key-id", "key-id-zero", lambda v: v.update(note="x")),
    ("key-id", "key-id-zero", lambda v: v.pop("comment")),
    ("key-id", "key-id-zero", lambda v: v.pop("output")),
    ("key-id", "key-id-zero", lambda v: v.update(result="maybe")),
    ("key-id", "key-id-zero", lambda v: v.update(id="topic-zero")),
    ("key-id", "key-id-zero", lambda v: v.update(id="key-id-Zero")),
    ("key-id", "key-id-zero", lambda v: v.update(covers=["ENV-020"])),
    ("key-id", "key-id-zero", lambda v: v["input"].update(key="0g")),
    ("key-id", "key-id-zero", lambda v: v["input"].update(key="000")),
    ("key-id", "key-id-zero", lambda v: v["output"].update(kid="00")),
    ("key-id", "key-id-31-bytes", lambda v: v.update(output={})),
    ("key-id", "key-id-31-bytes", lambda v: v.pop("error")),
    ("key-id", "key-id-31-bytes", lambda v: v["error"].pop("layer")),
    ("key-id", "key-id-31-bytes", lambda v: v["error"].update(layer="network")),
    ("xaes", "xaes-16-bytes-encrypt", lambda v: v["input"].update(ciphertext="00")),
    ("xaes", "xaes-16-bytes-encrypt", lambda v: v.update(output={"plaintext": "00"})),
    ("xaes", "xaes-16-bytes-decrypt", lambda v: v["input"].pop("aad")),
    ("encrypt", "encrypt-bound-null", lambda v: v["input"].pop("record_key")),
    ("encrypt", "encrypt-zstd", lambda v: v["input"].update(record_key=None)),
    ("encrypt", "encrypt-zstd", lambda v: v["input"].update(counter=0xFFFFFFFF)),
    ("encrypt", "encrypt-zstd", lambda v: v["input"].update(flags=2)),
    ("encrypt", "encrypt-zstd", lambda v: v["input"].update(scope="s" * 250)),
    ("encrypt", "encrypt-zstd", lambda v: v["output"].update(envelope="c19e02" + "00" * 57)),
    ("write", "write-null", lambda v: v["input"].update(mode="maybe")),
    ("write", "write-null", lambda v: v["input"].update(max_plaintext=0)),
    ("write", "write-null", lambda v: v["output"].update(action="drop")),
    ("decrypt", "decrypt-0-bytes", lambda v: v["input"].pop("max_plaintext")),
    ("decrypt", "decrypt-0-bytes", lambda v: v["input"].update(plaintext="maybe")),
    ("decrypt", "decrypt-0-bytes", lambda v: v["input"]["keys"].update({"00": {"error": "key-unknown"}})),
    ("decrypt", "decrypt-0-bytes", lambda v: v["input"]["keys"].update({"00" * 16: {"error": "internal"}})),
    ("decrypt", "decrypt-0-bytes", lambda v: v["input"]["keys"].update({"00" * 16: {"scope": "s"}})),
    ("decrypt", "decrypt-0-bytes", lambda v: v["output"].update(plaintext="A0")),
    ("encryption-key-answer", "encryption-key-answer-clear", lambda v: v["output"].update(kid="00" * 16)),
    ("encryption-key-answer", "encryption-key-answer-clear", lambda v: v["input"].update(status="200")),
    ("encryption-key-answer", "encryption-key-answer-clear", lambda v: v["output"].update(expires_in=604801)),
    ("decryption-keys-answer", "decryption-keys-answer-one", lambda v: v["input"].update(kids=["00"])),
    ("decryption-keys-answer", "decryption-keys-answer-one", lambda v: v["output"]["keys"].update({"00" * 16: {}})),
    ("topic", "topic-plain", lambda v: v["input"].update(topic=7)),
]


@pytest.mark.parametrize(("kind", "name", "change"), BROKEN_FORMS)
def test_schema_refuses(copy: Tree, kind: str, name: str, change: Change) -> None:
    one = keep(copy, kind, name)
    assert _form(one) == []
    assert len(_form(edit(one, kind, change))) > 0


def _form(tree: Tree) -> list[str]:
    return [fault for fault in vectors.schema(tree) if not fault.endswith(".json is missing")]


def test_schema_refuses_a_missing_file(copy: Tree) -> None:
    (copy.spec / "vectors/topic.json").unlink()
    assert vectors.schema(copy) == ["topic.json is missing"]


@pytest.mark.parametrize(
    "text", ['{"kind": "xaes", "vectors": []}', '{"kind": "topics", "vectors": [7]}', '{"kind": "xaes"}']
)
def test_schema_refuses_a_foreign_file(copy: Tree, text: str) -> None:
    (copy.spec / "vectors/other.json").write_text(text, "utf-8")
    assert len(vectors.schema(copy)) >= 2


def test_unique_ids(copy: Tree) -> None:
    broken = edit(copy, "topic", lambda v: v.update(id="topic-one-byte"))
    assert vectors.unique_ids(broken) == ["topic-one-byte is used 2 times"]


def _shrink(tree: Tree, positive: int, negative: int) -> Tree:
    """One file with so many vectors of each result."""
    for path in (tree.spec / "vectors").glob("*.json"):
        path.unlink()
    results = [{"result": "ok"}] * positive + [{"result": "error"}] * negative
    (tree.spec / "vectors/x.json").write_text(json.dumps({"kind": "x", "vectors": results}), "utf-8")
    return Tree(tree.root)


@pytest.mark.parametrize(
    ("positive", "negative", "faults"), [(36, 84, 0), (35, 84, 1), (37, 84, 1), (120, 0, 1), (0, 0, 1)]
)
def test_enough(copy: Tree, positive: int, negative: int, faults: int) -> None:
    assert len(vectors.enough(_shrink(copy, positive, negative))) == faults


@pytest.mark.parametrize("kind", ["key-id", "decrypt", "topic"])
def test_regenerated_sees_one_changed_byte(copy: Tree, kind: str) -> None:
    replace(copy.root, f"spec/vectors/{kind}.json", '"comment": "', '"comment": "~')
    assert vectors.regenerated(copy) == [f"{kind}.json is not what tools/generate.py makes: run make vectors"]


def test_regenerated_sees_a_missing_file(copy: Tree) -> None:
    (copy.spec / "vectors/write.json").unlink()
    assert len(vectors.regenerated(copy)) == 1


WRONG_ERRORS: list[tuple[str, str, Change]] = [
    ("decrypt", "decrypt-cut-to-3", lambda v: v["error"].update(layer="decryption")),
    ("decrypt", "decrypt-cut-to-3", lambda v: v["error"].update(code="too-short")),
    ("topic", "topic-bad-empty", lambda v: v["error"].update(layer="policy")),
    ("decrypt", "decrypt-refused-key-unknown", lambda v: v["input"]["keys"].update(x={"error": "gone"})),
    ("decryption-keys-answer", "decryption-keys-answer-one", lambda v: v["output"]["keys"].update(x={"error": "gone"})),
]


@pytest.mark.parametrize(("kind", "name", "change"), WRONG_ERRORS)
def test_errors_are_specified(copy: Tree, kind: str, name: str, change: Change) -> None:
    broken = edit(keep(copy, kind, name), kind, change)
    assert len(vectors.errors_are_specified(broken)) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("| 400 | `request-invalid`, `topic-invalid` |", "| 400 | `request-invalid` |"),
        ("| 429 | `key-service-unavailable` |", "| 430 | `key-service-unavailable` |"),
        ("| 500 | `internal` |", "| 500 | `internal`, `closed` |"),
    ],
)
def test_statuses_are_specified(copy: Tree, old: str, new: str) -> None:
    replace(copy.root, "spec/errors.md", old, new)
    assert len(vectors.statuses_are_specified(copy)) > 0


def _flip(text: str, at: int) -> str:
    return text[:at] + f"{int(text[at], 16) ^ 1:x}" + text[at + 1 :]


DISAGREEMENTS: list[tuple[str, str, Change]] = [
    ("key-id", "key-id-zero", lambda v: v["output"].update(kid="00" * 16)),
    ("key-id", "key-id-zero", lambda v: v["input"].update(key="00" * 31)),
    ("xaes", "xaes-c2sp-msb-0-encrypt", lambda v: v["output"].update(ciphertext=_flip(v["output"]["ciphertext"], -1))),
    ("xaes", "xaes-c2sp-msb-0-encrypt", lambda v: v["input"].update(plaintext="00")),
    ("xaes", "xaes-c2sp-msb-1-decrypt", lambda v: v["input"].update(key="02" * 32)),
    ("encrypt", "encrypt-bound-null", lambda v: v["input"].update(record_key="")),
    ("encrypt", "encrypt-16-bytes", lambda v: v["input"].update(counter=1)),
    ("encrypt", "encrypt-16-bytes", lambda v: v["input"].update(scope="other")),
    ("encrypt", "encrypt-16-bytes", lambda v: v["output"].update(envelope=_flip(v["output"]["envelope"], 8))),
    ("write", "write-at-limit", lambda v: v["input"].update(max_plaintext=63)),
    ("write", "write-clear-value", lambda v: v["input"].update(mode="encrypt")),
    ("write", "write-clear-magic", lambda v: v["input"].update(value="c19f")),
    ("decrypt", "decrypt-16-bytes", lambda v: v["input"].update(value=_flip(v["input"]["value"], -1))),
    ("decrypt", "decrypt-16-bytes", lambda v: v["output"].update(plaintext="00")),
    ("decrypt", "decrypt-zstd-over-bomb", lambda v: v["input"].update(max_plaintext=1 << 21)),
    ("decrypt", "decrypt-zstd-at-limit", lambda v: v["input"].update(max_plaintext=63)),
    ("decrypt", "decrypt-two-keys-other", lambda v: v["error"].update(code="authentication-failed")),
    ("topic", "topic-bad-250-bytes", lambda v: v["input"].update(topic="a")),
    ("topic", "topic-plain", lambda v: v["input"].update(topic="a\n")),
    ("encryption-key-answer", "encryption-key-answer-encrypt", lambda v: v["input"].update(status=500)),
    ("encryption-key-answer", "encryption-key-answer-forbid", lambda v: v["input"].update(body="{}")),
    ("encryption-key-answer", "encryption-key-answer-500-internal", lambda v: v["input"].update(status=503)),
    ("decryption-keys-answer", "decryption-keys-answer-one", lambda v: v["input"].update(kids=[])),
    ("decryption-keys-answer", "decryption-keys-answer-key-other", lambda v: v["output"]["keys"].clear()),
]


@pytest.mark.parametrize(("kind", "name", "change"), DISAGREEMENTS)
def test_model_disagrees(copy: Tree, kind: str, name: str, change: Change) -> None:
    one = keep(copy, kind, name)
    assert vectors.model_agrees(one) == []
    broken = edit(one, kind, change)
    assert [fault.split(":")[0] for fault in vectors.model_agrees(broken)] == [name]
