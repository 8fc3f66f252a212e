"""Settings: what is missing, unknown, malformed or out of range is refused, and the message says what to write."""

from __future__ import annotations

from typing import Any

import pytest

from cipherlane.configuration import Configuration, split
from cipherlane.errors import CipherlaneError, ConfigurationError
from cipherlane.keys import KeySettings

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
        connect_timeout=2.0,
        request_timeout=5.0,
        keys=KeySettings(deadline=10.0, retry_backoff=0.5, cache_max=10_000),
        max_plaintext=67_108_864,
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


@pytest.mark.parametrize("action", ["skip", "dead-letter", "mark", "FAIL", None, 0])
def test_failure_actions_that_are_not_known(action: Any) -> None:
    """CL-CFG-002: a client that does not know one refuses to start."""
    Configuration.from_settings({**REQUIRED, "cipherlane.failure.action": "fail"})
    assert "cipherlane.failure.action" in refused({**REQUIRED, "cipherlane.failure.action": action})


def test_split_leaves_the_rest_alone() -> None:
    callback = object()
    conf: dict[Any, Any] = {"bootstrap.servers": "b", "cipherlane.x": 1, "error_cb": callback, 5: 6, "Cipherlane.y": 7}
    assert split(conf) == (
        {"cipherlane.x": 1},
        {"bootstrap.servers": "b", "error_cb": callback, 5: 6, "Cipherlane.y": 7},
    )
