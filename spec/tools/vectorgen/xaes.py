"""Vectors of kind xaes: those that C2SP publishes for XAES-256-GCM, sizes around the block, and forgeries."""

from collections.abc import Iterator

from vectorgen.crypto import drbg, xaes_encrypt
from vectorgen.vector import Vector, accepted, flip, refused

# https://c2sp.org/XAES-256-GCM, "Test vectors": key byte, AAD, ciphertext and tag.
C2SP = {
    "msb-0": (b"\x01", b"", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
    "msb-1": (b"\x03", b"c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
}


def vectors() -> Iterator[Vector]:
    yield from _c2sp()
    yield from _sizes()
    yield from _forgeries()


def _both(name: str, comment: str, common: Vector, plaintext: str, ciphertext: str) -> Iterator[Vector]:
    given, taken = {"plaintext": plaintext}, {"ciphertext": ciphertext}
    yield accepted(f"xaes-{name}-encrypt", comment, common | given, taken, ["ENV-022"])
    yield accepted(f"xaes-{name}-decrypt", comment, common | taken, given, ["ENV-022"])


def _c2sp() -> Iterator[Vector]:
    for name, (key_byte, aad, ciphertext) in C2SP.items():
        common = {"key": (key_byte * 32).hex(), "nonce": b"ABCDEFGHIJKLMNOPQRSTUVWX".hex(), "aad": aad.hex()}
        yield from _both(f"c2sp-{name}", "published by C2SP", common, b"XAES-256-GCM".hex(), ciphertext)


def _sizes() -> Iterator[Vector]:
    for size in (0, 16, 17):
        key, nonce, plaintext = (drbg(f"xaes/{size}/{part}", n) for part, n in (("k", 32), ("n", 24), ("p", size)))
        common = {"key": key.hex(), "nonce": nonce.hex(), "aad": b"aad".hex()}
        ciphertext = xaes_encrypt(key, nonce, plaintext, b"aad").hex()
        yield from _both(f"{size}-bytes", f"a plaintext of {size} bytes", common, plaintext.hex(), ciphertext)


def _forgeries() -> Iterator[Vector]:
    key, nonce, aad = drbg("xaes/key", 32), drbg("xaes/nonce", 24), drbg("xaes/aad", 20)
    good = {"key": key, "nonce": nonce, "aad": aad, "ciphertext": xaes_encrypt(key, nonce, b"sixteen bytes!!!", aad)}
    forged = good["ciphertext"]
    changes = {
        "key-first-bit": ("the first bit of the key is changed", {"key": flip(key, 0, 7)}),
        "key-last-bit": ("the last bit of the key is changed", {"key": flip(key, -1)}),
        "nonce-first-bit": ("in the half that derives the key", {"nonce": flip(nonce, 0, 7)}),
        "nonce-bit-95": ("the last bit that derives the key", {"nonce": flip(nonce, 11)}),
        "nonce-bit-96": ("the first bit of the GCM nonce", {"nonce": flip(nonce, 12, 7)}),
        "nonce-last-bit": ("the last bit of the GCM nonce", {"nonce": flip(nonce, -1)}),
        "nonce-halves-swapped": ("derived from the wrong half", {"nonce": nonce[12:] + nonce[:12]}),
        "aad-changed": ("one bit of the AAD", {"aad": flip(aad, 5)}),
        "aad-shorter": ("the AAD without its last byte", {"aad": aad[:-1]}),
        "aad-longer": ("the AAD with a zero byte behind", {"aad": aad + b"\x00"}),
        "aad-empty": ("no AAD", {"aad": b""}),
        "ciphertext-bit": ("one bit of the ciphertext", {"ciphertext": flip(forged, 3)}),
        "tag-first-bit": ("the first bit of the tag", {"ciphertext": flip(forged, -16, 7)}),
        "tag-last-bit": ("the last bit of the tag", {"ciphertext": flip(forged, -1)}),
        "tag-zero": ("the tag is all zero", {"ciphertext": forged[:-16] + bytes(16)}),
        "cut": ("without the last byte", {"ciphertext": forged[:-1]}),
        "longer": ("with a zero byte behind", {"ciphertext": forged + b"\x00"}),
        "tag-alone": ("the tag without the ciphertext", {"ciphertext": forged[-16:]}),
    }
    for name, (comment, change) in changes.items():
        given = {member: data.hex() for member, data in (good | change).items()}
        yield refused(f"xaes-forged-{name}", comment, given, "authentication-failed", ["ENV-010"])
