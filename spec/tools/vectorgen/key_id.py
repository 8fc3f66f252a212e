"""Vectors of kind key-id: a data key commits to its kid, and only 32 bytes are a data key."""

from collections.abc import Iterator

from vectorgen.crypto import drbg, key_id
from vectorgen.vector import Vector, accepted, flip, refused

KEYS = {
    "zero": ("all bits 0", bytes(32)),
    "ones": ("all bits 1", b"\xff" * 32),
    "counting": ("bytes 00 to 1f", bytes(range(32))),
    "random": ("random bytes", drbg("key-id/random", 32)),
    "last-bit": ("the random key with its last bit changed", flip(drbg("key-id/random", 32), -1)),
    "trailing-zero": ("a key that ends in a zero byte", drbg("key-id/trailing-zero", 31) + b"\x00"),
}


def vectors() -> Iterator[Vector]:
    for name, (comment, key) in KEYS.items():
        yield accepted(f"key-id-{name}", comment, {"key": key.hex()}, {"kid": key_id(key).hex()}, ["ENV-020"])
    for size in (0, 1, 16, 24, 31, 33, 48, 64):
        given = {"key": drbg("key-id/size", size).hex()}
        yield refused(f"key-id-{size}-bytes", f"{size} bytes are not a data key", given, "key-malformed", ["KEY-004"])
