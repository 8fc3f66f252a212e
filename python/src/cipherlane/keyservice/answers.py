"""Reads the key service's answers: first the form of the whole answer, then the keys in it (spec/key-service.md).

Errors raised here carry no part of the answer but what :func:`printable` lets through, because an answer holds keys.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Union

from cipherlane.errors import CipherlaneError, ErrorCode, without_frames
from cipherlane.keys import (
    DataKey,
    DecryptionAnswer,
    DecryptionGrant,
    EncryptionAnswer,
    EncryptionGrant,
    Leased,
    PlaintextPolicy,
    UnencryptedMode,
)
from cipherlane.keyservice import strict_json
from cipherlane.names import is_valid_name

MAX_LEASE = 604_800
"""Seconds."""

_KID = re.compile(r"[0-9a-f]{32}")
_PRINTABLE = re.compile(r"[^\x20-\x7e]")
_MAX_DETAIL = 200

# spec/errors.md, "HTTP"; 404 and 405 are not here: they are never an answer about a key [CL-ERR-006].
_CODES_BY_STATUS: Mapping[int, frozenset[ErrorCode]] = {
    400: frozenset({ErrorCode.REQUEST_INVALID, ErrorCode.TOPIC_INVALID}),
    401: frozenset({ErrorCode.UNAUTHENTICATED}),
    403: frozenset({ErrorCode.NOT_AUTHORIZED, ErrorCode.TOPIC_FORBIDDEN, ErrorCode.TOPIC_UNKNOWN}),
    413: frozenset({ErrorCode.REQUEST_TOO_LARGE}),
    415: frozenset({ErrorCode.REQUEST_INVALID}),
    429: frozenset({ErrorCode.KEY_SERVICE_UNAVAILABLE}),
    500: frozenset({ErrorCode.KEY_SERVICE_INTERNAL}),
    503: frozenset({ErrorCode.AUDIT_UNAVAILABLE, ErrorCode.KEY_SERVICE_UNAVAILABLE}),
}
_KID_CODES = {
    code.code: code
    for code in (
        ErrorCode.KEY_UNKNOWN,
        ErrorCode.KEY_DESTROYED,
        ErrorCode.SCOPE_MISMATCH,
        ErrorCode.NOT_AUTHORIZED,
    )
}

Members = Mapping[str, Any]


def encryption_key(status: int, content_type: str, body: bytes) -> EncryptionAnswer:
    """Reads the answer to ``POST /v1/encryption-key``.

    Raises:
        CipherlaneError: what the service refused with, ``key-service-bad-answer`` [CL-KEY-003], ``key-malformed`` or
            ``key-id-mismatch`` [CL-KEY-004]
    """
    answer = _accepted(status, content_type, body)
    refresh_in, expires_in = _lease(answer)
    mode = _text(answer, "mode")
    if mode in {unencrypted.value for unencrypted in UnencryptedMode}:
        return Leased(UnencryptedMode(mode), refresh_in, expires_in)
    if mode != "encrypt":
        raise _bad("an unknown mode")
    scope, kid, key = _scope(answer), _kid(answer), _key(answer)
    return Leased(EncryptionGrant(scope, DataKey(kid, key)), refresh_in, expires_in)


def decryption_keys(kids: Sequence[bytes], status: int, content_type: str, body: bytes) -> DecryptionAnswer:
    """Reads the answer to ``POST /v1/decryption-keys``.

    Args:
        kids: what was asked for
        status: of HTTP
        content_type: header of that name, or ""
        body: of the answer

    Raises:
        CipherlaneError: as :func:`encryption_key`; but ``key-malformed`` and ``key-id-mismatch`` stand beside their kid
    """
    answer = _accepted(status, content_type, body)
    plaintext = _text(answer, "plaintext")
    if plaintext not in {policy.value for policy in PlaintextPolicy}:
        raise _bad("an unknown policy on plaintext")
    leased = Leased(PlaintextPolicy(plaintext), *_lease(answer))
    forms = [_kid_form(entry) for entry in _list(answer, "keys")]
    if sorted(kid for kid, _ in forms) != sorted(kids):
        raise _bad("not exactly one entry for each kid asked for")
    return DecryptionAnswer(leased, {kid: _kid_grant(kid, form) for kid, form in forms})


class CertificateAnswer(NamedTuple):
    """Its form was checked, its certificates were not. Times are in seconds from when the request was sent."""

    certificate: str
    ca: str
    refresh_in: int
    expires_in: int


def certificate(status: int, content_type: str, body: bytes) -> CertificateAnswer:
    """Reads the answer to ``POST /v1/certificate``.

    Raises:
        CipherlaneError: what the service refused with, or ``key-service-bad-answer`` [CL-KEY-003]
    """
    answer = _accepted(status, content_type, body)
    return CertificateAnswer(_text(answer, "certificate"), _text(answer, "ca"), *_lease(answer))


def content_type_of(header: Optional[str]) -> str:
    """The type of a ``Content-Type`` header, in lowercase, without parameters."""
    return (header or "").split(";", 1)[0].strip().lower()


def printable(text: object) -> str:
    """What may be shown of a text that the other side chose."""
    return _PRINTABLE.sub("?", str(text)[:_MAX_DETAIL]) if isinstance(text, str) else ""


def _accepted(status: int, content_type: str, body: bytes) -> Members:
    if status != 200:
        raise _refusal(status, content_type, body)
    if content_type_of(content_type) != "application/json":
        raise _bad("an answer that is not application/json")
    return _members(body)


def _members(body: bytes) -> Members:
    try:
        answer = strict_json.loads(body)
    except strict_json.StrictJsonError as error:
        raise _bad(str(error)) from None
    if not isinstance(answer, dict):
        raise _bad("not a JSON object")
    return answer


# Refusals.


def _refusal(status: int, content_type: str, body: bytes) -> CipherlaneError:
    problem = _problem(content_type, body)
    if problem is not None:
        by_code = {code.code: code for code in _CODES_BY_STATUS.get(status, frozenset())}
        known = by_code.get(problem["code"], _default(status))
        return CipherlaneError(known, _explained(problem))
    if status == 429 or 500 <= status <= 599:
        return CipherlaneError(ErrorCode.KEY_SERVICE_UNAVAILABLE, f"the key service answered {status}")
    return _bad(f"status {status} without a problem document")


def _default(status: int) -> ErrorCode:
    if status in {401, 403}:
        return ErrorCode.NOT_AUTHORIZED
    if status == 429 or 500 <= status <= 599:
        return ErrorCode.KEY_SERVICE_UNAVAILABLE
    return ErrorCode.KEY_SERVICE_BAD_ANSWER


def _problem(content_type: str, body: bytes) -> Optional[Members]:
    """The problem document, if the answer is one."""
    if content_type_of(content_type) != "application/problem+json":
        return None
    try:
        problem = _members(body)
    except CipherlaneError:
        return None
    return problem if isinstance(problem.get("code"), str) else None


def _explained(problem: Members) -> str:
    detail = printable(problem.get("detail")) or "the key service refused"
    request_id = printable(problem.get("request_id"))
    return f"{detail} [request {request_id}]" if request_id else detail


# Members.


def _lease(answer: Members) -> tuple[int, int]:
    refresh_in, expires_in = answer.get("refresh_in"), answer.get("expires_in")
    # bool is a subclass of int; "true" is no number of seconds.
    if type(refresh_in) is not int or type(expires_in) is not int:
        raise _bad("a lease without whole seconds")
    if not 1 <= refresh_in <= expires_in <= MAX_LEASE:
        raise _bad("a lease out of range")
    return refresh_in, expires_in


def _text(answer: Members, name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise _bad(f"no text {name}")
    return value


def _list(answer: Members, name: str) -> Sequence[object]:
    value = answer.get(name)
    if not isinstance(value, list):
        raise _bad(f"no list {name}")
    return value


def _scope(answer: Members) -> str:
    scope = _text(answer, "scope")
    if not is_valid_name(scope):
        raise _bad("an invalid scope")
    return scope


def _kid(answer: Members) -> bytes:
    kid = _text(answer, "kid")
    if _KID.fullmatch(kid) is None:
        raise _bad("a kid that is not 32 lowercase hexadecimal digits")
    return bytes.fromhex(kid)


def _key(answer: Members) -> bytes:
    text = _text(answer, "key")
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _bad("a key that is not base64") from None
    if base64.b64encode(key).decode() != text:
        raise _bad("a key that is not canonical base64")
    return key


# One kid of a decryption answer: its form first, for all of them, then the key.

_Form = Union[tuple[str, bytes, int, int], CipherlaneError]


def _kid_form(entry: object) -> tuple[bytes, _Form]:
    if not isinstance(entry, dict):
        raise _bad("an entry of keys that is no object")
    kid = _kid(entry)
    if "error" not in entry:
        return kid, (_scope(entry), _key(entry), *_lease(entry))
    if "key" in entry or not isinstance(entry["error"], dict):
        raise _bad("an entry of keys that is neither key nor error")
    code = _KID_CODES.get(_text(entry["error"], "code"), ErrorCode.NOT_AUTHORIZED)
    return kid, CipherlaneError(code, printable(entry["error"].get("detail")) or "the key service refused")


def _kid_grant(kid: bytes, form: _Form) -> Union[Leased[DecryptionGrant], CipherlaneError]:
    if isinstance(form, CipherlaneError):
        return form
    scope, key, refresh_in, expires_in = form
    try:
        return Leased(DecryptionGrant(scope, DataKey(kid, key)), refresh_in, expires_in)
    except CipherlaneError as error:
        return without_frames(error)


def _bad(what: str) -> CipherlaneError:
    return CipherlaneError(ErrorCode.KEY_SERVICE_BAD_ANSWER, what)
