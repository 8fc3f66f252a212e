"""One ciphertext that opens under two data keys: AES-GCM does not commit to its key, so such a thing can be made.

With the nonce and the AAD equal, both tags are linear in each ciphertext block; one free block solves for equal tags.
"""

import struct

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from vectorgen.crypto import derive

R = 0xE1 << 120
ONE = 1 << 127


def two_key_ciphertext(keys: tuple[bytes, bytes], nonce: bytes, aad: bytes, first_block: bytes) -> bytes:
    """Two blocks, the first chosen, the second solved for, and the tag that fits both keys."""
    first, second = (_Gcm(derive(key, nonce), nonce[12:], aad, first_block) for key in keys)
    difference = first.tag_without_last_block ^ second.tag_without_last_block
    factor = _multiply(first.hash_key, first.hash_key) ^ _multiply(second.hash_key, second.hash_key)
    free = _multiply(difference, _inverse(factor))
    return first_block + free.to_bytes(16, "big") + first.tag(free).to_bytes(16, "big")


class _Gcm:
    """The parts of a GCM tag over two ciphertext blocks of which the second is not known yet."""

    def __init__(self, key: bytes, nonce: bytes, aad: bytes, first_block: bytes) -> None:
        encryptor = Cipher(AES(key), ECB()).encryptor()  # noqa: S305 - single blocks: GCM's own building block
        self.hash_key = int.from_bytes(encryptor.update(bytes(16)), "big")
        mask = int.from_bytes(encryptor.update(nonce + b"\x00\x00\x00\x01"), "big")
        padded = aad + bytes(-len(aad) % 16)
        lengths = struct.pack(">QQ", 8 * len(aad), 8 * 32)
        self.tag_without_last_block = mask ^ _ghash(self.hash_key, padded + first_block + bytes(16) + lengths)

    def tag(self, last_block: int) -> int:
        return self.tag_without_last_block ^ _multiply(last_block, _multiply(self.hash_key, self.hash_key))


def _ghash(hash_key: int, data: bytes) -> int:
    value = 0
    for at in range(0, len(data), 16):
        value = _multiply(value ^ int.from_bytes(data[at : at + 16], "big"), hash_key)
    return value


def _multiply(x: int, y: int) -> int:
    """The product in GCM's field, whose highest bit is the coefficient of 1 (NIST SP 800-38D, 6.3)."""
    product = 0
    for bit in range(127, -1, -1):
        product ^= y if x >> bit & 1 else 0
        y = y >> 1 ^ (R if y & 1 else 0)
    return product


def _inverse(x: int) -> int:
    """x to the power of 2^128 - 2."""
    result, power = ONE, x
    for _ in range(127):
        power = _multiply(power, power)
        result = _multiply(result, power)
    return result
