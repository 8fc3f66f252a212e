"""Vectors of kind decrypt: step 9 of reading, what the key service gives for the kid."""

from collections.abc import Iterator

from vectorgen.crypto import KEY_BOUND, associated_data, drbg, key_id, xaes_decrypt
from vectorgen.decrypting import BASE, GIVES_KEY, KEY, KID, OTHER_KEY, SCOPE, fails, opens, record, view
from vectorgen.twokeys import two_key_ciphertext
from vectorgen.vector import Vector, flip


def vectors() -> Iterator[Vector]:
    yield from _unknown_kids()
    yield from _refusals()
    yield from _wrong_keys()
    yield from _two_keys()


def _unknown_kids() -> Iterator[Vector]:
    yield fails("kid-not-known", "the key service has no key", view(BASE, keys={}), "key-unknown", ["ENV-009"])
    for byte, bit in ((0, 7), (0, 0), (7, 4), (8, 3), (15, 7), (15, 0)):
        given = view(flip(BASE, 4 + byte, bit))
        yield fails(f"kid-byte-{byte}-bit-{bit}", "one bit of the kid changed", given, "key-unknown", ["ENV-009"])
    given = view(BASE[:4] + bytes(16) + BASE[20:])
    yield fails("kid-zero", "a kid of zeros", given, "key-unknown", ["ENV-009"])
    other = {key_id(OTHER_KEY).hex(): {"scope": SCOPE, "key": OTHER_KEY.hex()}}
    yield fails(
        "kid-other-known", "another key of the scope is known", view(BASE, keys=other), "key-unknown", ["ENV-009"]
    )
    given = view(BASE, keys=other | GIVES_KEY)
    yield opens("kid-of-two", "two keys are known, the kid chooses", given, b"ok", ["ENV-009"])


def _refusals() -> Iterator[Vector]:
    bound = record("refused-bound", flags=KEY_BOUND, record_key=b"key-1").envelope()
    for code in ("key-destroyed", "scope-mismatch", "not-authorized", "key-unknown"):
        keys = {KID: {"error": code}}
        yield fails(f"refused-{code}", "the key service refuses", view(BASE, keys=keys), code, ["ENV-009"])
        given = view(flip(BASE, -1), plaintext="accept", keys=keys)
        yield fails(f"refused-{code}-tag", "the tag is wrong too, plaintext accepted", given, code, ["ENV-009"])
        given = view(bound, record_key=b"key-2", keys=keys)
        yield fails(f"refused-{code}-bound", "another record key too", given, code, ["ENV-009"])


def _wrong_keys() -> Iterator[Vector]:
    for size in (0, 16, 31, 33, 64):
        keys = {KID: {"scope": SCOPE, "key": (KEY + KEY)[:size].hex()}}
        yield fails(f"key-{size}-bytes", f"a key of {size} bytes", view(BASE, keys=keys), "key-malformed", ["KEY-004"])
    wrong = {"other": OTHER_KEY, "bit": flip(KEY, -1), "zero": bytes(32), "reversed": KEY[::-1]}
    for name, key in wrong.items():
        keys = {KID: {"scope": SCOPE, "key": key.hex()}}
        covers = ["ENV-009", "KEY-004"]
        yield fails(f"key-{name}", "not the key of this kid", view(BASE, keys=keys), "key-id-mismatch", covers)
    keys = {KID: {"scope": "other", "key": OTHER_KEY.hex()}}
    given = view(flip(BASE, -1), keys=keys)
    yield fails("key-other-tag", "wrong key, scope and tag: the key first", given, "key-id-mismatch", ["KEY-004"])


def _two_keys() -> Iterator[Vector]:
    made = record("two-keys")
    sealed = two_key_ciphertext((KEY, OTHER_KEY), made.nonce(), made.aad(), drbg("decrypt/two-keys/block", 16))
    value = made.header() + made.nonce() + sealed
    yield opens(
        "two-keys-named", "opens under two keys, this is the one it names", view(value), _opened(value), ["ENV-009"]
    )
    keys = {KID: {"scope": SCOPE, "key": OTHER_KEY.hex()}}
    covers = ["ENV-009", "KEY-004"]
    comment = "the tag fits this key too, but the kid does not"
    yield fails("two-keys-other", comment, view(value, keys=keys), "key-id-mismatch", covers)


def _opened(value: bytes) -> bytes:
    """Opens the envelope under both keys, so that the vector is what it says; gives what the first shows."""
    aad = associated_data(value[:20], SCOPE, bound=False, record_key=None)
    first, second = (xaes_decrypt(key, value[20:44], value[44:], aad) for key in (KEY, OTHER_KEY))
    if first == second:
        raise AssertionError("two keys that show the same plaintext prove nothing")
    return first
