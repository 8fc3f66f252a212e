"""Names of topics and scopes: Kafka's rules for topic names (spec/limits.md), and sets of topics and of SPIFFE ids."""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass

from cipherlane.errors import CipherlaneError, ErrorCode

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_GLOB = re.compile(r"[A-Za-z0-9._*?-]{1,249}")


def is_valid_name(name: object) -> bool:
    """Whether a name follows the rules: 1 to 249 of ``A-Z a-z 0-9 . _ -``, and not ``.`` or ``..``."""
    return isinstance(name, str) and name not in {".", ".."} and _NAME.fullmatch(name) is not None


def is_valid_glob(glob: str) -> bool:
    """Whether a text is a topic's name, or one with ``*`` and ``?`` in it."""
    return glob not in {".", ".."} and _GLOB.fullmatch(glob) is not None


@functools.lru_cache(maxsize=1024)
def check_topic(topic: str) -> None:
    """Refuses what cannot be a topic; names that passed are remembered, because every record asks.

    Raises:
        CipherlaneError: ``topic-invalid``
    """
    if not is_valid_name(topic):
        raise CipherlaneError(ErrorCode.TOPIC_INVALID, "not a Kafka topic name")


@dataclass(frozen=True)
class TopicSet:
    """Topics given by names and globs: ``*`` stands for any run of characters, ``?`` for one (spec/policy.md)."""

    globs: tuple[str, ...] = ()

    def __contains__(self, topic: str) -> bool:
        """Whether one of the globs matches the whole name."""
        return any(_pattern(glob).match(topic) for glob in self.globs)


_SPIFFE = "spiffe://"


def is_valid_id(pattern: str) -> bool:
    """Whether a text is a SPIFFE id, or a pattern of some."""
    printable = pattern.isascii() and pattern.isprintable() and " " not in pattern
    return printable and pattern.startswith(_SPIFFE) and len(pattern) > len(_SPIFFE)


@dataclass(frozen=True)
class IdSet:
    """SPIFFE ids given by patterns, as in a grant: no wildcard matches ``/``; a last ``/**`` takes whole segments."""

    patterns: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        """Whether one of the patterns matches the whole id."""
        return any(_matches(pattern.split("/"), name.split("/")) for pattern in self.patterns)


def _matches(wanted: list[str], found: list[str]) -> bool:
    if wanted[-1] == "**":
        below = len(wanted) - 1
        return "/".join(found[below:]) != "" and _matches(wanted[:below], found[:below])
    return len(wanted) == len(found) and all(_pattern(glob).match(part) for glob, part in zip(wanted, found))


@functools.lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    # fnmatch knows "[" too, which stands for itself here; its patterns take no exponential time.
    return re.compile(fnmatch.translate(glob.replace("[", "[[]")))
