"""Names of topics and scopes: Kafka's rules for topic names (spec/limits.md)."""

from __future__ import annotations

import functools
import re

from cipherlane.errors import CipherlaneError, ErrorCode

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")


def is_valid_name(name: object) -> bool:
    """Whether a name follows the rules: 1 to 249 of ``A-Z a-z 0-9 . _ -``, and not ``.`` or ``..``."""
    return isinstance(name, str) and name not in {".", ".."} and _NAME.fullmatch(name) is not None


@functools.lru_cache(maxsize=1024)
def check_topic(topic: str) -> None:
    """Refuses what cannot be a topic; names that passed are remembered, because every record asks.

    Raises:
        CipherlaneError: ``topic-invalid``
    """
    if not is_valid_name(topic):
        raise CipherlaneError(ErrorCode.TOPIC_INVALID, "not a Kafka topic name")
