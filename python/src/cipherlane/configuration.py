"""The settings, read from a client's dictionary and checked when the client is made (spec/configuration.md)."""

from __future__ import annotations

import difflib
import enum
import re
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Union
from urllib.parse import urlsplit

from cipherlane.errors import ConfigurationError
from cipherlane.keys import KeySettings
from cipherlane.names import IdSet, TopicSet, is_valid_glob, is_valid_id, is_valid_name

PREFIX = "cipherlane."
URLS = PREFIX + "keyservice.urls"
TLS_CA = PREFIX + "keyservice.tls.ca"
TLS_CERTIFICATE = PREFIX + "keyservice.tls.certificate"
TLS_KEY = PREFIX + "keyservice.tls.key"
IDENTITY_RENEW = PREFIX + "identity.renew"
IDENTITY_TOKEN = PREFIX + "identity.token.file"
IDENTITY_JWT = PREFIX + "identity.jwt.file"
PEER_IDS = PREFIX + "tls.peer.ids"
CONNECT_TIMEOUT = PREFIX + "keyservice.connect.timeout.ms"
REQUEST_TIMEOUT = PREFIX + "keyservice.request.timeout.ms"
DEADLINE = PREFIX + "keys.deadline.ms"
RETRY_BACKOFF = PREFIX + "keys.retry.backoff.ms"
CACHE_MAX = PREFIX + "keys.cache.max"
MAX_PLAINTEXT = PREFIX + "max.plaintext.bytes"
COMPRESSION_MIN = PREFIX + "compression.min.bytes"
FAILURE_ACTION = PREFIX + "failure.action"
DEAD_LETTER_TOPIC = PREFIX + "dead.letter.topic"
COMPRESSION_TOPICS = PREFIX + "compression.topics"
RECORD_KEY_TOPICS = PREFIX + "record.key.topics"

_FILES = (TLS_CA, TLS_CERTIFICATE, TLS_KEY)
# name: least, most, default
_NUMBERS = {
    CONNECT_TIMEOUT: (1, 60_000, 2_000),
    REQUEST_TIMEOUT: (1, 60_000, 5_000),
    DEADLINE: (1, 600_000, 10_000),
    RETRY_BACKOFF: (1, 60_000, 500),
    CACHE_MAX: (16, 1_000_000, 10_000),
    MAX_PLAINTEXT: (1, 1_073_741_824, 67_108_864),
    COMPRESSION_MIN: (0, 1_073_741_824, 1_024),
}
_IDENTITY = (IDENTITY_RENEW, IDENTITY_TOKEN, IDENTITY_JWT)
_OTHERS = (PEER_IDS, FAILURE_ACTION, DEAD_LETTER_TOPIC, COMPRESSION_TOPICS, RECORD_KEY_TOPICS)
_NAMES = (URLS, *_FILES, *_NUMBERS, *_IDENTITY, *_OTHERS)
_LONGEST_LIST = 4_095
_TOPIC_OF_RECORD = "{topic}"
_DIGITS = re.compile(r"[0-9]{1,10}")

Settings = Mapping[str, Any]


class FailureAction(enum.Enum):
    """What consuming does with a record that cannot be decrypted (spec/kafka.md)."""

    FAIL = "fail"
    SKIP = "skip"
    DEAD_LETTER = "dead-letter"
    MARK = "mark"


@dataclass(frozen=True)
class Writing:
    """How values are written, apart from the policy."""

    max_plaintext: int
    compression_topics: TopicSet = field(default_factory=TopicSet)
    compression_min: int = 1_024
    record_key_topics: TopicSet = field(default_factory=TopicSet)


@dataclass(frozen=True)
class Configuration:
    """The settings, checked. Times are in seconds, sizes in bytes; the files are opened by whoever uses them."""

    urls: tuple[str, ...]
    tls_ca: str
    tls_certificate: str
    """Empty where a token or a JWT is the first proof; so is the next."""
    tls_key: str
    identity_renew: bool
    identity_token: str
    """Path, or empty; so is the next."""
    identity_jwt: str
    peer_ids: IdSet
    """Without patterns: any peer will do."""
    connect_timeout: float
    request_timeout: float
    keys: KeySettings
    writing: Writing
    failure_action: FailureAction
    dead_letter_topic: str
    """As given; :meth:`dead_letter_topic_of` says what it means for a topic."""

    @classmethod
    def from_settings(cls, settings: Settings) -> Configuration:
        """Reads settings that all start with ``cipherlane.`` (:func:`split` parts them from a client's).

        Raises:
            ConfigurationError: one is unknown [CL-CFG-001], missing, malformed or out of range [CL-CFG-002]
        """
        for name in settings:
            _check_known(name)
        numbers = {name: _number(settings, name) for name in _NUMBERS}
        return cls(
            urls=_urls(settings),
            tls_ca=_file(settings, TLS_CA),
            **_identity(settings),
            peer_ids=_peer_ids(settings),
            connect_timeout=numbers[CONNECT_TIMEOUT] / 1000,
            request_timeout=numbers[REQUEST_TIMEOUT] / 1000,
            keys=KeySettings(numbers[DEADLINE] / 1000, numbers[RETRY_BACKOFF] / 1000, numbers[CACHE_MAX]),
            writing=Writing(
                numbers[MAX_PLAINTEXT],
                _topics(settings, COMPRESSION_TOPICS),
                numbers[COMPRESSION_MIN],
                _topics(settings, RECORD_KEY_TOPICS),
            ),
            failure_action=_failure_action(settings),
            dead_letter_topic=_dead_letter_topic(settings),
        )

    def dead_letter_topic_of(self, topic: str) -> str:
        """The topic for the dead letters of a topic."""
        return self.dead_letter_topic.replace(_TOPIC_OF_RECORD, topic)


def split(settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parts a client's settings into Cipherlane's and the rest."""
    ours = {name: value for name, value in settings.items() if _is_ours(name)}
    return ours, {name: value for name, value in settings.items() if name not in ours}


def _is_ours(name: object) -> bool:
    return isinstance(name, str) and name.startswith(PREFIX)


def _check_known(name: str) -> None:
    if name in _NAMES:
        return
    nearest = difflib.get_close_matches(str(name), _NAMES, n=1, cutoff=0.0)[0]
    raise ConfigurationError(f"{name}: no such setting in Python; the nearest is {nearest}")


def _text(settings: Settings, name: str, what: str) -> str:
    value = settings.get(name)
    if value is None:
        raise ConfigurationError(f"{name}: missing; it takes {what}")
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{name}: takes {what}")
    return value.strip()


def _file(settings: Settings, name: str) -> str:
    return _text(settings, name, "the path of a file" if name in _IDENTITY else "the path of a PEM file")


def _identity(settings: Settings) -> dict[str, Any]:
    """Who this client is: PEM files, or the first proof for a certificate from the key service."""
    token, jwt = (_file(settings, name) if name in settings else "" for name in (IDENTITY_TOKEN, IDENTITY_JWT))
    proof = IDENTITY_TOKEN if token else IDENTITY_JWT
    given = str(settings.get(IDENTITY_RENEW, bool(token or jwt))).strip().lower()
    if given not in {"true", "false"}:
        raise ConfigurationError(f"{IDENTITY_RENEW}: takes true or false")
    if given == "false" and (token or jwt):
        raise ConfigurationError(f"{IDENTITY_RENEW}: is true where {proof} is set")
    if token and jwt:
        raise ConfigurationError(f"{IDENTITY_TOKEN}: not beside {IDENTITY_JWT}")
    for name in (TLS_CERTIFICATE, TLS_KEY):
        if token and name in settings:
            raise ConfigurationError(f"{name}: not beside {IDENTITY_TOKEN}")
    certificate, key = ("", "") if token or jwt else (_file(settings, TLS_CERTIFICATE), _file(settings, TLS_KEY))
    return {
        "tls_certificate": certificate,
        "tls_key": key,
        "identity_renew": given == "true",
        "identity_token": token,
        "identity_jwt": jwt,
    }


def _peer_ids(settings: Settings) -> IdSet:
    patterns = _list(settings, PEER_IDS)
    if patterns is None or not all(map(is_valid_id, patterns)) or len(",".join(patterns)) > _LONGEST_LIST:
        raise ConfigurationError(
            f"{PEER_IDS}: takes a list of SPIFFE ids and patterns, comma-separated, {_LONGEST_LIST} bytes at most"
        )
    return IdSet(patterns)


def _list(settings: Settings, name: str) -> Optional[tuple[str, ...]]:
    """The parts between commas; None if it is no text."""
    value = settings.get(name, "")
    if not isinstance(value, str):
        return None
    return tuple(part.strip() for part in value.split(",")) if value.strip() else ()


def _number(settings: Settings, name: str) -> int:
    least, most, default = _NUMBERS[name]
    value: Union[int, str] = settings.get(name, default)
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise ConfigurationError(f"{name}: takes a whole number from {least} to {most}")
    return value


def _topics(settings: Settings, name: str) -> TopicSet:
    globs = _list(settings, name)
    if globs is None or not all(map(is_valid_glob, globs)):
        raise ConfigurationError(f"{name}: takes a list of topic names and globs (* and ?), comma-separated")
    return TopicSet(globs)


def _failure_action(settings: Settings) -> FailureAction:
    try:
        return FailureAction(settings.get(FAILURE_ACTION, FailureAction.FAIL.value))
    except ValueError:
        actions = ", ".join(action.value for action in FailureAction)
        raise ConfigurationError(f"{FAILURE_ACTION}: takes one of {actions}") from None


def _dead_letter_topic(settings: Settings) -> str:
    value = settings.get(DEAD_LETTER_TOPIC, _TOPIC_OF_RECORD + ".dead-letter")
    if not isinstance(value, str) or not is_valid_name(value.replace(_TOPIC_OF_RECORD, "t")):
        raise ConfigurationError(f"{DEAD_LETTER_TOPIC}: takes a topic name, in which {{topic}} stands for the record's")
    return value


def _urls(settings: Settings) -> tuple[str, ...]:
    text = _text(settings, URLS, "a list of https://host:port")
    return tuple(_url(part.strip()) for part in text.split(","))


def _url(text: str) -> str:
    """Checks one address [CL-KEY-002]; it is not shown, because a malformed one may hold a password."""
    try:
        address = urlsplit(text)
        port = address.port
    except ValueError:
        raise _bad_url() from None
    if address.scheme != "https" or not address.hostname or not port or address.path not in {"", "/"}:
        raise _bad_url()
    if address.username is not None or address.query or address.fragment or not text.isprintable() or " " in text:
        raise _bad_url()
    return f"https://{address.netloc}"


def _bad_url() -> ConfigurationError:
    return ConfigurationError(f"{URLS}: takes a list of https://host:port, comma-separated, nothing else")
