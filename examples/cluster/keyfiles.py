"""Looks for private keys and keystores in files, whatever their names are."""

from __future__ import annotations

from pathlib import Path

PEM = b"PRIVATE KEY-----"
# How a Java keystore begins: JKS and JCEKS.
KEYSTORES = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
# The version of a PKCS #12 file, and the type of its content (RFC 7292, section 4).
PKCS12 = b"\x02\x01\x03\x30"
PKCS12_CONTENT = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01"
# An ECDSA key on P-256 in DER: version and length of its 32 bytes (RFC 5915, section 3).
EC_KEY = b"\x02\x01\x01\x04\x20"
HEAD_BYTES = 64


def holds_key(data: bytes) -> bool:
    """Whether these bytes hold a private key in PEM, one on P-256 in DER, or are a keystore."""
    head = data[:HEAD_BYTES]
    is_pkcs12 = PKCS12 in head and PKCS12_CONTENT in head
    return PEM in data or EC_KEY in data or head.startswith(KEYSTORES) or is_pkcs12


def search(folder: Path) -> tuple[int, list[str]]:
    """How many files lie below a folder, and which of them hold a key."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return len(files), [file.name for file in files if holds_key(file.read_bytes())]
