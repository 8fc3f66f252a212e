"""One test vector, and the layer of each error code (errors.md)."""

from collections.abc import Iterable, Sequence
from typing import Any

Vector = dict[str, Any]

LAYERS = {
    "input": ("topic-invalid", "plaintext-too-long", "ambiguous-plaintext"),
    "parse": ("envelope-too-short", "unsupported-version", "unsupported-flags", "record-key-unavailable"),
    "policy": ("topic-unknown", "topic-forbidden", "not-authorized", "scope-mismatch", "plaintext-rejected"),
    "key-id": ("key-unknown", "key-destroyed", "key-malformed", "key-id-mismatch"),
    "decryption": ("authentication-failed", "decompression-failed"),
    "key-service": (
        "unauthenticated",
        "request-invalid",
        "request-too-large",
        "key-service-unavailable",
        "key-service-bad-answer",
        "internal",
        "audit-unavailable",
    ),
}
LAYER_OF = {code: layer for layer, codes in LAYERS.items() for code in codes}


def accepted(name: str, comment: str, given: Vector, output: Vector, covers: Sequence[str] = ()) -> Vector:
    """A vector that must succeed."""
    return _vector(name, comment, given, covers) | {"result": "ok", "output": output}


def refused(name: str, comment: str, given: Vector, code: str, covers: Sequence[str] = ()) -> Vector:
    """A vector that must end in this error."""
    error = {"layer": LAYER_OF[code], "code": code}
    return _vector(name, comment, given, covers) | {"result": "error", "error": error}


def _vector(name: str, comment: str, given: Vector, covers: Sequence[str]) -> Vector:
    return {"id": name, "comment": comment, "covers": ids(covers), "input": given}


def ids(names: Iterable[str]) -> list[str]:
    """Full MUST ids: ENV-005 is short for CL-ENV-005."""
    return [f"CL-{name}" for name in names]


def flip(data: bytes, offset: int, bit: int = 0) -> bytes:
    """The bytes with one bit changed; bit 0 is the lowest of the byte, a negative offset counts from the end."""
    at = offset % len(data)
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
