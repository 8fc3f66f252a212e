"""Vectors of kind decrypt: step 10 of reading, the tag over header, scope and record key."""

from collections.abc import Iterator

from vectorgen.crypto import KEY_BOUND, drbg
from vectorgen.decrypting import BASE, KEY, KID, fails, opens, record, view
from vectorgen.vector import Vector, flip


def vectors() -> Iterator[Vector]:
    yield from _good()
    yield from _changed()
    yield from _moved()
    yield from _bound()


def _good() -> Iterator[Vector]:
    for size in (0, 1, 16, 17):
        made = record(f"size/{size}", drbg("decrypt/size", size))
        yield opens(f"{size}-bytes", f"{size} bytes", view(made.envelope()), made.plaintext, ["ENV-010", "ENV-012"])
    last = record("counter", counter=0xFFFFFFFE).envelope()
    yield opens("last-counter", "the last record of a session", view(last), b"ok", ["ENV-010"])
    nested = record("nested", BASE)
    yield opens("nested", "an envelope in an envelope is opened once", view(nested.envelope()), BASE, ["ENV-010"])
    given = view(BASE, plaintext="accept", record_key=b"key-1")
    yield opens("accept", "where plaintext is accepted; the record key is not bound", given, b"ok", ["ENV-003"])


def _changed() -> Iterator[Vector]:
    values = {
        "compression-flag": ("compression claimed: flags are authenticated", flip(BASE, 3)),
        "nonce-first-bit": ("in the half that derives the key", flip(BASE, 20, 7)),
        "nonce-byte-11": ("the last byte that derives the key", flip(BASE, 31)),
        "nonce-byte-12": ("the first byte of the GCM nonce", flip(BASE, 32)),
        "counter": ("another counter", flip(BASE, 43)),
        "ciphertext": ("one bit of the ciphertext", flip(BASE, 44)),
        "tag-first-bit": ("the first bit of the tag", flip(BASE, -16, 7)),
        "tag-byte-12": ("a bit that a tag of 12 bytes would not have", flip(BASE, -4)),
        "tag-last-bit": ("the last bit of the tag", flip(BASE, -1)),
        "tag-zero": ("a tag of zeros", BASE[:-16] + bytes(16)),
        "cut-to-61": ("without the last byte", BASE[:61]),
        "cut-to-60": ("without the last two: an envelope of nothing", BASE[:60]),
        "longer": ("with a zero byte behind", BASE + b"\x00"),
        "doubled": ("the envelope twice", BASE + BASE),
        "zero-after-header": ("nonce, ciphertext and tag are zeros", BASE[:20] + bytes(42)),
    }
    for name, (comment, value) in values.items():
        yield fails(f"forged-{name}", comment, view(value), "authentication-failed", ["ENV-010"])
    given = view(flip(BASE, -1), plaintext="accept")
    yield fails("forged-accept", "where plaintext is accepted", given, "authentication-failed", ["ENV-003", "ENV-010"])
    given = view(flip(BASE, 3, 2), record_key=b"key-1")
    yield fails("forged-bound-flag", "binding claimed", given, "authentication-failed", ["ENV-010"])


def _moved() -> Iterator[Vector]:
    for name, scope in {"other": "payments", "case": "Claims", "longer": "claims2", "shorter": "claim"}.items():
        keys = {KID: {"scope": scope, "key": KEY.hex()}}
        given = view(BASE, keys=keys)
        comment = f"the key service says that the scope is {scope}"
        yield fails(f"scope-{name}", comment, given, "authentication-failed", ["ENV-010", "ENV-021"])
    for name, scope in {"1-byte": "s", "249-bytes": "s" * 249}.items():
        value = record(f"scope/{name}", scope=scope).envelope()
        given = view(value, topic="copy-of-claims", keys={KID: {"scope": scope, "key": KEY.hex()}})
        yield opens(f"scope-{name}", "the scope is not the topic's name", given, b"ok", ["ENV-010", "ENV-021"])


def _bound() -> Iterator[Vector]:
    record_keys = {"value": b"key-1", "empty": b"", "null": None}
    for name, record_key in record_keys.items():
        value = record(f"bound/{name}", flags=KEY_BOUND, record_key=record_key).envelope()
        covers = ["ENV-008", "ENV-021"]
        yield opens(f"bound-{name}", "the same record key", view(value, record_key=record_key), b"ok", covers)
        others = {"other": b"key-2", "longer": b"key-1\x00", **{n: k for n, k in record_keys.items() if n != name}}
        for other, read in others.items():
            given = view(value, record_key=read)
            comment = f"bound to {name}, read with {other}"
            yield fails(f"bound-{name}-read-{other}", comment, given, "authentication-failed", ["ENV-010", "ENV-021"])
    value = record("bound/cleared", flags=KEY_BOUND, record_key=b"key-1").envelope()
    given = view(flip(value, 3, 2), record_key=b"key-1")
    yield fails("bound-flag-cleared", "binding denied", given, "authentication-failed", ["ENV-010"])
    four_bytes_ff = view(record("bound/ff", flags=KEY_BOUND).envelope(), record_key=b"\xff\xff\xff\xff")
    yield fails("bound-null-read-ff", "null is not four bytes ff", four_bytes_ff, "authentication-failed", ["ENV-021"])
    shifted = record("bound/shifted", flags=KEY_BOUND, scope="claim", record_key=b"skey").envelope()
    given = view(shifted, record_key=b"key")
    yield fails("bound-shifted", "scope and key cut elsewhere", given, "authentication-failed", ["ENV-021"])
