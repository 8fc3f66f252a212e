"""Checks of the vectors: schema, ids, counts, errors, their being what the generator makes, and the model's word."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from jsonschema import Draft202012Validator

import generate
from specheck import answers, model, prose
from specheck.refusal import Refused
from specheck.tree import Tree, Vector

AT_LEAST = 120
NEGATIVE_PERCENT = 70
NOT_FOR_KEYS = {404, 405}  # an SDK takes no code from these, see key-service.md
MODEL: dict[str, Callable[[Vector], Vector]] = {
    "key-id": model.key_id,
    "xaes": model.xaes,
    "write": model.write,
    "decrypt": model.decrypt,
    "encryption-key-answer": answers.encryption_key_answer,
    "decryption-keys-answer": answers.decryption_keys_answer,
    "topic": model.topic,
}


def schema(tree: Tree) -> list[str]:
    """Every file follows vectors.schema.json, and there is one for each kind."""
    rules = json.loads((tree.spec / "vectors.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(rules)
    validator = Draft202012Validator(rules)
    missing = [f"{kind}.json is missing" for kind in generate.KINDS if f"{kind}.json" not in tree.files]
    named = [
        f"{name} holds {file.get('kind')}" for name, file in tree.files.items() if name != f"{file.get('kind')}.json"
    ]
    broken = [
        f"{name} {error.json_path}: {error.message[:200]}"
        for name, file in tree.files.items()
        for error in validator.iter_errors(file)
    ]
    return missing + named + broken


def unique_ids(tree: Tree) -> list[str]:
    counts = Counter(vector["id"] for _, vector in tree.vectors())
    return [f"{name} is used {count} times" for name, count in counts.items() if count > 1]


def enough(tree: Tree) -> list[str]:
    total, negative = _count(tree)
    few = [f"{total} vectors, {AT_LEAST} are needed"] if total < AT_LEAST else []
    mild = negative * 100 < total * NEGATIVE_PERCENT
    return few + ([f"{negative} of {total} are negative, {NEGATIVE_PERCENT} % are needed"] if mild else [])


def counts(tree: Tree) -> str:
    """The number of vectors, by kind too."""
    total, negative = _count(tree)
    kinds = Counter(kind for kind, _ in tree.vectors())
    listed = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return f"{total} vectors, {negative} negative ({100 * negative / max(total, 1):.0f} %): {listed}"


def _count(tree: Tree) -> tuple[int, int]:
    results = [vector["result"] for _, vector in tree.vectors()]
    return len(results), results.count("error")


def regenerated(tree: Tree) -> list[str]:
    """The files are, byte for byte, what the programs make."""
    folder = tree.spec / "vectors"
    stale = [kind for kind in generate.KINDS if _bytes(folder / f"{kind}.json") != generate.file_text(kind).encode()]
    return [f"{kind}.json is not what tools/generate.py makes: run make vectors" for kind in stale]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def errors_are_specified(tree: Tree) -> list[str]:
    """Layer and code of each error stand in errors.md."""
    known = prose.layers(tree.spec / "errors.md")
    codes = {code for _, code in known}
    wrong = [
        f"{vector['id']}: {vector['error']['layer']}/{vector['error']['code']} is not in errors.md"
        for _, vector in tree.vectors()
        if vector["result"] == "error" and (vector["error"]["layer"], vector["error"]["code"]) not in known
    ]
    return wrong + [
        f"{vector['id']}: {code} is not in errors.md"
        for _, vector in tree.vectors()
        for code in _codes_of_kids(vector)
        if code not in codes
    ]


def _codes_of_kids(vector: Vector) -> list[str]:
    """Errors that stand beside a kid, given or expected."""
    beside = [vector["input"].get("keys", {}), vector.get("output", {}).get("keys", {})]
    return [entry["error"] for keys in beside for entry in keys.values() if "error" in entry]


def statuses_are_specified(tree: Tree) -> list[str]:
    """The model knows the codes of each HTTP status as errors.md lists them."""
    listed = prose.codes_by_status(tree.spec / "errors.md")
    expected = {status: codes for status, codes in listed.items() if status not in NOT_FOR_KEYS}
    return [
        f"status {status}: errors.md has {_codes(expected, status)}, the vectors {_codes(answers.CODES, status)}"
        for status in sorted(expected.keys() | answers.CODES.keys())
        if expected.get(status) != answers.CODES.get(status)
    ]


def _codes(table: dict[int, set[str]], status: int) -> str:
    return ", ".join(sorted(table.get(status, ()))) or "nothing"


def model_agrees(tree: Tree) -> list[str]:
    """The model, with Tink as its cipher, ends every vector as the vector says."""
    return [
        f"{vector['id']}: the vector says {_expected(vector)}, the model {outcome}"
        for kind, vector in tree.vectors()
        if (outcome := _outcome(kind, vector)) != _expected(vector)
    ]


def _expected(vector: Vector) -> Vector | str:
    return str(vector["error"]["code"]) if vector["result"] == "error" else dict(vector["output"])


def _outcome(kind: str, vector: Vector) -> Vector | str:
    try:
        return _backwards(kind, vector) if _is_forward(kind, vector) else MODEL[kind](vector["input"])
    except Refused as refused:
        return refused.code


def _is_forward(kind: str, vector: Vector) -> bool:
    """Whether it encrypts: Tink draws its own nonces, so the ciphertext is decrypted instead."""
    return kind == "encrypt" or (kind == "xaes" and "plaintext" in vector["input"])


def _backwards(kind: str, vector: Vector) -> Vector | str:
    given, output = vector["input"], dict(vector["output"])
    if kind == "encrypt":
        agrees = model.encrypt_backwards(given, bytes.fromhex(output["envelope"])) == given
    else:
        agrees = model.xaes(given | output) == {"plaintext": given["plaintext"]}
    return output if agrees else "another plaintext or header"
