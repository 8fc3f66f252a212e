"""Vectors of kind write: what a writer does with a value, by the mode of the topic."""

from collections.abc import Iterator

from vectorgen.crypto import drbg
from vectorgen.vector import Vector, accepted, refused

LIMIT = 64


def vectors() -> Iterator[Vector]:
    yield from _encrypt()
    yield from _clear()
    yield from _forbid()


def _given(mode: str, value: bytes | None, limit: int = LIMIT) -> Vector:
    return {"mode": mode, "value": None if value is None else value.hex(), "max_plaintext": limit}


def _encrypt() -> Iterator[Vector]:
    values = {
        "empty": ("an empty value is encrypted", b"", "ENV-040"),
        "at-limit": ("exactly the limit", drbg("write", LIMIT), "ENV-042"),
        "envelope": ("a value that is an envelope is encrypted again", b"\xc1\x9e\x01", "ENV-043"),
    }
    yield accepted("write-null", "a tombstone", _given("encrypt", None), {"action": "unchanged"}, ["ENV-040"])
    for name, (comment, value, covered) in values.items():
        yield accepted(f"write-{name}", comment, _given("encrypt", value), {"action": "encrypt"}, [covered])
    for name, size, limit in (("one-over-limit", LIMIT + 1, LIMIT), ("two-at-limit-one", 2, 1), ("far-over", 4096, 64)):
        comment = f"{size} bytes, the limit is {limit}"
        given = _given("encrypt", drbg("write", size), limit)
        yield refused(f"write-{name}", comment, given, "plaintext-too-long", ["ENV-042"])
    for mode in ("clear", "forbid"):
        given = _given(mode, drbg("write", LIMIT + 1))
        yield refused(f"write-{mode}-too-long", "in any mode", given, "plaintext-too-long", ["ENV-042"])


def _clear() -> Iterator[Vector]:
    passed = {"value": b"clear", "empty": b"", "null": None, "half-magic": b"\xc1", "near-magic": b"\xc1\x9f\x01"}
    for name, value in passed.items():
        given = _given("clear", value)
        yield accepted(f"write-clear-{name}", "passed on", given, {"action": "unchanged"}, ["ENV-041"])
    for name, value in {"magic": b"\xc1\x9e", "envelope": b"\xc1\x9e\x01" + bytes(57), "text": b"\xc1\x9etext"}.items():
        comment = "readers would take it for an envelope"
        given = _given("clear", value)
        yield refused(f"write-clear-{name}", comment, given, "ambiguous-plaintext", ["ENV-041"])


def _forbid() -> Iterator[Vector]:
    for name, value in {"value": b"forbidden", "empty": b"", "magic": b"\xc1\x9e"}.items():
        given = _given("forbid", value)
        yield refused(f"write-forbid-{name}", "the policy says forbid", given, "topic-forbidden", ["ERR-002"])
    comment = "a tombstone is a record too"
    yield refused("write-forbid-null", comment, _given("forbid", None), "topic-forbidden", ["ENV-040"])
