"""Failure actions: which failures they apply to, and the headers by which records tell of them (spec/kafka.md).

Knows nothing of Kafka clients.
"""

from __future__ import annotations

from typing import Any, Optional

from cipherlane.configuration import FailureAction
from cipherlane.errors import DecryptionError, ErrorCode
from cipherlane.names import is_valid_name

MARK = "cipherlane.error"
"""The header that holds the code; those of a dead letter begin with it."""

_NEVER_READABLE_LAYERS = frozenset({"parse", "key-id", "decryption"})
_NEVER_READABLE = frozenset({ErrorCode.PLAINTEXT_TOO_LONG, ErrorCode.PLAINTEXT_REJECTED, ErrorCode.SCOPE_MISMATCH})

Headers = list[tuple[str, Any]]


def applies(action: FailureAction, error: DecryptionError) -> bool:
    """Whether the action is taken; else the record is met as under ``fail``.

    An outage, or a principal that was refused, concerns every record, and loses none [CL-KAF-020].
    """
    if action is FailureAction.MARK and error.error_code is ErrorCode.PLAINTEXT_REJECTED:
        return False  # injected plaintext is not handed over [CL-KAF-025]
    return error.layer in _NEVER_READABLE_LAYERS or error.error_code in _NEVER_READABLE


def marked(headers: Any, error: DecryptionError) -> Headers:  # noqa: ANN401 - as the client has them, or None
    """The record's own headers and the mark [CL-KAF-024]."""
    return [*(headers or ()), (MARK, error.code.encode())]


def unmarked(headers: Any) -> Optional[Headers]:  # noqa: ANN401
    """The headers without marks that came with the record, or None if there are none: only our own word counts."""
    if not headers or all(name != MARK for name, _ in headers):
        return None
    return [(name, value) for name, value in headers if name != MARK]


def letter_headers(headers: Any, error: DecryptionError) -> Headers:  # noqa: ANN401
    """The record's own headers, without those of ours that it came with, and what is to be known of the failure."""
    known = {
        MARK: error.code,
        f"{MARK}.topic": error.topic,
        f"{MARK}.partition": error.partition,
        f"{MARK}.offset": error.offset,
        f"{MARK}.kid": None if error.kid is None else error.kid.hex(),
    }
    own = [(name, str(value).encode()) for name, value in known.items() if value is not None]
    return [(name, value) for name, value in headers or () if name not in known] + own


def check_letter_topic(topic: str, letter_topic: str) -> None:
    """Raises ``ValueError`` if a dead letter cannot go to a topic [CL-KAF-023]."""
    if topic == letter_topic:
        raise ValueError("the dead-letter topic is the topic itself")
    if not is_valid_name(letter_topic):
        raise ValueError("the dead-letter topic's name is longer than 249 characters")


def not_lettered(error: DecryptionError, reason: str) -> DecryptionError:
    """The failure, and why the record is not in the dead-letter topic [CL-KAF-023]."""
    return DecryptionError(
        error.error_code,
        f"{error.detail}; it could not be put into the dead-letter topic: {reason}",
        topic=error.topic,
        partition=error.partition,
        offset=error.offset,
        kid=error.kid,
    )
