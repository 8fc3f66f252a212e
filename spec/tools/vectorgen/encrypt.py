"""Vectors of kind encrypt: everything that is random is given, so the envelope is known to the last byte."""

from collections.abc import Iterator, Sequence
from typing import Any

from vectorgen import frames
from vectorgen.crypto import KEY_BOUND, ZSTD, Record, drbg
from vectorgen.vector import Vector, accepted


def vectors() -> Iterator[Vector]:
    yield from _sizes()
    yield from _counters()
    yield from _scopes()
    yield from _record_keys()
    frame = frames.raw(b"compressed before encryption")
    yield _vector("zstd", "a zstd frame", ["ENV-043"], plaintext=frame, flags=ZSTD)
    bound = {"flags": ZSTD | KEY_BOUND, "record_key": b"key-1"}
    yield _vector("zstd-bound", "both flags", ["ENV-021", "ENV-043"], plaintext=frame, **bound)


def _sizes() -> Iterator[Vector]:
    for size in (0, 1, 15, 16, 17, 1000):
        plaintext = drbg(f"encrypt/{size}", size)
        covers = ["ENV-022"] if size else ["ENV-022", "ENV-040"]
        yield _vector(f"{size}-bytes", f"a plaintext of {size} bytes", covers, plaintext=plaintext)


def _counters() -> Iterator[Vector]:
    for counter in (1, 0x01020304, 0xFFFFFFFE):
        yield _vector(f"counter-{counter:08x}", "the counter is big-endian", ["ENV-022"], counter=counter)


def _scopes() -> Iterator[Vector]:
    for name, scope in (("1-byte", "s"), ("249-bytes", "s" * 249), ("all-classes", "Az09._-")):
        yield _vector(f"scope-{name}", "the scope goes into the AAD", ["ENV-021"], scope=scope)


def _record_keys() -> Iterator[Vector]:
    record_keys = {"value": b"key-1", "empty": b"", "null": None, "256-bytes": drbg("encrypt/record-key", 256)}
    for name, record_key in record_keys.items():
        bound = {"flags": KEY_BOUND, "record_key": record_key}
        yield _vector(f"bound-{name}", "the record key goes into the AAD", ["ENV-021", "ENV-043"], **bound)


def _vector(name: str, comment: str, covers: Sequence[str], **changes: Any) -> Vector:
    fresh = {"key": drbg(f"encrypt/{name}/key", 32), "nonce_prefix": drbg(f"encrypt/{name}/nonce", 20)}
    record = Record(**({"scope": "claims", "plaintext": b"plaintext"} | fresh | changes))
    given: Vector = {"key": record.key.hex(), "scope": record.scope, "flags": record.flags}
    if record.flags & KEY_BOUND:
        given["record_key"] = None if record.record_key is None else record.record_key.hex()
    given |= {"nonce_prefix": record.nonce_prefix.hex(), "counter": record.counter, "plaintext": record.plaintext.hex()}
    return accepted(f"encrypt-{name}", comment, given, {"envelope": record.envelope().hex()}, covers)
