"""Vectors of kind encryption-key-answer: what an SDK makes of the answer to POST /v1/encryption-key."""

from collections.abc import Iterator, Sequence
from typing import Any

from vectorgen import answering
from vectorgen.answering import ABSENT, BAD, JSON, KEY, KEY_2, KID, LEASE, b64, changed, nested, text
from vectorgen.vector import Vector, accepted, refused

KIND = "encryption-key-answer"
GOOD = {"mode": "encrypt", "scope": "claims", "kid": KID, "key": b64(KEY), **LEASE}
TAKEN = {"mode": "encrypt", "scope": "claims", "kid": KID, **LEASE}


def vectors() -> Iterator[Vector]:
    yield from _good()
    for name, (comment, body) in (answering.broken_json(GOOD) | answering.bad_leases(GOOD)).items():
        yield _refuses(name, comment, body, BAD)
    yield from _bad_members()
    yield from _bad_keys()
    yield from answering.by_status(KIND, {}, GOOD)


def _given(body: str, content_type: str = JSON) -> Vector:
    return {"status": 200, "content_type": content_type, "body": body}


def _refuses(name: str, comment: str, body: str, code: str, covers: Sequence[str] = ("KEY-003",)) -> Vector:
    return refused(f"{KIND}-{name}", comment, _given(body), code, covers)


def _takes(name: str, comment: str, given: Vector, output: Vector) -> Vector:
    return accepted(f"{KIND}-{name}", comment, given, output, ["KEY-003"])


def _good() -> Iterator[Vector]:
    yield _takes("encrypt", "a key", _given(text(GOOD)), TAKEN)
    for mode in ("clear", "forbid"):
        yield _takes(mode, "no key", _given(text({"mode": mode, **LEASE})), {"mode": mode, **LEASE})
    for name, lease in {"shortest": (1, 1), "longest": (604800, 604800), "equal": (300, 300)}.items():
        members = {"refresh_in": lease[0], "expires_in": lease[1]}
        yield _takes(f"lease-{name}", "the limits are allowed", _given(text(GOOD | members)), TAKEN | members)
    for name, scope in {"1-byte": "s", "249-bytes": "s" * 249}.items():
        given = _given(text(GOOD | {"scope": scope}))
        yield _takes(f"scope-{name}", "the limits are allowed", given, TAKEN | {"scope": scope})
    types = {
        "charset": "application/json; charset=utf-8",
        "case": "Application/JSON",
        "tight": "application/json;charset=UTF-8",
    }
    for name, content_type in types.items():
        yield _takes(f"type-{name}", content_type, _given(text(GOOD), content_type), TAKEN)
    more = GOOD | {"note": {"any": ["thing", None, True, 7]}}
    yield _takes("unknown-member", "unknown members are ignored", _given(text(more)), TAKEN)
    deep = GOOD | {"note": nested(7)}
    yield _takes("depth-8", "nested 8 deep", _given(text(deep)), TAKEN)
    spaced = " \r\n\t" + text(GOOD).replace(": ", " :\n") + "\n"
    yield _takes("white-space", "white space where JSON allows it", _given(spaced), TAKEN)
    escaped = text(GOOD).replace("claims", r"\u0063laims").replace("mode", r"m\u006fde", 1)
    yield _takes("escapes", "escaped letters", _given(escaped), TAKEN)


def _bad_members() -> Iterator[Vector]:
    modes = {"unknown": "plain", "case": "Encrypt", "empty": "", "number": 1, "null": None, "absent": ABSENT}
    members: dict[str, dict[str, tuple[str, Any]]] = {
        "mode": {name: (f"mode is {name}", mode) for name, mode in modes.items()},
        "scope": answering.BAD_SCOPES,
        "kid": answering.BAD_KIDS,
        "key": answering.BAD_KEYS,
    }
    for member, cases in members.items():
        for name, (comment, value) in cases.items():
            yield _refuses(f"{member}-{name}", comment, text(changed(GOOD, **{member: value})), BAD)
    for mode in ("clear", "forbid"):
        yield _refuses(f"{mode}-no-lease", "a decision without a lease", text({"mode": mode}), BAD)


def _bad_keys() -> Iterator[Vector]:
    for size in (0, 16, 31, 33):
        body = text(GOOD | {"key": b64((KEY + KEY)[:size])})
        yield _refuses(f"key-{size}-bytes", f"{size} bytes", body, "key-malformed", ["KEY-004"])
    wrong = {"other": GOOD | {"key": b64(KEY_2)}, "other-kid": GOOD | {"kid": "0" * 32}}
    for name, answer in wrong.items():
        yield _refuses(
            f"key-{name}", "key and kid do not belong together", text(answer), "key-id-mismatch", ["KEY-004"]
        )
    both = text(GOOD | {"key": b64(KEY[:31]), "refresh_in": 0})
    yield _refuses("key-and-lease", "a key of 31 bytes, and no valid lease: the answer first", both, BAD)
