"""Certificates of ten seconds from the real key service. CL-IDN-030 to CL-IDN-036."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from cipherlane import Encryptor
from cipherlane.cli import advice, main
from cipherlane.configuration import IDENTITY_TOKEN, Configuration
from cipherlane.keyservice import identity
from processes import Service, start_issuing_service

ISSUER = ec.generate_private_key(ec.SECP256R1())
JWT_SECTION = """\
jwt:
  issuer: https://issuer.example.org
  audience: cipherlane
  principals: ["spiffe://dev.cipherlane/**"]
  jwks_file: jwks.json
"""

WRITES_NOTHING = """
import json, os, sys
written = []
def watch(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        written.append(str(arguments[0]))
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        written.append(str(arguments[0]))
sys.dont_write_bytecode = True
from cipherlane import Encryptor
sys.addaudithook(watch)
encryptor = Encryptor.from_settings(json.loads(sys.argv[1]))
encryptor.encrypt("t-a", b"x")
encryptor.close()
print([name for name in written if not name.isdigit()])
"""


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwks() -> str:
    numbers = ISSUER.public_key().public_numbers()
    x, y = (encoded(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
    return json.dumps(
        {"keys": [{"kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "alg": "ES256", "x": x, "y": y}]}
    )


def jwt(principal: str, seconds: float) -> str:
    claims = {
        "iss": "https://issuer.example.org",
        "aud": "cipherlane",
        "sub": f"spiffe://dev.cipherlane/{principal}",
        "exp": int(time.time() + seconds),
    }
    parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "ES256", "kid": "k"}, claims)]
    r, s = decode_dss_signature(ISSUER.sign(".".join(parts).encode(), ec.ECDSA(hashes.SHA256())))
    return ".".join([*parts, encoded(r.to_bytes(32, "big") + s.to_bytes(32, "big"))])


@pytest.fixture(scope="module")
def issuing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("issuing")
    (folder / "jwks.json").write_text(jwks())
    running = start_issuing_service(folder, JWT_SECTION)
    yield running
    running.close()


def settings(service: Service, **more: Any) -> dict[str, Any]:
    with_files = service.settings("producer", **more)
    return {name: value for name, value in with_files.items() if not name.endswith(("tls.certificate", "tls.key"))}


def test_a_token_is_enough_for_a_client_that_runs_on(issuing: Service, tmp_path: Path) -> None:
    """The first certificate ends while the client encrypts, and is missed by nobody."""
    (tmp_path / "token").write_text(issuing.token("producer"))
    given = settings(issuing, identity_token_file=str(tmp_path / "token"))
    with Encryptor.from_settings(given) as encryptor:
        used = identity.shared(Configuration.from_settings(given))
        first, until = used.held().issued, time.monotonic() + 18
        serials: set[int] = set()
        assert first is not None
        while time.monotonic() < until:
            number = len(serials)
            assert encryptor.encrypt(f"t-{time.monotonic_ns()}", b"x") is not None  # a topic that needs a new key
            issued = used.held().issued
            assert issued is not None
            assert issued.principal == "spiffe://dev.cipherlane/producer"
            serials.add(issued.leaf.serial_number)
            time.sleep(0.2 if len(serials) == number else 0)
    assert len(serials) >= 3
    assert not list(tmp_path.rglob("*.pem"))


def test_a_jwt_is_enough(issuing: Service, tmp_path: Path) -> None:
    (tmp_path / "jwt").write_text(jwt("producer", 60))
    with Encryptor.from_settings(settings(issuing, identity_jwt_file=str(tmp_path / "jwt"))) as encryptor:
        assert encryptor.encrypt("t-a", b"x") is not None


def test_pem_files_are_the_first_certificate(issuing: Service) -> None:
    given = issuing.settings("producer", identity_renew="true")
    with Encryptor.from_settings(given) as encryptor:
        assert encryptor.encrypt("t-a", b"x") is not None
        used, until = identity.shared(Configuration.from_settings(given)), time.monotonic() + 10
        while used.held().issued is None:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert encryptor.encrypt("t-b", b"x") is not None


def test_nothing_is_written_to_any_file(issuing: Service, tmp_path: Path) -> None:
    """CL-IDN-030."""
    (tmp_path / "token").write_text(issuing.token("producer"))
    given = json.dumps(settings(issuing, identity_token_file=str(tmp_path / "token")))
    command = [sys.executable, "-c", WRITES_NOTHING, given]
    outcome = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (outcome.returncode, outcome.stdout) == (0, "[]\n"), outcome.stderr


def examined(given: dict[str, Any], folder: Path, output: Any, *arguments: str) -> tuple[int, str]:
    (folder / "client.json").write_text(json.dumps(given))
    code = main(["doctor", str(folder / "client.json"), "--topic", "t-a", "--as", "producer", *arguments])
    return code, output.readouterr().out


def test_the_doctor_leaves_a_token_unless_told(
    issuing: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = settings(issuing, identity_token_file=str(tmp_path / "token"))
    code, said = examined(given, tmp_path, capsys)
    assert (code, "identity.token.file: " in said, "cannot be read" in said) == (1, True, True)
    (tmp_path / "token").write_text(issuing.token("producer"))
    code, said = examined(given, tmp_path, capsys)
    assert (code, "was not sent, because it is good once" in said) == (0, True)
    code, said = examined(given, tmp_path, capsys, "--use-token")
    assert code == 0, said
    assert "the key service issues a certificate of spiffe://dev.cipherlane/producer until" in said
    assert "encrypted under scope t-a" in said
    (tmp_path / "copy").write_bytes((tmp_path / "token").read_bytes())
    code, said = examined({**given, IDENTITY_TOKEN: str(tmp_path / "copy")}, tmp_path, capsys, "--use-token")
    assert code == 1
    assert "-> the token is unknown, ended or used: make a new one" in said


@pytest.mark.parametrize(
    ("principal", "seconds", "words"),
    [
        ("producer", 60, "ok   the key service issues a certificate of spiffe://dev.cipherlane/producer"),
        ("producer", -600, "-> it does not take this JWT or certificate"),
        ("stranger", 60, "-> add a grant of the action certificate"),
    ],
)
def test_the_doctor_looks_at_a_jwt(
    issuing: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str], principal: str, seconds: float, words: str
) -> None:
    (tmp_path / "jwt").write_text(jwt(principal, seconds))
    code, said = examined(settings(issuing, identity_jwt_file=str(tmp_path / "jwt")), tmp_path, capsys)
    assert words in said
    assert code == (0 if words.startswith("ok") else 1)


@pytest.mark.parametrize(
    ("code", "words"), [("key-service-unavailable", "look at its log"), ("nonsense", "really the key service")]
)
def test_other_reasons_why_no_certificate_is_issued(code: str, words: str) -> None:
    assert words in advice.for_certificate(code, token=True)
