"""Mutual TLS towards the key service: certificates from PEM files, and sockets that keep to a deadline."""

from __future__ import annotations

import datetime as dt
import logging
import ssl
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional

from cryptography import x509

from cipherlane.errors import ConfigurationError

if TYPE_CHECKING:
    from cipherlane.configuration import Configuration

_deadlines = threading.local()
_log = logging.getLogger(__name__)


@contextmanager
def time_limits(connect: float, request: float) -> Iterator[None]:
    """Bounds what this thread does on :class:`DeadlineSocket` in total, in seconds.

    The time-out of a socket starts anew with every byte that trickles in; this one does not.
    """
    now = time.monotonic()
    _deadlines.handshake = now + min(connect, request)
    _deadlines.request = now + request
    try:
        yield
    finally:
        del _deadlines.handshake, _deadlines.request


class DeadlineSocket(ssl.SSLSocket):
    """A TLS socket that ends what it does at the deadlines of :func:`time_limits`."""

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of ssl
        """Bounded by the time to connect."""
        self._limit(_deadlines.handshake)
        super().do_handshake(block)

    def recv_into(self, *args: Any, **kwargs: Any) -> int:  # noqa: ANN401 - the arguments of ssl
        """Bounded by the time of the request."""
        self._limit(_deadlines.request)
        return super().recv_into(*args, **kwargs)

    def send(self, *args: Any, **kwargs: Any) -> int:  # noqa: ANN401
        """Bounded by the time of the request."""
        self._limit(_deadlines.request)
        return super().send(*args, **kwargs)

    def _limit(self, deadline: float) -> None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the key service took too long")
        self.settimeout(remaining)


class ReloadingContext:
    """The context made of the PEM files, and made again when they change [CL-KEY-016].

    Attributes:
        current: what the files gave when they could be used last

    Raises:
        ConfigurationError: when it is made, as :func:`client_context`
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._files = (configuration.tls_ca, configuration.tls_certificate, configuration.tls_key)
        self._seen = _versions(self._files)
        self.current = client_context(configuration)

    def renew(self) -> bool:
        """Looks at the files; called before each request, so a renewed certificate is shown from the next one on.

        Returns:
            whether there is a new context; files that cannot be used leave the old one in force
        """
        versions = _versions(self._files)
        if versions == self._seen:
            return False
        try:
            self.current = client_context(self._configuration)
        except ConfigurationError as error:
            _log.warning("the renewed files are not used: %s", error)
            return False
        self._seen = versions
        return True


def _versions(files: Iterable[str]) -> list[Optional[tuple[int, int, int]]]:
    """What changes when a file is written or replaced, without reading it."""
    return [_version(file) for file in files]


def _version(file: str) -> Optional[tuple[int, int, int]]:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def client_context(
    configuration: Configuration, *, authorities: str = "", with_certificate: bool = True
) -> ssl.SSLContext:
    """A context that shows this client's certificate; it trusts only the configured CA and the right name [CL-KEY-001].

    Args:
        configuration: has the files
        authorities: CAs in PEM, trusted too
        with_certificate: whether that of the files is shown, if there is one

    Raises:
        ConfigurationError: a file cannot be read, or does not hold what it should
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sslsocket_class = DeadlineSocket
    try:
        context.load_verify_locations(cafile=configuration.tls_ca)
    except (OSError, ValueError) as error:
        raise _unreadable("cipherlane.keyservice.tls.ca", error) from None
    if authorities:
        context.load_verify_locations(cadata=authorities)
    if not (with_certificate and configuration.tls_certificate):
        return context  # a token or a JWT proves who this is
    try:
        context.load_cert_chain(configuration.tls_certificate, configuration.tls_key, password=_no_password)
    except (OSError, ValueError) as error:
        raise _unreadable("cipherlane.keyservice.tls.certificate or cipherlane.keyservice.tls.key", error) from None
    return context


def load_certificate(file: str) -> x509.Certificate:
    """The first certificate of a PEM file; raises ``ConfigurationError``."""
    try:
        return x509.load_pem_x509_certificates(Path(file).read_bytes())[0]
    except (OSError, ValueError) as error:
        raise _unreadable("cipherlane.keyservice.tls.certificate", error) from None


def seconds_left(certificate: x509.Certificate) -> float:
    """Until a certificate ends; negative when it has."""
    return (certificate.not_valid_after_utc - dt.datetime.now(dt.timezone.utc)).total_seconds()


def _no_password() -> str:
    """Without this, OpenSSL asks at the terminal for the password of an encrypted key."""
    raise ValueError("the private key is encrypted")


def _unreadable(setting: str, error: Exception) -> ConfigurationError:
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error) or type(error).__name__
    return ConfigurationError(f"{setting}: cannot be used: {reason}")
