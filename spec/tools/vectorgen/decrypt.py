"""All vectors of kind decrypt, in the order of the steps of reading."""

from collections.abc import Iterator

from vectorgen import decrypt_cipher, decrypt_keys, decrypt_parse, decrypt_zstd
from vectorgen.vector import Vector


def vectors() -> Iterator[Vector]:
    for family in (decrypt_parse, decrypt_keys, decrypt_cipher, decrypt_zstd):
        yield from family.vectors()
