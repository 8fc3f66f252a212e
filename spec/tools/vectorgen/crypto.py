"""The cryptography of envelope.md, from the primitives of pyca/cryptography.

XAES-256-GCM is written as C2SP describes it, through CMAC-AES-256. It shares nothing with Tink, which check.py compares
it with, nor with the SDKs, but for the one in Python: that has the same CMAC and AES-GCM of pyca/cryptography.
"""

import hashlib
import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

MAGIC = b"\xc1\x9e"
ZSTD = 1
KEY_BOUND = 4


def drbg(label: str, size: int) -> bytes:
    """Deterministic bytes: the first `size` bytes of SHAKE256("cipherlane test vectors v1", a zero byte, label)."""
    return hashlib.shake_256(b"cipherlane test vectors v1\x00" + label.encode()).digest(size)


def key_id(key: bytes) -> bytes:
    """The 16-byte kid of a data key [CL-ENV-020]."""
    return HKDF(SHA256(), length=16, salt=None, info=b"cipherlane v1 key id").derive(key)


def derive(key: bytes, nonce: bytes) -> bytes:
    """The AES-256-GCM key that XAES-256-GCM derives from a key and the first 12 bytes of the 24-byte nonce."""
    return b"".join(_cmac(key, struct.pack(">HBB", i, 0x58, 0) + nonce[:12]) for i in (1, 2))


def _cmac(key: bytes, message: bytes) -> bytes:
    mac = CMAC(AES(key))
    mac.update(message)
    return mac.finalize()


def xaes_encrypt(key: bytes, nonce: bytes, plaintext: bytes, aad: bytes) -> bytes:
    """Ciphertext and tag of XAES-256-GCM [CL-ENV-022]."""
    return AESGCM(derive(key, nonce)).encrypt(nonce[12:], plaintext, aad)


def xaes_decrypt(key: bytes, nonce: bytes, ciphertext: bytes, aad: bytes) -> bytes:
    """The plaintext; raises cryptography.exceptions.InvalidTag."""
    return AESGCM(derive(key, nonce)).decrypt(nonce[12:], ciphertext, aad)


def associated_data(header: bytes, scope: str, record_key: bytes | None, *, bound: bool) -> bytes:
    """The AAD [CL-ENV-021]; `header` is the first 20 bytes of the envelope."""
    name = scope.encode()
    aad = header + struct.pack(">H", len(name)) + name
    if not bound:
        return aad
    return aad + (b"\xff\xff\xff\xff" if record_key is None else struct.pack(">I", len(record_key)) + record_key)


@dataclass(frozen=True)
class Record:
    """What goes into one envelope; `plaintext` is what the cipher takes (a zstd frame if the flag says so)."""

    key: bytes
    scope: str
    plaintext: bytes
    nonce_prefix: bytes
    counter: int = 0
    flags: int = 0
    record_key: bytes | None = None

    def header(self) -> bytes:
        return MAGIC + b"\x01" + bytes([self.flags]) + key_id(self.key)

    def nonce(self) -> bytes:
        return self.nonce_prefix + struct.pack(">I", self.counter)

    def aad(self) -> bytes:
        return associated_data(self.header(), self.scope, self.record_key, bound=bool(self.flags & KEY_BOUND))

    def envelope(self) -> bytes:
        return self.header() + self.nonce() + xaes_encrypt(self.key, self.nonce(), self.plaintext, self.aad())
