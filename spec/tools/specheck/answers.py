"""A plain model of an SDK that reads the key service's answers, from key-service.md and errors.md."""

import base64
import binascii
import json
import re
from typing import Any

from specheck.model import is_kafka_name, kid_of
from specheck.refusal import Refused

Vector = dict[str, Any]
BAD = "key-service-bad-answer"
KID = re.compile(r"[0-9a-f]{32}")
WEEK = 604_800
DEPTH = 8
OF_A_KID = {"scope-mismatch", "key-unknown", "key-destroyed", "not-authorized"}
CODES = {
    400: {"request-invalid", "topic-invalid"},
    401: {"unauthenticated"},
    403: {"not-authorized", "topic-forbidden", "topic-unknown"},
    413: {"request-too-large"},
    415: {"request-invalid"},
    429: {"key-service-unavailable"},
    500: {"internal"},
    503: {"audit-unavailable", "key-service-unavailable"},
}


def encryption_key_answer(given: Vector) -> Vector:
    answer = _document(given)
    mode = answer.get("mode")
    _need(mode in ("encrypt", "clear", "forbid"))
    lease = _lease(answer)
    if mode != "encrypt":
        return {"mode": mode, **lease}
    _need(is_kafka_name(answer.get("scope")) and _is_kid(answer.get("kid")))
    _check_key(_base64(answer.get("key")), answer["kid"])
    return {"mode": mode, "scope": answer["scope"], "kid": answer["kid"], **lease}


def decryption_keys_answer(given: Vector) -> Vector:
    answer = _document(given)
    _need(answer.get("plaintext") in ("reject", "accept") and isinstance(answer.get("keys"), list))
    _lease(answer)
    entries = [_entry(entry) for entry in answer["keys"]]
    kids = [kid for kid, _ in entries]
    _need(sorted(kids) == sorted(given["kids"]))
    return {"plaintext": answer["plaintext"], "keys": {kid: _outcome(kid, entry) for kid, entry in entries}}


def _entry(entry: Any) -> tuple[str, Vector]:
    """The kid and what stands beside it, checked in form but not yet against the kid."""
    _need(isinstance(entry, dict) and _is_kid(entry.get("kid")))
    if "error" in entry:
        error = entry["error"]
        _need("key" not in entry and isinstance(error, dict) and isinstance(error.get("code"), str))
        return entry["kid"], {"error": error["code"] if error["code"] in OF_A_KID else "not-authorized"}
    _lease(entry)
    _need(is_kafka_name(entry.get("scope")))
    return entry["kid"], {"scope": entry["scope"], "key": _base64(entry.get("key"))}


def _outcome(kid: str, entry: Vector) -> Vector:
    if "error" in entry:
        return entry
    try:
        _check_key(entry["key"], kid)
    except Refused as refused:
        return {"error": refused.code}
    return {"scope": entry["scope"]}


def _document(given: Vector) -> Vector:
    """The JSON object of an answer of status 200; anything else is refused."""
    status, content_type = given["status"], given["content_type"].split(";")[0].strip().lower()
    if status != 200:
        raise Refused(_refusal(status, content_type, given["body"]))
    _need(content_type == "application/json")
    return _parse(given["body"])


def _refusal(status: int, content_type: str, body: str) -> str:
    """The code of an answer whose status is not 200."""
    fallback = "key-service-unavailable" if status == 429 or status >= 500 else BAD
    try:
        _need(content_type == "application/problem+json")
        code = _parse(body).get("code")
        _need(isinstance(code, str))
    except Refused:
        return fallback
    if code in CODES.get(status, set()):
        return str(code)
    return "not-authorized" if status in (401, 403) else fallback


def _parse(body: str) -> Vector:
    try:
        document = json.loads(body, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(BAD) from error
    _need(isinstance(document, dict) and _fits(document, DEPTH))
    return dict(document)


def _unique(members: list[tuple[str, Any]]) -> Vector:
    _need(len({name for name, _ in members}) == len(members))
    return dict(members)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _fits(value: Any, depth: int) -> bool:
    """Whether objects and arrays are nested at most `depth` deep."""
    if not isinstance(value, dict | list):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return depth > 0 and all(_fits(member, depth - 1) for member in inside)


def _lease(answer: Vector) -> Vector:
    lease = {name: answer.get(name) for name in ("refresh_in", "expires_in")}
    _need(all(type(seconds) is int for seconds in lease.values()))
    _need(1 <= answer["refresh_in"] <= answer["expires_in"] <= WEEK)
    return lease


def _base64(text: Any) -> bytes:
    _need(isinstance(text, str))
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refused(BAD) from error
    _need(base64.b64encode(data).decode() == text)
    return data


def _check_key(key: bytes, kid: str) -> None:
    if kid_of(key).hex() != kid:
        raise Refused("key-id-mismatch")


def _is_kid(text: Any) -> bool:
    return isinstance(text, str) and KID.fullmatch(text) is not None


def _need(condition: object) -> None:
    if not condition:
        raise Refused(BAD)
