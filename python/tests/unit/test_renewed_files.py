"""PEM files that are renewed while a client runs. CL-KEY-016."""

from __future__ import annotations

import json
import logging
import shutil
import ssl
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from cipherlane.configuration import Configuration
from cipherlane.keyservice import KeyServiceClient
from hostile import Authority, serving
from support import code_of

CLEAR = json.dumps({"mode": "clear", "refresh_in": 1, "expires_in": 2}).encode()


class Shown:
    """A server that notes which certificate each request comes with, and a client with files of its own."""

    def __init__(self, folder: Path, authority: Authority, url: str) -> None:
        self.folder = folder
        self.authority = authority
        self.names: list[str] = []
        shutil.copy(authority.path, folder / "ca.pem")
        self.renew("first")
        self.client = KeyServiceClient(
            Configuration.from_settings(
                {
                    "cipherlane.keyservice.urls": url,
                    "cipherlane.keyservice.tls.ca": str(folder / "ca.pem"),
                    "cipherlane.keyservice.tls.certificate": str(folder / "c.pem"),
                    "cipherlane.keyservice.tls.key": str(folder / "k.pem"),
                }
            )
        )

    def renew(self, name: str) -> None:
        certificate, key = self.authority.issue(name)
        shutil.copy(certificate, self.folder / "c.pem")
        shutil.copy(key, self.folder / "k.pem")

    def ask(self) -> str:
        self.client.encryption_key("t", None)
        return self.names[-1]


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    (tmp_path / "authority").mkdir()
    (tmp_path / "client").mkdir()
    authority = Authority(tmp_path / "authority")
    made: list[Shown] = []

    def behave(connection: ssl.SSLSocket, _request: bytes) -> None:
        certificate: Any = connection.getpeercert()
        made[0].names.append(certificate["subject"][0][0][1])
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(CLEAR)}\r\n\r\n"
        connection.sendall(head.encode() + CLEAR)

    with serving(authority, behave) as server:
        made.append(Shown(tmp_path / "client", authority, server.url))
        yield made[0]


def test_a_renewed_certificate_is_shown_from_the_next_request_on(shown: Shown) -> None:
    """CL-KEY-016: also by a client whose connection was kept."""
    assert [shown.ask(), shown.ask()] == ["first", "first"]
    context = shown.client._transport._contexts.current
    shown.renew("second")
    assert [shown.ask(), shown.ask()] == ["second", "second"]
    assert shown.client._transport._contexts.current is not context


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "c.pem").write_text("nonsense"),
        lambda folder: (folder / "k.pem").write_text(""),
        lambda folder: (folder / "c.pem").unlink(),
        lambda folder: (folder / "ca.pem").write_text("half a fi"),
        lambda folder: shutil.copy(folder / "ca.pem", folder / "c.pem"),  # does not belong to the key
    ],
    ids=["no certificate", "no key", "gone", "no CA", "another's certificate"],
)
def test_files_that_cannot_be_used_leave_the_old_ones_in_force(
    shown: Shown, damage: Callable[[Path], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """CL-KEY-016: with a warning that names the setting; what is good again is taken."""
    assert shown.ask() == "first"
    damage(shown.folder)
    with caplog.at_level(logging.WARNING):
        assert shown.ask() == "first"
    assert "the renewed files are not used: configuration-invalid: cipherlane.keyservice.tls" in caplog.text
    assert "PRIVATE" not in caplog.text
    shutil.copy(shown.authority.path, shown.folder / "ca.pem")
    shown.renew("third")
    assert shown.ask() == "third"


def test_a_renewed_ca_is_trusted_and_the_old_one_is_not(shown: Shown, tmp_path: Path) -> None:
    """CL-KEY-001, CL-KEY-016."""
    assert shown.ask() == "first"
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(Authority(other, "other CA").path, shown.folder / "ca.pem")
    assert code_of(shown.ask) == "key-service-unavailable"
