"""The key service's client against servers that misbehave, over real TLS."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import logging
import multiprocessing
import os
import pickle
import socket
import ssl
import time
import traceback
from pathlib import Path
from typing import Any, Optional

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from cipherlane.configuration import Configuration
from cipherlane.encryptor import Encryptor
from cipherlane.errors import CipherlaneError, ConfigurationError, EncryptionError
from cipherlane.keys import EncryptionGrant, Leased, UsageReport
from cipherlane.keyservice import KeyServiceClient
from hostile import Authority, HostileServer, answer, pem, raw, serving
from support import code_of, new_key

BAD = "key-service-bad-answer"
GONE = "key-service-unavailable"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> tuple[str, str]:
    return authority.issue("client")


class Clients:
    """Makes clients of servers."""

    def __init__(self, authority: Authority, certificate: tuple[str, str]) -> None:
        self.base = {
            "cipherlane.keyservice.tls.ca": authority.path,
            "cipherlane.keyservice.tls.certificate": certificate[0],
            "cipherlane.keyservice.tls.key": certificate[1],
            "cipherlane.keys.retry.backoff.ms": 1,
        }

    def settings(self, *urls: str, **more: Any) -> dict[str, Any]:
        more = {"cipherlane." + name.replace("_", "."): value for name, value in more.items()}
        return {**self.base, "cipherlane.keyservice.urls": ",".join(urls), **more}

    def client(self, *urls: str, **more: Any) -> KeyServiceClient:
        return KeyServiceClient(Configuration.from_settings(self.settings(*urls, **more)))

    def code(self, *urls: str, **more: Any) -> str:
        return code_of(lambda: self.client(*urls, **more).encryption_key("t", None))


@pytest.fixture
def clients(authority: Authority, certificate: tuple[str, str]) -> Clients:
    return Clients(authority, certificate)


def key_answer(kid: Optional[bytes] = None, key: Optional[bytes] = None, **members: Any) -> bytes:
    right_kid, right_key = new_key()
    found = {
        "mode": "encrypt",
        "scope": "t",
        "kid": (kid or right_kid).hex(),
        "key": base64.b64encode(key if key is not None else right_key).decode(),
        "refresh_in": 150,
        "expires_in": 300,
    }
    return json.dumps({**found, **members}).encode()


def problem(status: int, code: str, **members: Any) -> Any:
    return answer(status, json.dumps({"status": status, "code": code, **members}).encode(), "application/problem+json")


def chunked(body: bytes, head: bytes = b"") -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + head
    return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def head_of(size: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % size


GOOD = key_answer()
MEBIBYTE = 1024 * 1024

CASES = {
    "403": (problem(403, "not-authorized"), "not-authorized"),
    "403 of a later version": (problem(403, "no-such-code-yet"), "not-authorized"),
    "403 without a reason": (answer(403, b"", "text/plain"), BAD),
    "401": (problem(401, "unauthenticated"), "unauthenticated"),
    "404 page": (answer(404, b"<h1>not found</h1>", "text/html"), BAD),
    "404 problem": (problem(404, "not-found"), BAD),
    "404 that says the key is unknown": (problem(404, "key-unknown"), BAD),
    "400": (problem(400, "request-invalid"), "request-invalid"),
    "413": (problem(413, "request-too-large"), "request-too-large"),
    "429": (problem(429, "key-service-unavailable"), GONE),
    "500": (problem(500, "internal"), "internal"),
    "500 with a key": (answer(500, GOOD), GONE),
    "502 page": (answer(502, b"<h1>bad gateway</h1>", "text/html"), GONE),
    "503": (problem(503, "audit-unavailable"), "audit-unavailable"),
    "302": (answer(302, b"", headers="Location: https://127.0.0.1:1/\r\n"), BAD),
    "308 with a key": (answer(308, GOOD, headers="Location: /v1/encryption-key\r\n"), BAD),
    "300": (answer(300, GOOD), BAD),
    "204": (raw(b"HTTP/1.1 204 No Content\r\n\r\n"), BAD),
    "garbage": (answer(200, os.urandom(500)), BAD),
    "not HTTP": (raw(b"\x00\x01\x02\x03" * 40), GONE),
    "text": (answer(200, GOOD, "text/plain"), BAD),
    "compressed": (answer(200, GOOD, headers="Content-Encoding: gzip\r\n"), "ok"),
    "really compressed": (answer(200, gzip.compress(GOOD), headers="Content-Encoding: gzip\r\n"), BAD),
    "a mebibyte": (answer(200, GOOD + b" " * (MEBIBYTE - len(GOOD))), "ok"),
    "a mebibyte and a byte": (answer(200, GOOD + b" " * (MEBIBYTE + 1 - len(GOOD))), BAD),
    "64 mebibytes": (answer(200, b" " * (64 * MEBIBYTE)), BAD),
    "endless": (raw(head_of(1 << 50), *[b"x" * 65536] * 2000), BAD),
    "chunks": (raw(chunked(GOOD)), "ok"),
    "chunks beyond the limit": (raw(chunked(b" " * (MEBIBYTE + 1))), BAD),
    "longer than it says": (raw(head_of(len(GOOD) - 1) + GOOD), BAD),
    "shorter than it says": (raw(head_of(len(GOOD) + 1) + GOOD), GONE),
    "closed at once": (raw(), GONE),
    "endless headers": (raw(b"HTTP/1.1 200 OK\r\n", *[b"a: b\r\n" * 1000] * 50), GONE),
    "a header of a mebibyte": (raw(b"HTTP/1.1 200 OK\r\na: " + b"b" * MEBIBYTE + b"\r\n\r\n"), GONE),
    "no status": (raw(b"HTTP/1.1 OK\r\n\r\n"), GONE),
    "key of 31 bytes": (answer(200, key_answer(key=bytes(31))), "key-malformed"),
    "key of 33 bytes": (answer(200, key_answer(key=bytes(33))), "key-malformed"),
    "no key": (answer(200, key_answer(key=b"")), "key-malformed"),
    "another key": (answer(200, key_answer(key=bytes(32))), "key-id-mismatch"),
    "another kid": (answer(200, key_answer(kid=bytes(16))), "key-id-mismatch"),
    "no lease": (answer(200, key_answer(expires_in=0)), BAD),
    "a lease for ever": (answer(200, key_answer(expires_in=604_801)), BAD),
    "true as a lease": (answer(200, key_answer(refresh_in=True)), BAD),
    "a very large number": (answer(200, key_answer().replace(b"300", b"3" * 5000)), BAD),
    "nested": (answer(200, b"[" * 500_000), BAD),
    "good": (answer(200, GOOD), "ok"),
}


@pytest.mark.parametrize("case", CASES)
def test_misbehaviour_is_an_error_of_its_own(authority: Authority, clients: Clients, case: str) -> None:
    """CL-KEY-002, CL-KEY-003, CL-KEY-004, CL-ERR-003, CL-ERR-004, CL-ERR-006."""
    behaviour, expected = CASES[case]
    started = time.monotonic()
    with serving(authority, behaviour) as server:
        client = clients.client(server.url)
        if expected == "ok":
            assert isinstance(client.encryption_key("t", None).grant, EncryptionGrant)
            return
        with pytest.raises(CipherlaneError) as raised:
            client.encryption_key("t", None)
    assert raised.value.code == expected
    retriable = expected in {GONE, "audit-unavailable", "internal"}
    assert raised.value.retriable == retriable
    assert time.monotonic() - started < 10
    assert all(b"POST /v1/encryption-key HTTP/1.1\r\n" in request for request in server.requests)


@pytest.mark.parametrize(
    "behaviour",
    [
        raw(b"", pause=3),
        raw(b"HTTP/1.1 200 OK\r\n", pause=3),
        raw(*(bytes([byte]) for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" * 9), pause=0.02),
        raw(head_of(500), *[b" "] * 500, pause=0.02),
    ],
    ids=["nothing", "one line", "headers byte by byte", "body byte by byte"],
)
def test_slow_answers_end_at_the_deadline(authority: Authority, clients: Clients, behaviour: Any) -> None:
    """CL-KEY-011: 0.6 s for the request in all, and the same once more at most; bytes that trickle in gain no time."""
    with serving(authority, behaviour) as server:
        started = time.monotonic()
        assert clients.code(server.url, keyservice_request_timeout_ms=600) == GONE
        assert 0.5 < time.monotonic() - started < 3


def test_a_server_that_does_not_shake_hands(clients: Clients) -> None:
    """0.4 s to connect, TLS handshake included."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        assert clients.code(url, keyservice_connect_timeout_ms=400) == GONE
        assert 0.3 < time.monotonic() - started < 3


def test_nobody_listens(clients: Clients) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(CipherlaneError, match=url):
        clients.client(url).encryption_key("t", None)


def test_another_ca_another_name_and_an_old_certificate(authority: Authority, clients: Clients, tmp_path: Path) -> None:
    """CL-KEY-001: nothing is asked of a server whose certificate does not verify."""
    impostor = Authority(tmp_path, "impostor")
    wrong: list[tuple[Authority, Any, int]] = [
        (impostor, (), 1),
        (authority, (x509.DNSName("keyservice.example"),), 1),
        (authority, (x509.DNSName("127.0.0.1"),), 1),
        (authority, (), -1),
    ]
    for issuer, alternatives, days in wrong:
        with serving(issuer, answer(200, GOOD), *alternatives, days=days) as server:
            assert clients.code(server.url) == GONE
            assert server.requests == []
    with serving(authority, answer(200, GOOD), x509.DNSName("localhost")) as server:
        clients.client(server.url.replace("127.0.0.1", "localhost")).encryption_key("t", None)


def test_a_client_certificate_that_the_server_does_not_take(
    authority: Authority, clients: Clients, tmp_path: Path
) -> None:
    certificate, key = Authority(tmp_path, "foreign").issue("stranger")
    with serving(authority, answer(200, GOOD)) as server:
        client = clients.client(server.url, keyservice_tls_certificate=certificate, keyservice_tls_key=key)
        assert code_of(lambda: client.encryption_key("t", None)) == GONE
        assert server.requests == []


def test_no_plain_http_server_is_spoken_to(clients: Clients) -> None:
    """CL-KEY-002: an address without https is refused when the client is made."""
    for url in ("http://127.0.0.1:1", "https://", "https://host", "https://u:p@host:1", "https://host:1/path",
                "https://host:1?q", "https://host:0", "https://host:99999", "ftp://host:1", "host:1", "",
                "https://a:1,", "https://a :1"):  # fmt: skip
        with pytest.raises(ConfigurationError, match=r"keyservice\.urls") as raised:
            clients.client(url)
        assert "u:p" not in str(raised.value)


# Fail-over and connections.


@pytest.mark.parametrize("failure", ["429", "500", "502 page", "closed at once", "not HTTP", None])
def test_the_next_address_is_tried(authority: Authority, clients: Clients, failure: Optional[str]) -> None:
    """CL-KEY-014; the address that answered is asked first from then on."""
    with serving(authority, CASES[failure or "500"][0]) as broken, serving(authority, answer(200, GOOD)) as good:
        if failure is None:
            broken.close()
        client = clients.client(broken.url, good.url)
        for _ in range(3):
            client.encryption_key("t", None)
        assert len(good.requests) == 3
        assert len(broken.requests) <= 2


@pytest.mark.parametrize("refusal", ["403", "401", "404 page", "400", "garbage", "another key", "302", "64 mebibytes"])
def test_a_refusal_is_final(authority: Authority, clients: Clients, refusal: str) -> None:
    """CL-KEY-014: another address is never asked because an answer was a refusal."""
    with serving(authority, CASES[refusal][0]) as refusing, serving(authority, answer(200, GOOD)) as good:
        assert clients.code(refusing.url, good.url) == CASES[refusal][1]
        assert good.requests == []


def test_when_all_fail_the_reason_of_each_is_named(authority: Authority, clients: Clients) -> None:
    """CL-KEY-014: and what a service said counts for more than that another was not reached."""
    with serving(authority, CASES["503"][0]) as full, serving(authority, answer(200, GOOD)) as gone:
        gone.close()
        assert clients.code(full.url, gone.url) == "audit-unavailable"
        assert clients.code(gone.url, full.url) == "audit-unavailable"
        full.close()
        with pytest.raises(CipherlaneError) as raised:
            clients.client(gone.url, full.url).encryption_key("t", None)
    assert gone.url in str(raised.value)
    assert full.url in str(raised.value)


def test_connections_are_kept_and_replaced(authority: Authority, clients: Clients) -> None:
    """Ten requests, one handshake; a kept connection that the server closed is replaced without a failure."""
    with serving(authority, answer(200, GOOD)) as server:
        client = clients.client(server.url)
        for _ in range(10):
            client.encryption_key("t", None)
        assert server.connections == 1
        server.behaviour = raw(head_of(len(GOOD)) + GOOD)
        for _ in range(4):
            client.encryption_key("t", None)
        assert len(server.requests) == 14
        client.close()


def ask_in_child(client: KeyServiceClient, sink: Any) -> None:
    client.encryption_key("t", None)
    sink.send(True)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_opens_connections_of_its_own(authority: Authority, clients: Clients) -> None:
    """CL-ENV-035, for connections: two processes in one TLS stream would break it."""
    with serving(authority, answer(200, GOOD)) as server:
        client = clients.client(server.url)
        client.encryption_key("t", None)
        fork = multiprocessing.get_context("fork")
        here, there = fork.Pipe()
        child = fork.Process(target=ask_in_child, args=(client, there), daemon=True)
        child.start()
        assert here.poll(20)
        child.join(20)
        client.encryption_key("t", None)
        assert child.exitcode == 0
        assert (server.connections, len(server.requests)) == (2, 3)
        client._transport._pid -= 1  # as it looks in the child
        client.encryption_key("t", None)
        assert server.connections == 3


def test_what_is_sent(authority: Authority, clients: Clients) -> None:
    """The requests of spec/key-service.md, byte for byte."""
    empty = b'{"plaintext": "accept", "refresh_in": 1, "expires_in": 1, "keys": []}'
    with serving(authority, answer(200, GOOD)) as server:
        client = clients.client(server.url)
        client.encryption_key("t", UsageReport(bytes(16), 3, 500))
        server.behaviour = answer(200, empty)
        client.decryption_keys("t", [])
        code_of(lambda: client.decryption_keys("t", [b"k" * 16]))
    bodies = [json.loads(request.split(b"\r\n\r\n", 1)[1]) for request in server.requests]
    assert bodies == [
        {"topic": "t", "usage": {"kid": "00" * 16, "records": 3, "bytes": 500}},
        {"topic": "t", "kids": []},
        {"topic": "t", "kids": ["6b" * 16]},
    ]
    assert all(b"Content-Type: application/json\r\n" in request for request in server.requests)
    assert b"POST /v1/decryption-keys " in server.requests[1]


# PEM files.


def test_pem_files_that_do_not_serve(authority: Authority, clients: Clients, tmp_path: Path) -> None:
    """CL-CFG-002: refused when the client is made, without asking anybody for a password."""
    garbage, encrypted, other = tmp_path / "garbage", tmp_path / "encrypted", tmp_path / "other"
    garbage.write_bytes(b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    encrypted.write_bytes(pem(ec.generate_private_key(ec.SECP256R1()), b"password"))
    other.write_bytes(pem(ec.generate_private_key(ec.SECP256R1())))
    for setting, path in itertools.product(("tls_ca", "tls_certificate", "tls_key"), (garbage, tmp_path, "/nowhere")):
        with pytest.raises(ConfigurationError, match=r"cipherlane\.keyservice\.tls"):
            clients.client("https://127.0.0.1:1", **{f"keyservice_{setting}": str(path)})
    for path in (encrypted, other):
        with pytest.raises(ConfigurationError, match=r"cipherlane\.keyservice\.tls\.key"):
            clients.client("https://127.0.0.1:1", keyservice_tls_key=str(path))


# Secrets.


def secrets_of(key: bytes) -> list[str]:
    return [key.hex(), base64.b64encode(key).decode(), repr(key)[2:-1], repr(bytearray(key))[12:-2]]


@pytest.mark.parametrize("fault", ["lease", "kid", "length", "json", "status"])
def test_no_error_holds_the_key_that_came_with_it(
    authority: Authority, clients: Clients, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """CL-KEY-015, CL-ERR-001: neither the text, nor the traceback with all local variables, nor the log."""
    caplog.set_level(logging.DEBUG)
    key = bytes(range(100, 132))
    bodies = {
        "lease": key_answer(key=key, expires_in=-1),
        "kid": key_answer(key=key, kid=bytes(16)),
        "length": key_answer(key=key + b"x"),
        "json": key_answer(key=key)[:-1],
        "status": key_answer(key=key),
    }
    with serving(authority, answer(403 if fault == "status" else 200, bodies[fault])) as server:
        encryptor = Encryptor.from_settings(clients.settings(server.url))
        with pytest.raises(EncryptionError) as raised:
            encryptor.encrypt("t", b"x")
        encryptor.close()
    frames = raised.value.__traceback__
    assert frames is not None
    error = raised.value.with_traceback(frames.tb_next)  # without the frame of this test, which knows the key
    shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "keys.py" in shown or "encryptor.py" in shown
    shown += str(raised.value) + repr(raised.value) + caplog.text + repr(pickle.loads(pickle.dumps(raised.value)))
    assert raised.value.topic == "t"
    for secret in (*secrets_of(key), base64.b64encode(key + b"x").decode()):
        assert secret not in shown


def test_what_is_kept_of_a_refused_key_does_not_hold_it(authority: Authority, clients: Clients) -> None:
    """CL-KEY-015: an error that stands beside other keys is kept as long as they are, so its frames must go."""
    (kid, key), (wrong, other) = new_key(), (bytes(16), bytes(range(100, 132)))
    lease = {"refresh_in": 1, "expires_in": 1}
    entries = [
        {"kid": one.hex(), "scope": "t", "key": base64.b64encode(secret).decode(), **lease}
        for one, secret in ((kid, key), (wrong, other))
    ]
    body = json.dumps({"plaintext": "accept", "keys": entries, **lease}).encode()
    with serving(authority, answer(200, body)) as server:
        keys = clients.client(server.url).decryption_keys("t", [kid, wrong]).keys
    assert isinstance(keys[kid], Leased)
    refused = keys[wrong]
    assert isinstance(refused, CipherlaneError)
    assert refused.code == "key-id-mismatch"
    assert refused.__traceback__ is None
    assert refused.__context__ is None


def test_nothing_that_holds_a_key_shows_it(authority: Authority, clients: Clients) -> None:
    """CL-KEY-015: repr, str, and pickle."""
    kid, key = new_key()
    with serving(authority, answer(200, key_answer(kid, key))) as server:
        client = clients.client(server.url)
        leased = client.encryption_key("t", None)
    assert isinstance(leased.grant, EncryptionGrant)
    for thing in (client, leased, leased.grant, leased.grant.key, vars(type(leased.grant))):
        assert not any(secret in repr(thing) + str(thing) for secret in secrets_of(key))
    assert kid.hex() in repr(leased.grant.key)
    for thing in (leased, leased.grant, leased.grant.key):
        with pytest.raises(TypeError):
            pickle.dumps(thing)


def test_what_the_service_says_is_shown_in_printable_characters(authority: Authority, clients: Clients) -> None:
    """CL-ERR-005: detail and request id, without control characters, shortened."""
    detail = "no grant\x1b[31m\r\nfor you" + "x" * 1000
    behaviour = problem(403, "not-authorized", detail=detail, request_id="r-17")
    with serving(authority, behaviour) as server, pytest.raises(CipherlaneError) as raised:
        clients.client(server.url).encryption_key("t", None)
    text = str(raised.value)
    assert "no grant?[31m??for you" in text
    assert "r-17" in text
    assert len(text) < 300
    assert text.isprintable()


def test_hostile_server_is_real(authority: Authority) -> None:
    """The servers above insist on a client certificate: without one there is no answer."""
    context = ssl.create_default_context(cafile=authority.path)
    with serving(authority, answer(200, GOOD)) as server:
        assert isinstance(server, HostileServer)
        with pytest.raises((ssl.SSLError, ConnectionError)):  # which of them is a matter of who is faster
            talk(context, int(server.url.rsplit(":", 1)[1]))
        assert server.requests == []


def talk(context: ssl.SSLContext, port: int) -> None:
    plain = socket.create_connection(("127.0.0.1", port), 5)
    with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
        connection.recv(1)
