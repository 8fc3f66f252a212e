"""Settings: what is missing, unknown, malformed or out of range is refused, and the message says what to write."""

from __future__ import annotations

from typing import Any

import pytest

from cipherlane.configuration import Configuration, FailureAction, Writing, split
from cipherlane.errors import CipherlaneError, ConfigurationError
from cipherlane.keys import KeySettings
from cipherlane.names import IdSet, TopicSet

REQUIRED = {
    "cipherlane.keyservice.urls": "https://a:1, https://[::1]:8443/ ,https://c.example:3",
    "cipherlane.keyservice.tls.ca": " ca.pem",
    "cipherlane.keyservice.tls.certificate": "c.pem",
    "cipherlane.keyservice.tls.key": "k.pem",
}


def refused(settings: dict[str, Any]) -> str:
    with pytest.raises(ConfigurationError) as raised:
        Configuration.from_settings(settings)
    assert isinstance(raised.value, (CipherlaneError, ValueError))
    assert (raised.value.code, raised.value.layer) == ("configuration-invalid", "configuration")
    return str(raised.value)


def test_defaults() -> None:
    """The table of spec/configuration.md."""
    assert Configuration.from_settings(REQUIRED) == Configuration(
        urls=("https://a:1", "https://[::1]:8443", "https://c.example:3"),
        tls_ca="ca.pem",
        tls_certificate="c.pem",
        tls_key="k.pem",
        identity_renew=False,
        identity_token="",
        identity_jwt="",
        peer_ids=IdSet(),
        connect_timeout=2.0,
        request_timeout=5.0,
        keys=KeySettings(deadline=10.0, retry_backoff=0.5, cache_max=10_000),
        writing=Writing(67_108_864, TopicSet(), 1_024, TopicSet()),
        failure_action=FailureAction.FAIL,
        dead_letter_topic="{topic}.dead-letter",
    )


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("keyservice.connect.timeout.ms", 1, 60_000),
        ("keyservice.request.timeout.ms", 1, 60_000),
        ("keys.deadline.ms", 1, 600_000),
        ("keys.retry.backoff.ms", 1, 60_000),
        ("keys.cache.max", 16, 1_000_000),
        ("max.plaintext.bytes", 1, 1_073_741_824),
        ("compression.min.bytes", 0, 1_073_741_824),
    ],
)
def test_numbers_and_their_limits(name: str, least: int, most: int) -> None:
    """CL-CFG-002: the limits are allowed, as a number or as text; what is over them, or no whole number, is not."""
    name = f"cipherlane.{name}"
    for good in (least, most, str(least), f" {most} "):
        Configuration.from_settings({**REQUIRED, name: good})
    wrong: list[Any] = [least - 1, most + 1, -1, "", "x", "1.5", 1.0, True, None, "1e3", "\uff11", [], "9" * 50]
    for bad in wrong:
        message = refused({**REQUIRED, name: bad})
        assert f"{name}: takes a whole number from {least} to {most}" in message


@pytest.mark.parametrize("name", REQUIRED)
def test_required_settings(name: str) -> None:
    """CL-CFG-002."""
    assert f"{name}: missing" in refused({key: value for key, value in REQUIRED.items() if key != name})
    for bad in ("", "  ", 5, b"bytes", ["https://a:1"]):
        assert name in refused({**REQUIRED, name: bad})


@pytest.mark.parametrize(
    ("unknown", "nearest"),
    [
        ("cipherlane.keyservice.url", "cipherlane.keyservice.urls"),
        ("cipherlane.key.cache.max", "cipherlane.keys.cache.max"),
        ("cipherlane.max.plaintext", "cipherlane.max.plaintext.bytes"),
        ("cipherlane.", "cipherlane."),
        ("cipherlane.KEYSERVICE.URLS", "cipherlane."),
        ("cipherlane.value.deserializer", "cipherlane."),
    ],
)
def test_unknown_settings_name_the_nearest(unknown: str, nearest: str) -> None:
    """CL-CFG-001; among them are settings of other languages."""
    message = refused({**REQUIRED, unknown: "x"})
    assert unknown in message
    assert f"the nearest is {nearest}" in message


@pytest.mark.parametrize("action", ["FAIL", "skip ", "", None, 0, "ignore"])
def test_failure_actions(action: Any) -> None:
    """CL-CFG-002: the four that there are, and nothing else."""
    name = "cipherlane.failure.action"
    for known in ("fail", "skip", "dead-letter", "mark"):
        assert Configuration.from_settings({**REQUIRED, name: known}).failure_action.value == known
    assert f"{name}: takes one of fail, skip, dead-letter, mark" in refused({**REQUIRED, name: action})


@pytest.mark.parametrize("bad", ["", "a b", "{topic", "{other}", "x" * 250, ".", 5, None, "{topic}/x"])
def test_the_dead_letter_topic(bad: Any) -> None:
    """CL-CFG-002."""
    name = "cipherlane.dead.letter.topic"
    for given, meant in (("dead", "dead"), ("{topic}.x", "claims.x"), ("{topic}", "claims"), ("d-{topic}", "d-claims")):
        assert Configuration.from_settings({**REQUIRED, name: given}).dead_letter_topic_of("claims") == meant
    assert f"{name}: takes a topic name" in refused({**REQUIRED, name: bad})


@pytest.mark.parametrize("name", ["cipherlane.compression.topics", "cipherlane.record.key.topics"])
def test_sets_of_topics(name: str) -> None:
    """CL-CFG-002: names and globs, as in the policy."""

    def read(given: str) -> TopicSet:
        writing = Configuration.from_settings({**REQUIRED, name: given}).writing
        return writing.compression_topics if "compression" in name else writing.record_key_topics

    assert read(" ") == TopicSet()
    assert read("claims, a.*,?-b") == TopicSet(("claims", "a.*", "?-b"))
    wrong: list[Any] = ["a,,b", ",", "a b", "[a]", "x" * 250, "a,.", 5, None, ["claims"], "a/b"]
    for bad in wrong:
        assert f"{name}: takes a list of topic names and globs" in refused({**REQUIRED, name: bad})


def test_globs_match_the_whole_name() -> None:
    """spec/policy.md: every character but * and ? stands for itself."""
    topics = TopicSet(("claims", "a.*", "?-b", "x*y*z"))
    for inside in ("claims", "a.", "a.b.c", "q-b", "xyz", "x1y2z", "xyyzz"):
        assert inside in topics
    for outside in ("claims2", "my-claims", "a", "ab", "aXb", "-b", "qq-b", "xz", "x1y2z3", "CLAIMS", "claims\n"):
        assert outside not in topics
    assert "a" * 249 not in TopicSet(("*a" * 124 + "b",))  # takes no exponential time


def test_peer_ids() -> None:
    """CL-CFG-002: SPIFFE ids and patterns, as in a grant."""

    def read(given: str) -> IdSet:
        return Configuration.from_settings({**REQUIRED, "cipherlane.tls.peer.ids": given}).peer_ids

    assert read(" ") == IdSet()
    assert read("spiffe://a/b, spiffe://a/**") == IdSet(("spiffe://a/b", "spiffe://a/**"))
    wrong: list[Any] = [
        "a",
        "spiffe://",
        "spiffe://a,,spiffe://b",
        ",",
        "spiffe://a b",
        "https://a/b",
        "spiffe://\0",
        "spiffe://é",
        "spiffe://" + "a" * 4_087,
        5,
        None,
        ["spiffe://a"],
    ]
    for bad in wrong:
        assert "cipherlane.tls.peer.ids: takes a list of SPIFFE ids" in refused(
            {**REQUIRED, "cipherlane.tls.peer.ids": bad}
        )


def test_ids_match_by_segments() -> None:
    """CL-POL-009: no wildcard reaches over a slash, but two stars at the end take whole segments."""
    ids = IdSet(("spiffe://a.org/x", "spiffe://a.org/y/*/z?", "spiffe://b*/**", "spiffe://c/[d]"))
    for inside in ("a.org/x", "a.org/y/1/z2", "a.org/y//z2", "b/q", "bb/q/r/s", "c/[d]"):
        assert f"spiffe://{inside}" in ids
    for outside in (
        "a.org/x/y",
        "a.org/xx",
        "a.org",
        "a.org/y/1/2/z3",
        "a.org/y/1/z/",
        "b",
        "b/",
        "x/b/q",
        "c/d",
        "c/[d]/e",
    ):
        assert f"spiffe://{outside}" not in ids
    assert "" not in ids
    assert "spiffe://" + "a" * 2_000 not in IdSet(("spiffe://" + "*a" * 500 + "b",))  # takes no exponential time


def test_split_leaves_the_rest_alone() -> None:
    callback = object()
    conf: dict[Any, Any] = {"bootstrap.servers": "b", "cipherlane.x": 1, "error_cb": callback, 5: 6, "Cipherlane.y": 7}
    assert split(conf) == (
        {"cipherlane.x": 1},
        {"bootstrap.servers": "b", "error_cb": callback, 5: 6, "Cipherlane.y": 7},
    )


WITHOUT_FILES = {name: value for name, value in REQUIRED.items() if not name.endswith(("tls.certificate", "tls.key"))}


@pytest.mark.parametrize(
    ("settings", "token", "jwt", "certificate"),
    [
        ({**REQUIRED, "cipherlane.identity.renew": "true"}, "", "", "c.pem"),
        ({**WITHOUT_FILES, "cipherlane.identity.token.file": "t"}, "t", "", ""),
        ({**WITHOUT_FILES, "cipherlane.identity.jwt.file": "j", "cipherlane.identity.renew": True}, "", "j", ""),
        ({**REQUIRED, "cipherlane.identity.jwt.file": "j"}, "", "j", ""),
    ],
)
def test_the_first_proof_of_who_a_client_is(settings: dict[str, Any], token: str, jwt: str, certificate: str) -> None:
    read = Configuration.from_settings(settings)
    assert read.identity_renew
    assert (read.identity_token, read.identity_jwt, read.tls_certificate) == (token, jwt, certificate)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({**REQUIRED, "cipherlane.identity.renew": "yes"}, "identity.renew: takes true or false"),
        ({**REQUIRED, "cipherlane.identity.renew": 1}, "identity.renew: takes true or false"),
        ({**REQUIRED, "cipherlane.identity.token.file": "t"}, "tls.certificate: not beside"),
        ({**WITHOUT_FILES, "cipherlane.identity.token.file": ""}, "token.file: takes the path"),
        ({**WITHOUT_FILES, "cipherlane.identity.renew": "true"}, "tls.certificate: missing"),
        (
            {**WITHOUT_FILES, "cipherlane.identity.token.file": "t", "cipherlane.identity.jwt.file": "j"},
            "token.file: not beside",
        ),
        (
            {**WITHOUT_FILES, "cipherlane.identity.token.file": "t", "cipherlane.identity.renew": "false"},
            "identity.renew: is true where cipherlane.identity.token.file is set",
        ),
    ],
)
def test_contradictions_in_who_a_client_is(settings: dict[str, Any], text: str) -> None:
    assert text in refused(settings)
