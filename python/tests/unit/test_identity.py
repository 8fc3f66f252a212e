"""Certificates from the key service: what is sent, what is checked, and what happens when it fails."""

from __future__ import annotations

import json
import os
import pickle
import random
import ssl
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from cipherlane.configuration import Configuration
from cipherlane.confluent import transport
from cipherlane.errors import CipherlaneError, ConfigurationError
from cipherlane.keyservice import KeyServiceClient
from cipherlane.keyservice.identity import Identity, IdentityContext, PeerContext, shared, tls
from cipherlane.keyservice.identity.issued import Issued
from cipherlane.keyservice.tls import load_certificate
from hostile import LOOPBACK, Authority, HostileServer, answer
from support import ManualClock, eventually

ALICE = "spiffe://example.org/alice"
CLEAR = json.dumps({"mode": "clear", "refresh_in": 1, "expires_in": 2}).encode()


def request_of(request: bytes) -> x509.CertificateSigningRequest:
    body = json.loads(request.partition(b"\r\n\r\n")[2])
    return x509.load_pem_x509_csr(body["csr"].encode())


class Issuer:
    """A key service that issues certificates, unless told otherwise; remembers what it was asked."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.authority = Authority(folder)
        self.seen: list[tuple[str, Optional[str], Optional[str]]] = []
        self.keys: list[Any] = []
        self.change: Callable[[dict[str, Any], Any], object] = lambda _answer, _request: None
        self.refuse: Optional[tuple[int, str]] = None
        self.server = HostileServer(self.authority, self.behave, *LOOPBACK)
        self.server._context.verify_mode = ssl.CERT_OPTIONAL
        self.url = f"https://127.0.0.1:{self.server.url.rpartition(':')[2]}"

    def behave(self, connection: ssl.SSLSocket, request: bytes) -> None:
        head = request.partition(b"\r\n\r\n")[0].decode()
        bearer = next((line[22:] for line in head.splitlines() if line.startswith("Authorization: Bearer ")), None)
        shown: Any = connection.getpeercert()
        name = str(dict(shown["subjectAltName"])["URI"]) if shown and "subjectAltName" in shown else None
        self.seen.append((head.split()[1], bearer, name))
        if self.refuse is not None:
            problem = json.dumps({"code": self.refuse[1], "detail": "no"}).encode()
            answer(self.refuse[0], problem, "application/problem+json")(connection, b"")
        elif head.split()[1] != "/v1/certificate":
            answer(200, CLEAR)(connection, b"")
        else:
            answer(200, json.dumps(self.issue(request_of(request))).encode())(connection, b"")

    def issue(self, request: x509.CertificateSigningRequest) -> dict[str, Any]:
        self.keys.append(request.public_key())
        made = {
            "certificate": self.authority.sign(request, ALICE).decode(),
            "ca": Path(self.authority.path).read_text(),
            "not_after": "2030-01-01T00:00:00Z",
            "refresh_in": 2400,
            "expires_in": 3600,
        }
        self.change(made, request)
        return made


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Issuer]:
    made = Issuer(tmp_path / "issuer")
    yield made
    made.server.close()


def configuration(issuer: Issuer, **more: Any) -> Configuration:
    settings = {"keyservice.urls": issuer.url, "keyservice.tls.ca": issuer.authority.path, "keys.deadline.ms": 3000}
    settings.update({name.replace("_", "."): value for name, value in more.items()})
    return Configuration.from_settings({f"cipherlane.{name}": value for name, value in settings.items()})


def with_token(issuer: Issuer, folder: Path) -> Configuration:
    (folder / "token").write_text("clbt_first\n")
    return configuration(issuer, identity_token_file=str(folder / "token"))


def test_a_token_brings_the_first_certificate_and_that_the_next(issuer: Issuer, tmp_path: Path) -> None:
    """CL-IDN-030, CL-IDN-031, CL-IDN-034, CL-IDN-035."""
    clock = ManualClock()
    identity = Identity(with_token(issuer, tmp_path), clock=clock)
    first = identity.held()
    assert first.issued is not None
    assert first.until == pytest.approx(clock.now + 3600, abs=5)
    assert identity.held() is first
    assert 0.9 * 2400 <= identity._due - clock.now <= 2400
    identity.renew()
    second = identity.held()
    assert second.issued is not None
    assert issuer.seen == [("/v1/certificate", "clbt_first", None), ("/v1/certificate", None, ALICE)]
    assert all(isinstance(key.curve, ec.SECP256R1) for key in issuer.keys)
    assert issuer.keys[0].public_numbers() != issuer.keys[1].public_numbers()


def test_clients_share_an_identity_and_show_its_newest_certificate(issuer: Issuer, tmp_path: Path) -> None:
    """CL-IDN-031."""
    settings = with_token(issuer, tmp_path)
    clients = [KeyServiceClient(settings) for _ in range(2)]
    for client in clients:
        client.encryption_key("t", None)
    shared(settings).renew()
    clients[0].encryption_key("t", None)
    assert [path for path, _, _ in issuer.seen].count("/v1/certificate") == 2
    assert all(name == ALICE for path, _, name in issuer.seen if path != "/v1/certificate")
    assert issuer.server.connections >= 4
    for client in clients:
        client.close()


def test_a_jwt_is_read_for_each_renewal_and_shown_alone(issuer: Issuer, tmp_path: Path) -> None:
    """CL-IDN-035."""
    (tmp_path / "jwt").write_text("first.jwt")
    identity = Identity(configuration(issuer, identity_jwt_file=str(tmp_path / "jwt")))
    identity.held()
    (tmp_path / "jwt").write_text("second.jwt")
    identity.renew()
    assert [(bearer, name) for _, bearer, name in issuer.seen] == [("first.jwt", None), ("second.jwt", None)]


def test_pem_files_may_be_the_first_certificate(issuer: Issuer, tmp_path: Path) -> None:
    uri = x509.UniformResourceIdentifier(ALICE)
    certificate, key = issuer.authority.issue("alice", uri)
    settings = configuration(
        issuer, identity_renew="true", keyservice_tls_certificate=certificate, keyservice_tls_key=key
    )
    identity = Identity(settings)
    assert identity.held().issued is None
    eventually(lambda: identity.held().issued is not None)
    assert issuer.seen[0] == ("/v1/certificate", None, ALICE)


def test_who_follows_is_given_each_certificate(
    issuer: Issuer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """From the PEM files on; a follower that fails does not keep the others, or the next one, from coming."""
    certificate, key = issuer.authority.issue("alice", x509.UniformResourceIdentifier(ALICE))
    issuer.refuse = (503, "internal")
    settings = configuration(
        issuer, identity_renew="true", keyservice_tls_certificate=certificate, keyservice_tls_key=key
    )
    identity = Identity(settings, clock=ManualClock())
    given: list[Any] = []

    def failing(held: Any) -> None:
        if held.issued is not None:
            raise MemoryError

    identity.follow(failing)
    identity.follow(given.append)
    assert [held.issued for held in given] == [None]
    eventually(lambda: identity.failure is not None)  # the thread, which then waits
    assert transport._texts(settings, given[0])[1:] == (Path(certificate).read_bytes(), Path(key).read_bytes())
    issuer.refuse = None
    identity.renew()
    identity.renew()
    assert [identity.held()] == given[-1:]
    serials = [held.issued.leaf.serial_number for held in given[1:]]
    assert len(set(serials)) == len(serials) >= 2
    assert "a renewed certificate was not taken: MemoryError" in caplog.text
    identity.after_fork_in_child()
    identity.renew()
    assert [identity.held()] != given[-1:]
    with pytest.raises(ConfigurationError, match="No such file"):
        transport._texts(configuration(issuer, keyservice_tls_certificate="/x", keyservice_tls_key="/x"), given[0])


def test_followers_of_nobody_wait(issuer: Issuer, tmp_path: Path) -> None:
    issuer.refuse = (503, "internal")
    identity = Identity(with_token(issuer, tmp_path), clock=ManualClock())
    given: list[Any] = []
    identity.follow(given.append)
    eventually(lambda: identity.failure is not None)  # the thread, which then waits
    assert given == []
    issuer.refuse = None
    identity.renew()
    assert [identity.held()] == given


def test_peers_are_met_with_the_pem_files_first(issuer: Issuer, tmp_path: Path) -> None:
    certificate, key = issuer.authority.issue("alice", x509.UniformResourceIdentifier(ALICE))
    issuer.refuse = (503, "internal")
    identity = Identity(
        configuration(issuer, identity_renew="true", keyservice_tls_certificate=certificate, keyservice_tls_key=key)
    )
    context = PeerContext(identity)
    before = context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="h").context
    assert before is context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="h").context
    assert before is not identity.held().context
    assert len(before.get_ca_certs()) == 1


def other_key(issuer: Issuer, answer: dict[str, Any]) -> None:
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    key = ec.generate_private_key(ec.SECP256R1())
    answer["certificate"] = issuer.authority.sign(request.sign(key, hashes.SHA256()), ALICE).decode()


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("another key", "for another key"),
        ("another principal", "does not name the principal"),
        ("no principal", "does not name the principal"),
        ("two principals", "does not name the principal"),
        ("over", "not valid now"),
        ("another CA", "does not chain"),
        ("a leaf as CA", "does not chain"),
        ("too large", "more than 65536 bytes"),
        ("too many", "more than 16 certificates"),
        ("no PEM", "not PEM"),
        ("empty", "not PEM"),
        ("no text", "no text ca"),
        ("no lease", "a lease"),
    ],
)
def test_an_answer_that_does_not_fit_is_not_used(issuer: Issuer, tmp_path: Path, what: str, text: str) -> None:
    """CL-IDN-032, CL-IDN-033: the certificate in use stays."""
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "other CA")
    identity = Identity(with_token(issuer, tmp_path))
    held = identity.held()

    def change(made: dict[str, Any], request: x509.CertificateSigningRequest) -> None:
        sign = issuer.authority.sign
        if what == "another key":
            other_key(issuer, made)
        changed: dict[str, dict[str, Any]] = {
            "another principal": {"certificate": sign(request, "spiffe://example.org/mallory").decode()},
            "no principal": {"certificate": sign(request, "https://example.org/").decode()},
            "two principals": {"certificate": sign(request, ALICE, "spiffe://example.org/bob").decode()},
            "over": {"certificate": sign(request, ALICE, seconds=-60).decode()},
            "another CA": {"ca": Path(other.path).read_text()},
            "a leaf as CA": {"ca": made["certificate"]},
            "too large": {"certificate": made["certificate"] + "x" * 65_536},
            "too many": {"ca": made["ca"] * 17},
            "no PEM": {"ca": "CA"},
            "empty": {"certificate": ""},
            "no text": {"ca": 5},
            "no lease": {"expires_in": 0},
        }
        made.update(changed.get(what, {}))

    issuer.change = change
    identity.renew()
    assert identity._failure is not None
    assert text in str(identity._failure)
    assert identity.held() is held
    assert shows_nothing(identity)


def shows_nothing(identity: Identity) -> bool:
    held = identity.held()
    assert held.issued is not None
    for holder in (identity, held.issued):
        with pytest.raises(TypeError):
            pickle.dumps(holder)
    return "PRIVATE" not in repr(identity) + repr(held)


def test_pauses_grow_and_start_anew_after_a_success(issuer: Issuer, tmp_path: Path) -> None:
    """CL-IDN-032."""
    clock = ManualClock()
    identity = Identity(with_token(issuer, tmp_path), clock=clock)
    seeded = random.getstate()
    identity.held()
    issuer.refuse = (503, "key-service-unavailable")
    pauses = []
    for _ in range(10):
        identity.renew()
        pauses.append(identity._due - clock.now)
    expected = [min(0.5 * 2**step, 60) for step in range(10)]
    assert all(0.8 * want <= pause <= 1.2 * want for want, pause in zip(expected, pauses))
    issuer.refuse = None
    identity.renew()
    assert identity._failure is None
    assert identity._backoff == 0.5
    assert random.getstate() == seeded, "what the application seeds is left alone"


def test_after_the_last_certificate_nothing_is_sent_until_there_is_a_new_token(issuer: Issuer, tmp_path: Path) -> None:
    """CL-IDN-035, CL-IDN-036."""
    clock = ManualClock()
    settings = with_token(issuer, tmp_path)
    identity = Identity(settings, clock=clock)
    context = IdentityContext(identity)
    assert context.renew()
    assert not context.renew()
    issuer.refuse = (401, "unauthenticated")
    identity.renew()
    clock.now += 3600
    identity.renew()
    with pytest.raises(CipherlaneError, match="put a new bootstrap token into") as raised:
        context.renew()
    assert (raised.value.code, raised.value.retriable) == ("key-service-unavailable", True)
    assert [bearer for _, bearer, _ in issuer.seen].count("clbt_first") == 1
    (tmp_path / "token").write_text("clbt_second")
    issuer.refuse = None
    identity.renew()
    assert context.renew()
    assert issuer.seen[-1][1] == "clbt_second"


def test_a_token_without_an_answer_is_sent_again(issuer: Issuer, tmp_path: Path) -> None:
    """CL-IDN-035."""
    issuer.refuse = (503, "audit-unavailable")
    identity = Identity(with_token(issuer, tmp_path))
    with pytest.raises(CipherlaneError, match="audit-unavailable"):
        identity.held()
    issuer.refuse = None
    identity.renew()
    assert identity.held().issued is not None


def test_waiting_for_the_first_certificate_has_an_end(issuer: Issuer, tmp_path: Path) -> None:
    issuer.server.behaviour = lambda _connection, _request: None  # never answers
    (tmp_path / "jwt").write_text("a.b.c")
    settings = configuration(issuer, identity_jwt_file=str(tmp_path / "jwt"), keys_deadline_ms=50)
    with pytest.raises(CipherlaneError, match=r"no answer in time; see that .*jwt holds a JWT"):
        Identity(settings).held()


@pytest.mark.parametrize("content", [None, b"", b"two words", b"a\nb", b"\xff\xfe", b"x" * 16_385])
def test_a_token_file_that_holds_none_is_refused_at_once(
    issuer: Issuer, tmp_path: Path, content: Optional[bytes]
) -> None:
    """CL-CFG-002; the error shows nothing of it."""
    if content is not None:
        (tmp_path / "t").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"identity.token.file: .*/t ") as raised:
        Identity(configuration(issuer, identity_token_file=str(tmp_path / "t")))
    assert "words" not in str(raised.value)


def test_pem_files_that_ended_are_no_first_certificate(issuer: Issuer) -> None:
    certificate, key = issuer.authority.issue("old", days=-1, start=-2)
    settings = configuration(
        issuer, identity_renew="true", keyservice_tls_certificate=certificate, keyservice_tls_key=key
    )
    with pytest.raises(CipherlaneError, match=r"put a new certificate and its key into"):
        Identity(settings).held()


def test_what_renewing_did_not_expect_is_a_failed_renewal(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Identity(with_token(issuer, tmp_path))
    held = identity.held()
    monkeypatch.setattr("cipherlane.keyservice.identity.renewal.new_request", lambda: 1 / 0)
    identity.renew()
    assert "ZeroDivisionError" in str(identity._failure)
    assert identity.held() is held


def test_a_forked_child_keeps_the_certificate_and_renews_it_itself(issuer: Issuer, tmp_path: Path) -> None:
    settings = with_token(issuer, tmp_path)
    client = KeyServiceClient(settings)
    client.encryption_key("t", None)
    child = os.fork()
    if child == 0:
        identity = shared(settings)
        alone = identity._thread is None
        client.encryption_key("t", None)
        identity.renew()
        os._exit(0 if alone and identity._failure is None and identity._thread is not None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    client.close()
    assert [bearer for _, bearer, _ in issuer.seen].count("clbt_first") == 1


def test_a_token_serves_clients_one_after_another(issuer: Issuer, tmp_path: Path) -> None:
    """CL-IDN-037."""
    settings = with_token(issuer, tmp_path)
    for _ in range(3):
        client = KeyServiceClient(settings)
        shared(settings).held()
        client.close()
    assert [bearer for _, bearer, _ in issuer.seen] == ["clbt_first"]


def test_what_the_hook_does_in_a_child(issuer: Issuer, tmp_path: Path) -> None:
    identity = Identity(with_token(issuer, tmp_path))
    held, thread = identity.held(), identity._thread
    identity.after_fork_in_child()
    assert identity._thread is None
    assert identity.held() is held
    assert identity._thread is not thread


def descriptors() -> int:
    """How many memories and pipes this process has open; other threads open sockets meanwhile."""
    links = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return sum(link.startswith(("/memfd:", "pipe:")) for link in links)


@pytest.mark.parametrize("memfd", [True, False])
def test_the_key_reaches_openssl_without_a_file(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, memfd: bool
) -> None:
    """CL-IDN-030: by memory with a descriptor, or by a pipe."""
    if not memfd:
        monkeypatch.delattr(os, "memfd_create")
    held = Identity(with_token(issuer, tmp_path)).held()
    assert held.issued is not None
    before = descriptors()
    tls.show(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), held.issued)
    broken = Issued(held.issued.key, held.issued.leaf, b"no PEM" * 20_000, held.issued.ca, ALICE)
    with pytest.raises(ssl.SSLError):
        tls.show(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), broken)
    assert descriptors() == before


def test_a_system_without_such_descriptors_is_refused(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "_DESCRIPTORS", tmp_path / "none")
    with pytest.raises(ConfigurationError, match="renew the PEM files instead"):
        Identity(with_token(issuer, tmp_path))


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_certificate_that_cannot_be_read_is_a_wrong_setting(tmp_path: Path, content: Optional[bytes]) -> None:
    if content is not None:
        (tmp_path / "c.pem").write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"tls.certificate: cannot be used"):
        load_certificate(str(tmp_path / "c.pem"))


def test_the_thread_renews_by_itself(issuer: Issuer, tmp_path: Path) -> None:
    """CL-IDN-031; and it looks at the clock again, whatever it waited."""
    issuer.change = lambda made, _request: made.update(refresh_in=1)
    identity = Identity(with_token(issuer, tmp_path))
    first = identity.held()
    eventually(lambda: identity.held() is not first)
