"""The common ground of the answers of the key service: good bodies, ways to break one, and refusals by status."""

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from vectorgen.crypto import drbg, key_id
from vectorgen.vector import Vector, refused

JSON = "application/json"
PROBLEM = "application/problem+json"
BAD = "key-service-bad-answer"
DOWN = "key-service-unavailable"
KEY = drbg("answer/key", 32)
KID = key_id(KEY).hex()
KEY_2 = drbg("answer/key-2", 32)
KID_2 = key_id(KEY_2).hex()
LEASE = {"refresh_in": 150, "expires_in": 300}
ABSENT = object()
Answer = dict[str, Any]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def changed(answer: Answer, **members: Any) -> Answer:
    """The answer with members changed, added, or (ABSENT) taken out."""
    return {name: value for name, value in (answer | members).items() if value is not ABSENT}


def text(answer: Any) -> str:
    return json.dumps(answer)


def nested(depth: int) -> Any:
    """Arrays in one another, `depth` of them."""
    return [nested(depth - 1)] if depth > 1 else []


def swap(answer: Answer, old: str, new: str) -> str:
    """The text of the answer with one piece replaced; the piece must be there."""
    body = text(answer)
    if old not in body:
        raise ValueError(f"{old!r} is not in {body!r}")
    return body.replace(old, new, 1)


# What no reader may make sense of: name -> (comment, body made from a good answer).
def broken_json(answer: Answer) -> dict[str, tuple[str, str]]:
    body = text(answer)
    return {
        "empty-body": ("no body", ""),
        "space": ("white space alone", " \n"),
        "null": ("null", "null"),
        "array": ("the answer in an array", f"[{body}]"),
        "string": ("the answer in a string", json.dumps(body)),
        "number": ("a number", "7"),
        "html": ("a page", "<!doctype html><title>It works</title>"),
        "cut": ("cut before the last brace", body[:-1]),
        "trailing-text": ("text behind", body + "x"),
        "trailing-object": ("a second object behind", body + "{}"),
        "trailing-comma": ("a comma before the last brace", body[:-1] + ",}"),
        "comment": ("a comment", "/* hello */" + body),
        "prefix": ("a guard against script inclusion in front", ")]}'\n" + body),
        "single-quotes": ("single quotes", body.replace('"', "'")),
        "bare-name": ("a member name without quotes", body.replace('"refresh_in"', "refresh_in", 1)),
        "duplicate-lease": ("a member twice, equal", body[:-1] + ', "expires_in": 300}'),
        "duplicate-other": ("a member twice, different", body[:-1] + ', "expires_in": 301}'),
        "duplicate-escaped": ("a member twice, once escaped", body[:-1] + r', "expires\u005fin": 300}'),
        "duplicate-unknown": ("an unknown member twice", body[:-1] + ', "note": 1, "note": 1}'),
        "nan-unknown": ("NaN in an unknown member", body[:-1] + ', "note": NaN}'),
        "depth-9": ("nested 9 deep", text(changed(answer, note=nested(8)))),
        "depth-500": ("nested 500 deep", text(changed(answer, note=nested(499)))),
    }


def bad_leases(answer: Answer) -> dict[str, tuple[str, str]]:
    """The same for the first lease in the text of an answer."""
    numbers = {
        "zero": "0",
        "negative": "-150",
        "fraction": "150.5",
        "point-zero": "150.0",
        "exponent": "1e2",
        "string": '"150"',
        "true": "true",
        "null": "null",
        "array": "[150]",
        "nan": "NaN",
        "wraps-32": "4294967446",
        "wraps-64": "18446744073709551766",
        "huge": "1" + "0" * 40,
        "over-expires": "301",
    }
    old = '"refresh_in": 150'
    cases = {
        f"refresh-{n}": (f"refresh_in is {v:.24}", swap(answer, old, f'"refresh_in": {v}')) for n, v in numbers.items()
    }
    whole = '"refresh_in": 150, "expires_in": 300'
    for name, refresh, expires in (("zero", 0, 0), ("over-a-week", 150, 604801), ("negative", -2, -1)):
        given = f'"refresh_in": {refresh}, "expires_in": {expires}'
        cases[f"expires-{name}"] = (f"expires_in is {expires}", swap(answer, whole, given))
    cases["no-refresh"] = ("no refresh_in", swap(answer, '"refresh_in": 150, ', ""))
    cases["no-expires"] = ("no expires_in", swap(answer, '"refresh_in": 150, "expires_in": 300', '"refresh_in": 150'))
    return cases


BAD_KEYS = {
    "url-alphabet": ("the alphabet of URLs", b64(b"\xfb\xff" * 16).replace("+", "-").replace("/", "_")),
    "no-padding": ("no padding", b64(KEY).rstrip("=")),
    "too-much-padding": ("one = too many", b64(KEY) + "="),
    "newline": ("a newline behind", b64(KEY) + "\n"),
    "space-inside": ("a space inside", b64(KEY)[:20] + " " + b64(KEY)[20:]),
    "trailing-bits": ("unused bits that are not 0", b64(bytes(32))[:-2] + "B="),
    "not-base64": ("a character outside the alphabet", "!" + b64(KEY)[1:]),
    "hex": ("hexadecimal, and cut so that it is no base64", KEY.hex()[:63]),
    "number": ("a number", 7),
    "null": ("null", None),
    "array": ("an array of bytes", list(KEY)),
    "absent": ("no key", ABSENT),
}
BAD_KIDS = {
    "uppercase": ("uppercase digits", KID.upper()),
    "31-digits": ("one digit short", KID[:-1]),
    "33-digits": ("one digit more", KID + "0"),
    "newline": ("a newline behind", KID + "\n"),
    "not-hex": ("not a hexadecimal digit", KID[:-1] + "g"),
    "full-width": ("a digit that is not ASCII", "\uff10" + KID[1:]),
    "dashes": ("written as a UUID", f"{KID[:8]}-{KID[8:12]}-{KID[12:16]}-{KID[16:20]}-{KID[20:]}"),
    "empty": ("empty", ""),
    "number": ("a number", 7),
    "null": ("null", None),
    "absent": ("no kid", ABSENT),
}
BAD_SCOPES = {
    "empty": ("empty", ""),
    "250-bytes": ("one byte too long", "s" * 250),
    "dot": ("reserved", "."),
    "dot-dot": ("reserved", ".."),
    "slash": ("a slash", "a/b"),
    "space": ("a space", "a b"),
    "newline": ("a newline behind", "claims\n"),
    "nul": ("a zero byte behind", "claims\x00"),
    "umlaut": ("not ASCII", "sch\u00e4den"),
    "surrogate": ("half of a surrogate pair", "claims\ud800"),
    "number": ("a number", 7),
    "null": ("null", None),
    "absent": ("no scope", ABSENT),
}

# status, code in the problem document -> what the SDK reports
PROBLEMS = (
    (400, "request-invalid", "request-invalid"),
    (400, "topic-invalid", "topic-invalid"),
    (400, "made-up", BAD),
    (401, "unauthenticated", "unauthenticated"),
    (401, "made-up", "not-authorized"),
    (403, "not-authorized", "not-authorized"),
    (403, "topic-forbidden", "topic-forbidden"),
    (403, "topic-unknown", "topic-unknown"),
    (403, "made-up", "not-authorized"),
    (404, "not-found", BAD),
    (404, "key-unknown", BAD),
    (405, "not-found", BAD),
    (409, "not-authorized", BAD),
    (413, "request-too-large", "request-too-large"),
    (415, "request-invalid", "request-invalid"),
    (429, DOWN, DOWN),
    (500, "internal", "internal"),
    (500, "key-unknown", DOWN),
    (503, "audit-unavailable", "audit-unavailable"),
    (503, DOWN, DOWN),
)
# name -> status, content type, body, what the SDK reports
OTHER_ANSWERS = {
    "201": (201, JSON, None, BAD),
    "204": (204, JSON, "", BAD),
    "206": (206, JSON, None, BAD),
    "302": (302, JSON, None, BAD),
    "307": (307, "text/html", '<a href="https://elsewhere.example">moved</a>', BAD),
    "304": (304, JSON, "", BAD),
    "404-answer": (404, JSON, None, BAD),
    "404-html": (404, "text/html", "<h1>404</h1>", BAD),
    "401-html": (401, "text/html", "<h1>401</h1>", BAD),
    "403-html": (403, "text/html", "<h1>403</h1>", BAD),
    "403-empty": (403, PROBLEM, "", BAD),
    "403-no-code": (403, PROBLEM, '{"status": 403, "title": "Forbidden"}', BAD),
    "403-code-number": (403, PROBLEM, '{"status": 403, "code": 403}', BAD),
    "403-code-twice": (403, PROBLEM, '{"code": "not-authorized", "code": "topic-unknown"}', BAD),
    "403-json": (403, JSON, '{"status": 403, "code": "not-authorized"}', BAD),
    "403-answer": (403, JSON, None, BAD),
    "429-empty": (429, "text/plain", "", DOWN),
    "500-answer": (500, JSON, None, DOWN),
    "502-html": (502, "text/html", "<h1>Bad Gateway</h1>", DOWN),
    "503-empty": (503, "", "", DOWN),
    "504-html": (504, "text/html", "<h1>Gateway Timeout</h1>", DOWN),
    "200-html": (200, "text/html", None, BAD),
    "200-text": (200, "text/plain", None, BAD),
    "200-no-type": (200, "", None, BAD),
    "200-problem": (200, PROBLEM, '{"status": 403, "code": "not-authorized"}', BAD),
    "200-type-prefix": (200, "application/jsonp", None, BAD),
    "200-type-list": (200, "text/html, application/json", None, BAD),
}


def by_status(kind: str, common: Vector, good: Answer) -> Iterator[Vector]:
    """Refusals and strange answers; the body is the good answer where the table has none."""
    for status, code, reported in PROBLEMS:
        document = {
            "status": status,
            "title": "Refused",
            "detail": "for this vector",
            "code": code,
            "request_id": "r-1",
        }
        given = common | {"status": status, "content_type": PROBLEM, "body": text(document)}
        yield refused(f"{kind}-{status}-{code}", f"status {status}", given, reported, _covers(status, reported))
    for name, (status, content_type, body, reported) in OTHER_ANSWERS.items():
        given = common | {"status": status, "content_type": content_type, "body": text(good) if body is None else body}
        yield refused(f"{kind}-{name}", "not as specified", given, reported, _covers(status, reported))


def _covers(status: int, reported: str) -> Sequence[str]:
    if reported == BAD and status != 200:
        return ["KEY-003", "ERR-006"]
    return ["ERR-003"] if status >= 429 else ["KEY-003"]
