"""Vectors of kind decrypt: steps 1 to 8 of reading, before any key is asked for.

Where `keys` is empty, a reader that asks too early ends in key-unknown instead.
"""

from collections.abc import Iterator

from vectorgen.crypto import KEY_BOUND, drbg
from vectorgen.decrypting import BASE, GIVES_KEY, fails, opens, record, view
from vectorgen.vector import Vector, flip


def vectors() -> Iterator[Vector]:
    yield from _not_an_envelope()
    yield from _too_short()
    yield from _versions()
    yield from _flags()
    yield from _record_key_unknown()
    yield from _limit()


def _not_an_envelope() -> Iterator[Vector]:
    for policy in ("reject", "accept"):
        given = view(None, plaintext=policy, keys={})
        yield opens(f"null-{policy}", "a tombstone stays null and asks for no key", given, None, ["ENV-001"])
    values = {
        "empty": ("an empty value", b""),
        "one-byte": ("the first byte of the magic alone", b"\xc1"),
        "text": ("text", b'{"claim": 7}'),
        "near-magic": ("the second byte of the magic is off by one", flip(BASE, 1)),
        "swapped-magic": ("the magic backwards", b"\x9e\xc1" + BASE[2:]),
        "shifted": ("an envelope behind one other byte", b"\x00" + BASE),
        "confluent": ("framed for a schema registry", b"\x00\x00\x00\x00\x07" + b"record"),
    }
    for name, (comment, value) in values.items():
        yield opens(f"plaintext-{name}-accept", comment, view(value, plaintext="accept", keys={}), value, ["ENV-002"])
        yield fails(f"plaintext-{name}-reject", comment, view(value, keys={}), "plaintext-rejected", ["ENV-002"])


def _too_short() -> Iterator[Vector]:
    for policy in ("reject", "accept"):
        given = view(BASE[:2], plaintext=policy, keys={})
        yield fails(f"magic-alone-{policy}", "two bytes", given, "envelope-too-short", ["ENV-003", "ENV-004"])
    for size in (3, 4, 5, 19, 20, 31, 32, 43, 44, 45, 58, 59):
        given = view(BASE[:size])
        yield fails(f"cut-to-{size}", f"the first {size} bytes", given, "envelope-too-short", ["ENV-006"])
    given = view(BASE[:40], plaintext="accept")
    yield fails("cut-accept", "cut, where plaintext is accepted", given, "envelope-too-short", ["ENV-003", "ENV-006"])


def _versions() -> Iterator[Vector]:
    for version in (0, 2, 3, 0x81, 0xFF):
        given = view(BASE[:2] + bytes([version]) + BASE[3:])
        yield fails(f"version-{version}", f"version {version}", given, "unsupported-version", ["ENV-005"])
    for size in (3, 59):
        given = view((BASE[:2] + b"\x02" + BASE[3:])[:size], keys={})
        comment = f"version 2 and {size} bytes: the version comes first"
        yield fails(f"version-2-cut-to-{size}", comment, given, "unsupported-version", ["ENV-005"])
    given = view(BASE[:2] + b"\x02\xff" + BASE[4:], keys={})
    yield fails("version-2-flags", "version 2, flags ff: the version first", given, "unsupported-version", ["ENV-005"])
    given = view(BASE[:2] + b"\x00" + BASE[3:], plaintext="accept")
    yield fails("version-0-accept", "where plaintext is accepted", given, "unsupported-version", ["ENV-003", "ENV-005"])


def _flags() -> Iterator[Vector]:
    for bit in range(3, 8):
        given = view(flip(BASE, 3, bit))
        yield fails(f"flags-bit-{bit}", f"flag bit {bit}", given, "unsupported-flags", ["ENV-007"])
    for compression in (2, 3):
        given = view(BASE[:3] + bytes([compression]) + BASE[4:])
        yield fails(f"compression-{compression}", "unknown compression", given, "unsupported-flags", ["ENV-007"])
    cut = flip(BASE, 3, 7)[:59]
    yield fails("flags-cut", "unknown flag, 59 bytes: the size first", view(cut), "envelope-too-short", ["ENV-006"])
    given = view(flip(BASE, 3, 3), max_plaintext=1)
    yield fails("flags-over-limit", "the flags before the limit", given, "unsupported-flags", ["ENV-007"])
    given = view(BASE[:3] + b"\x0c" + BASE[4:])
    yield fails("flags-bound", "bits 2 and 3, no record key: the flags first", given, "unsupported-flags", ["ENV-007"])
    given = view(BASE[:3] + b"\x06" + BASE[4:], plaintext="accept", keys={})
    yield fails("flags-accept", "where plaintext is accepted", given, "unsupported-flags", ["ENV-003", "ENV-007"])


def _record_key_unknown() -> Iterator[Vector]:
    bound = record("bound-unknown", flags=KEY_BOUND, record_key=b"key-1").envelope()
    null = record("bound-null-unknown", flags=KEY_BOUND).envelope()
    compressed = record("bound-zstd-unknown", flags=KEY_BOUND | 1, record_key=b"key-1").envelope()
    cases = {
        "value": ("the record key is not known", view(bound)),
        "null": ("a null record key was bound, the reader does not know it", view(null)),
        "zstd": ("compressed too", view(compressed)),
        "key-unknown": ("the key is unknown too: no key is asked for", view(bound, keys={})),
        "tag": ("the tag is wrong too", view(flip(bound, -1))),
    }
    for name, (comment, given) in cases.items():
        yield fails(f"record-key-unknown-{name}", comment, given, "record-key-unavailable", ["ENV-008"])


def _limit() -> Iterator[Vector]:
    at, over = (record(f"limit/{n}", drbg("decrypt/limit", n)) for n in (32, 33))
    yield opens("at-limit", "exactly the limit", view(at.envelope(), max_plaintext=32), at.plaintext, ["ENV-013"])
    given = view(over.envelope(), max_plaintext=32)
    yield fails("over-limit", "one byte over", given, "plaintext-too-long", ["ENV-013"])
    bound = record("limit/bound", bytes(33), flags=KEY_BOUND).envelope()
    cases = {
        "key-unknown": (
            "the key is unknown too: no key is asked for",
            view(over.envelope(), max_plaintext=32, keys={}),
        ),
        "tag": ("the tag is wrong too", view(flip(over.envelope(), -1), max_plaintext=32, keys=GIVES_KEY)),
        "bound": ("the record key is not known either", view(bound, max_plaintext=32)),
        "limit-1": ("a limit of one byte", view(BASE, max_plaintext=1)),
    }
    for name, (comment, given) in cases.items():
        yield fails(f"over-limit-{name}", comment, given, "plaintext-too-long", ["ENV-013"])
