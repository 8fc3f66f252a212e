"""A plain model of reader and writer, straight from envelope.md, with Tink as the cipher.

It checks the vectors, which must end in it as they say, and shares no code with the programs that make them.
"""

import hashlib
import hmac
import re
import struct
from typing import Any

from backports.zstd import ZstdDecompressor, ZstdError

from specheck.refusal import Refused
from specheck.tink_xaes import tink_decrypt

NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
Vector = dict[str, Any]


def is_kafka_name(text: object) -> bool:
    """Kafka's rules for topic names, which scopes follow too (limits.md)."""
    return isinstance(text, str) and NAME.fullmatch(text) is not None and text not in {".", ".."}


def key_id(given: Vector) -> Vector:
    return {"kid": kid_of(bytes.fromhex(given["key"])).hex()}


def kid_of(key: bytes) -> bytes:
    """HKDF-SHA256 (RFC 5869) written out for one block of output."""
    if len(key) != 32:
        raise Refused("key-malformed")
    extracted = hmac.digest(bytes(hashlib.sha256().digest_size), key, "sha256")
    return hmac.digest(extracted, b"cipherlane v1 key id\x01", "sha256")[:16]


def topic(given: Vector) -> Vector:
    if not is_kafka_name(given["topic"]):
        raise Refused("topic-invalid")
    return {}


def write(given: Vector) -> Vector:
    value = given["value"]
    if value is not None and len(value) // 2 > given["max_plaintext"]:
        raise Refused("plaintext-too-long")
    if given["mode"] == "forbid":
        raise Refused("topic-forbidden")
    if value is None:
        return {"action": "unchanged"}
    if given["mode"] == "clear":
        if value.startswith("c19e"):
            raise Refused("ambiguous-plaintext")
        return {"action": "unchanged"}
    return {"action": "encrypt"}


def xaes(given: Vector) -> Vector:
    """Decrypting; for a vector that encrypts, see `roundtrip`."""
    key, nonce, aad, ciphertext = (bytes.fromhex(given[part]) for part in ("key", "nonce", "aad", "ciphertext"))
    return {"plaintext": tink_decrypt(key, nonce + ciphertext, aad).hex()}


def encrypt_backwards(given: Vector, envelope: bytes) -> Vector:
    """The input of an encrypt vector, read back from its envelope with its key, scope and record key."""
    key = bytes.fromhex(given["key"])
    bound = envelope[3] & 4
    known = {"record_key": given["record_key"]} if bound else {}
    plaintext = tink_decrypt(key, envelope[20:], _aad(envelope, given["scope"], known))
    if envelope[:3] != b"\xc1\x9e\x01" or envelope[4:20] != kid_of(key):
        raise Refused("key-id-mismatch")
    return {
        "key": given["key"],
        "scope": given["scope"],
        "flags": envelope[3],
        **known,
        "nonce_prefix": envelope[20:40].hex(),
        "counter": int.from_bytes(envelope[40:44], "big"),
        "plaintext": plaintext.hex(),
    }


def decrypt(given: Vector) -> Vector:
    """The steps of "Reading", in their order."""
    if given["value"] is None:
        return {"plaintext": None}
    value = bytes.fromhex(given["value"])
    if not value.startswith(b"\xc1\x9e"):
        return _plaintext(given)
    _parse(given, value)
    scope, key = _key(given, value[4:20].hex())
    plaintext = tink_decrypt(key, value[20:], _aad(value, scope, given))
    if value[3] & 1:
        plaintext = _decompress(plaintext, given["max_plaintext"])
    return {"plaintext": plaintext.hex()}


def _plaintext(given: Vector) -> Vector:
    if given["plaintext"] != "accept":
        raise Refused("plaintext-rejected")
    return {"plaintext": given["value"]}


def _parse(given: Vector, value: bytes) -> None:
    if len(value) == 2:
        raise Refused("envelope-too-short")
    if value[2] != 1:
        raise Refused("unsupported-version")
    if len(value) < 60:
        raise Refused("envelope-too-short")
    flags = value[3]
    if flags & 0xF8 or flags & 3 > 1:
        raise Refused("unsupported-flags")
    if not flags & 1 and len(value) - 60 > given["max_plaintext"]:
        raise Refused("plaintext-too-long")
    if flags & 4 and "record_key" not in given:
        raise Refused("record-key-unavailable")


def _key(given: Vector, kid: str) -> tuple[str, bytes]:
    answer = given["keys"].get(kid, {"error": "key-unknown"})
    if "error" in answer:
        raise Refused(answer["error"])
    key = bytes.fromhex(answer["key"])
    if kid_of(key).hex() != kid:
        raise Refused("key-id-mismatch")
    return answer["scope"], key


def _aad(envelope: bytes, scope: str, given: Vector) -> bytes:
    aad = envelope[:20] + struct.pack(">H", len(scope)) + scope.encode()
    if not envelope[3] & 4:
        return aad
    if given["record_key"] is None:
        return aad + b"\xff" * 4
    record_key = bytes.fromhex(given["record_key"])
    return aad + struct.pack(">I", len(record_key)) + record_key


def _decompress(frame: bytes, limit: int) -> bytes:
    if not frame.startswith(b"\x28\xb5\x2f\xfd"):
        raise Refused("decompression-failed")
    decompressor = ZstdDecompressor()
    try:
        plaintext = decompressor.decompress(frame, max_length=limit + 1)
    except ZstdError as error:
        raise Refused("decompression-failed") from error
    if len(plaintext) > limit:
        raise Refused("plaintext-too-long")
    if not decompressor.eof or decompressor.unused_data:
        raise Refused("decompression-failed")
    return plaintext
