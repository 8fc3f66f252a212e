"""The common ground of the vectors of kind decrypt: one reader's view, with one envelope and one key in it."""

from collections.abc import Sequence
from typing import Any

from vectorgen.crypto import Record, drbg, key_id
from vectorgen.vector import Vector, accepted, refused

LIMIT = 1 << 20
KEY = drbg("decrypt/key", 32)
OTHER_KEY = drbg("decrypt/other-key", 32)
KID = key_id(KEY).hex()
SCOPE = "claims"


def record(label: str, plaintext: bytes = b"ok", **changes: Any) -> Record:
    """A record under KEY and SCOPE with a nonce of its own."""
    return Record(
        **({"key": KEY, "scope": SCOPE, "nonce_prefix": drbg(f"decrypt/{label}", 20)} | changes), plaintext=plaintext
    )


BASE = record("base").envelope()  # 62 bytes
GIVES_KEY = {KID: {"scope": SCOPE, "key": KEY.hex()}}


def view(value: bytes | None, **changes: Any) -> Vector:
    """The input of a vector; a record key of bytes or None is known, without one it is not."""
    given: Vector = {"topic": "claims", "value": None if value is None else value.hex()}
    if "record_key" in changes:
        record_key = changes.pop("record_key")
        given["record_key"] = None if record_key is None else record_key.hex()
    return given | {"plaintext": "reject", "max_plaintext": LIMIT, "keys": GIVES_KEY} | changes


def opens(name: str, comment: str, given: Vector, plaintext: bytes | None, covers: Sequence[str] = ()) -> Vector:
    output = {"plaintext": None if plaintext is None else plaintext.hex()}
    return accepted(f"decrypt-{name}", comment, given, output, covers)


def fails(name: str, comment: str, given: Vector, code: str, covers: Sequence[str] = ()) -> Vector:
    return refused(f"decrypt-{name}", comment, given, code, [*covers, "ENV-012", "ERR-002"])
