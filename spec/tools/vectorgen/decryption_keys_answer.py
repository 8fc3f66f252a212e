"""Vectors of kind decryption-keys-answer: what an SDK makes of the answer to POST /v1/decryption-keys."""

from collections.abc import Iterator, Sequence
from typing import Any

from vectorgen import answering
from vectorgen.answering import ABSENT, BAD, JSON, KEY, KEY_2, KID, KID_2, LEASE, Answer, b64, changed, nested, text
from vectorgen.crypto import drbg
from vectorgen.vector import Vector, accepted, refused

KIND = "decryption-keys-answer"
ENTRY = {"kid": KID, "scope": "claims", "key": b64(KEY), **LEASE}
ENTRY_2 = {"kid": KID_2, "scope": "claims", "key": b64(KEY_2), **LEASE}
REFUSAL = {"kid": KID_2, "error": {"code": "key-unknown", "detail": "no such key"}}
BOTH = [KID, KID_2]


def vectors() -> Iterator[Vector]:
    yield from _good()
    yield from _errors_of_a_kid()
    for name, (comment, body) in (answering.broken_json(_answer(ENTRY)) | answering.bad_leases(_answer(ENTRY))).items():
        yield _refuses(name, comment, [KID], body)
    yield from _bad_top()
    yield from _bad_entries()
    yield from _wrong_kids()
    yield from answering.by_status(KIND, {"kids": [KID]}, _answer(ENTRY))


def _answer(*entries: Any, plaintext: str = "reject") -> Answer:
    return {"plaintext": plaintext, **LEASE, "keys": list(entries)}


def _given(kids: Sequence[str], body: str, content_type: str = JSON) -> Vector:
    return {"kids": list(kids), "status": 200, "content_type": content_type, "body": body}


def _refuses(name: str, comment: str, kids: Sequence[str], body: str) -> Vector:
    return refused(f"{KIND}-{name}", comment, _given(kids, body), BAD, ["KEY-003"])


def _takes(name: str, comment: str, given: Vector, keys: Vector, covers: Sequence[str] = ("KEY-003",)) -> Vector:
    plaintext = "accept" if '"accept"' in given["body"] else "reject"
    return accepted(f"{KIND}-{name}", comment, given, {"plaintext": plaintext, "keys": keys}, covers)


def _good() -> Iterator[Vector]:
    one = {KID: {"scope": "claims"}}
    yield _takes("one", "one key", _given([KID], text(_answer(ENTRY))), one)
    for policy in ("reject", "accept"):
        body = text(_answer(plaintext=policy))
        yield _takes(f"none-{policy}", "no kid was asked for", _given([], body), {})
    two = one | {KID_2: {"scope": "claims"}}
    yield _takes("two", "two keys", _given(BOTH, text(_answer(ENTRY, ENTRY_2))), two)
    yield _takes("two-reversed", "in another order", _given(BOTH, text(_answer(ENTRY_2, ENTRY))), two)
    scoped = text(_answer(ENTRY, ENTRY_2 | {"scope": "payments"}))
    yield _takes("two-scopes", "a scope each", _given(BOTH, scoped), one | {KID_2: {"scope": "payments"}})
    more = text(_answer(ENTRY | {"note": "x"}) | {"note": [1, {}]})
    yield _takes("unknown-members", "unknown members are ignored", _given([KID], more), one)
    deep = text(_answer(ENTRY | {"note": nested(5)}))
    yield _takes("depth-8", "nested 8 deep", _given([KID], deep), one)
    given = _given([KID], text(_answer(ENTRY)), "application/json; charset=utf-8")
    yield _takes("type-charset", "with a charset", given, one)


def _errors_of_a_kid() -> Iterator[Vector]:
    """The others of the call are fine."""
    codes = {
        "key-unknown": 0,
        "key-destroyed": 0,
        "scope-mismatch": 0,
        "not-authorized": 0,
        "made-up": 1,
        "internal": 1,
    }
    for code, foreign in codes.items():
        body = text(_answer(ENTRY, {"kid": KID_2, "error": {"code": code}}))
        keys = {KID: {"scope": "claims"}, KID_2: {"error": "not-authorized" if foreign else code}}
        yield _takes(f"error-{code}", "an error beside one kid", _given(BOTH, body), keys)
    wrong = {"31-bytes": KEY_2[:31], "33-bytes": KEY_2 + b"\x00", "other": KEY, "random": drbg("answer/random", 32)}
    for name, key in wrong.items():
        body = text(_answer(ENTRY, ENTRY_2 | {"key": b64(key)}))
        code = "key-malformed" if len(key) != 32 else "key-id-mismatch"
        keys = {KID: {"scope": "claims"}, KID_2: {"error": code}}
        yield _takes(f"key-{name}", "one key is wrong, the other good", _given(BOTH, body), keys, ["KEY-004"])


def _bad_top() -> Iterator[Vector]:
    good = _answer(ENTRY)
    values: dict[str, dict[str, Any]] = {
        "plaintext": {"unknown": "maybe", "case": "Reject", "true": True, "null": None, "absent": ABSENT},
        "keys": {"object": {KID: ENTRY}, "string": "none", "null": None, "absent": ABSENT},
    }
    for member, cases in values.items():
        for name, value in cases.items():
            body = text(changed(good, **{member: value}))
            yield _refuses(f"{member}-{name}", f"{member} is {name}", [KID], body)


def _bad_entries() -> Iterator[Vector]:
    members: dict[str, dict[str, tuple[str, Any]]] = {
        "scope": answering.BAD_SCOPES,
        "kid": answering.BAD_KIDS,
        "key": answering.BAD_KEYS,
        "refresh_in": {
            "zero": ("0", 0),
            "string": ("a string", "150"),
            "over": ("over expires_in", 301),
            "absent": ("", ABSENT),
        },
        "expires_in": {"over": ("more than a week", 604801), "fraction": ("", 300.5), "absent": ("", ABSENT)},
    }
    for member, cases in members.items():
        for name, (comment, value) in cases.items():
            body = text(_answer(changed(ENTRY, **{member: value})))
            yield _refuses(f"entry-{member}-{name}".replace("_", "-"), comment or "absent or no integer", [KID], body)
    entries: dict[str, tuple[str, Any]] = {
        "string": ("no object", KID),
        "null": ("null", None),
        "bare": ("neither key nor error", {"kid": KID}),
        "both": ("a key and an error", ENTRY | {"error": {"code": "key-unknown"}}),
        "error-string": ("the error is no object", {"kid": KID, "error": "key-unknown"}),
        "error-null": ("the error is null", {"kid": KID, "error": None}),
        "error-no-code": ("the error has no code", {"kid": KID, "error": {"detail": "no such key"}}),
        "error-code-number": ("the code is a number", {"kid": KID, "error": {"code": 404}}),
        "duplicate": ("a member twice inside", None),
    }
    for name, (comment, entry) in entries.items():
        body = text(_answer(entry))
        if name == "duplicate":
            body = text(_answer(ENTRY)).replace('"scope": "claims"', '"scope": "claims", "scope": "payments"')
        yield _refuses(f"entry-{name}", comment, [KID], body)


def _wrong_kids() -> Iterator[Vector]:
    cases: dict[str, tuple[str, Sequence[str], Answer]] = {
        "missing": ("no entry for one kid", BOTH, _answer(ENTRY)),
        "all-missing": ("no entry at all", [KID], _answer()),
        "foreign": ("an entry for a kid not asked for", [KID], _answer(ENTRY, ENTRY_2)),
        "foreign-error": ("an error for a kid not asked for", [KID], _answer(ENTRY, REFUSAL)),
        "instead": ("another kid instead", [KID], _answer(ENTRY_2)),
        "unasked": ("a key although none was asked for", [], _answer(ENTRY)),
        "twice": ("one kid twice", [KID], _answer(ENTRY, ENTRY)),
        "twice-one-missing": ("as many as asked, but one twice", BOTH, _answer(ENTRY, ENTRY)),
        "key-and-error": ("one kid with a key, then with an error", BOTH, _answer(ENTRY_2, ENTRY, REFUSAL)),
    }
    for name, (comment, kids, answer) in cases.items():
        yield _refuses(f"kids-{name}", comment, kids, text(answer))
