"""A key service that misbehaves as it is told: a real TLS server on loopback, with certificates made here and now."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import threading
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Behaviour = Callable[[ssl.SSLSocket, bytes], None]


class Authority:
    """A CA in a folder."""

    def __init__(self, folder: Path, name: str = "test CA") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        ca = x509.BasicConstraints(ca=True, path_length=None)
        certificate = self._build(self._name, self._key, [ca]).sign(self._key, hashes.SHA256())
        self.path = self._write(f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *alternatives: x509.GeneralName, days: float = 1, start: float = -2) -> tuple[str, str]:
        """Paths of a certificate and of its key; it is valid from ``start`` to ``days`` days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        extensions: list[Any] = [x509.SubjectAlternativeName(alternatives)] if alternatives else []
        certificate = self._build(subject, key, extensions, days, start).sign(self._key, hashes.SHA256())
        return (
            self._write(f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM)),
            self._write(f"{name}-key.pem", pem(key)),
        )

    def sign(self, request: x509.CertificateSigningRequest, *principals: str, seconds: float = 3600) -> bytes:
        """A certificate for the key of a request, in PEM."""
        names = [x509.NameAttribute(NameOID.COMMON_NAME, "client")]
        uri = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(name) for name in principals])
        builder = self._build(x509.Name(names), request, [uri], days=seconds / 86400)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _build(
        self, subject: x509.Name, key: Any, extensions: list[Any], days: float = 1, start: float = -2
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + dt.timedelta(days=start))
            .not_valid_after(now + dt.timedelta(days=days))
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=True)
        return builder

    def _write(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.write_bytes(content)
        return str(path)


def pem(key: Any, password: Optional[bytes] = None) -> bytes:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))


LOOPBACK = (x509.IPAddress(ipaddress.ip_address("127.0.0.1")),)


class HostileServer:
    """Takes connections, reads one request after the other, and lets ``behaviour`` answer each."""

    def __init__(
        self, authority: Authority, behaviour: Behaviour, *alternatives: x509.GeneralName, days: int = 1
    ) -> None:
        self.behaviour = behaviour
        self.requests: list[bytes] = []
        self.connections = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*authority.issue(f"server-{id(self)}", *(alternatives or LOOPBACK), days=days))
        self._context.load_verify_locations(authority.path)
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(plain)
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), self._context.wrap_socket(plain, server_side=True) as connection:
            self._open.append(connection)
            self.connections += 1
            for request in read_requests(connection):
                self.requests.append(request)
                self.behaviour(connection, request)


def read_requests(connection: ssl.SSLSocket) -> Iterator[bytes]:
    stream = connection.makefile("rb")
    while True:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                return
            head += line
        size = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        yield head + stream.read(size)


def answer(status: int, body: bytes, content_type: str = "application/json", headers: str = "") -> Behaviour:
    """Answers each request with this."""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"

    def behave(connection: ssl.SSLSocket, _request: bytes) -> None:
        connection.sendall(head.encode() + body)

    return behave


def raw(*pieces: bytes, pause: float = 0, close: bool = True) -> Behaviour:
    """Sends these bytes, waiting between the pieces, and closes."""

    def behave(connection: ssl.SSLSocket, _request: bytes) -> None:
        for piece in pieces:
            connection.sendall(piece)
            threading.Event().wait(pause)
        if close:
            connection.shutdown(socket.SHUT_RDWR)

    return behave


@contextlib.contextmanager
def serving(authority: Authority, behaviour: Behaviour, *alternatives: Any, days: int = 1) -> Iterator[HostileServer]:
    server = HostileServer(authority, behaviour, *alternatives, days=days)
    try:
        yield server
    finally:
        server.close()
