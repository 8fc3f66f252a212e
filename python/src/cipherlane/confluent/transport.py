"""TLS to Kafka under the certificate that the key service issued, for confluent-kafka (spec/configuration.md).

librdkafka reads its certificate once. So, as in C, what it takes for plain connections are pairs of sockets, behind
which ``cipherlane_native`` runs mutual TLS; it is given each certificate as it is renewed. Where that module cannot do
so, a client goes on as its own ``ssl.`` settings say, and a warning is logged.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import threading
import weakref
from pathlib import Path
from typing import Any, Iterator, Mapping

from confluent_kafka import cimpl

from cipherlane import forking
from cipherlane.configuration import PEER_IDS, Configuration
from cipherlane.errors import ConfigurationError
from cipherlane.keyservice import identity
from cipherlane.keyservice.identity import Held, Identity

_log = logging.getLogger(__name__)

_OWN = ("ssl.ca.", "ssl.certificate.", "ssl.key.", "ssl.keystore.", "ssl_")
"""How settings begin that make librdkafka's TLS the application's: whom to trust, and what to show."""
_TLS = ("ssl.", "ssl_", "enable.ssl.")
_PLAIN = {"ssl": "plaintext", "sasl_ssl": "sasl_plaintext"}
_PLUGINS = "plugin.library.paths"
_HOST = "ssl.endpoint.identification.algorithm"


@contextlib.contextmanager
def connected(configuration: Configuration, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Gives the settings for librdkafka; the block makes the client of them.

    Args:
        configuration: the ``cipherlane.`` settings, read
        settings: the client's others

    Raises:
        ConfigurationError: ``cipherlane.tls.peer.ids`` could not be kept [CL-TLS-012], or a PEM file cannot be used
    """
    module = _module() if _wanted(configuration, settings) else None
    if module is None:
        _refuse_peer_ids(configuration)
        yield dict(settings)
        return
    verified = str(settings.get(_HOST) or "https").lower() != "none"  # None stands for what it is by itself
    ids = ",".join(configuration.peer_ids.patterns)
    wait = int(configuration.request_timeout * 1000)
    number = module.begin(_certificates.of(module, configuration), ids, verified, wait)
    try:
        yield _plainly(settings, module.__file__, number)
    except BaseException:
        module.drop(number)  # if no client took it
        raise


def _wanted(configuration: Configuration, settings: Mapping[str, Any]) -> bool:
    if not configuration.identity_renew or _protocol(settings) not in _PLAIN:
        return False
    own = sorted(name for name, value in settings.items() if name.startswith(_OWN) and value is not None)
    if own:
        _log.info("TLS to Kafka is the application's, as %s says: no certificate of the key service is shown", own[0])
    return not own


def _protocol(settings: Mapping[str, Any]) -> str:
    return str(settings.get("security.protocol", "")).lower()


def _refuse_peer_ids(configuration: Configuration) -> None:
    if configuration.peer_ids.patterns:
        raise ConfigurationError(
            f"{PEER_IDS}: needs cipherlane.identity.renew, security.protocol ssl or sasl_ssl, neither a CA nor a"
            " certificate in librdkafka's settings, and cipherlane-native on Linux"
        )


def _plainly(settings: Mapping[str, Any], plugin: str, number: int) -> dict[str, Any]:
    """Librdkafka speaks plainly to its end of a pair, which knows no TCP options."""
    others = {name: value for name, value in settings.items() if not name.startswith(_TLS)}
    plugins = [path for path in (settings.get(_PLUGINS), plugin) if path]
    return {
        **others,
        _PLUGINS: ";".join(plugins),
        "cipherlane.transport": str(number),
        "security.protocol": _PLAIN[_protocol(settings)],
        "socket.nagle.disable": "false",
    }


@functools.cache
def _module() -> Any:  # noqa: ANN401 - it has no types of its own
    """The one in C, or None where it is not installed, or does not fit this confluent-kafka."""
    try:
        module = importlib.import_module("cipherlane_native._transport")
        module.load(cimpl.__file__)
    except ImportError as error:
        _log.warning(
            "the certificate of the key service is not shown to Kafka (%s): install cipherlane-native (Linux), or set"
            " ssl.ca.location, ssl.certificate.location and ssl.key.location, or use a sidecar",
            error,
        )
        return None
    return module


class _Certificates:
    """What the module was given, for each identity of this process."""

    def __init__(self) -> None:
        self.after_fork_in_child()
        forking.reset_in_child(self)

    def of(self, module: Any, configuration: Configuration) -> Any:  # noqa: ANN401
        """What stands for the certificate in use, there."""
        used = identity.shared(configuration)
        with self._lock:
            if used not in self._known:
                self._known[used] = made = module.identity()
                used.follow(lambda held: module.give(made, *_texts(configuration, held), held.until))
            return self._known[used]

    def after_fork_in_child(self) -> None:
        """The parent's may be locked by a thread that is not there."""
        self._lock = threading.Lock()
        self._known: weakref.WeakKeyDictionary[Identity, Any] = weakref.WeakKeyDictionary()


_certificates = _Certificates()


def _texts(configuration: Configuration, held: Held) -> tuple[bytes, bytes, bytes]:
    """CAs, chain and key in PEM."""
    issued = held.issued
    if issued is not None:
        return issued.ca, issued.chain, issued.key_pem()
    files = configuration.tls_ca, configuration.tls_certificate, configuration.tls_key
    try:
        ca, chain, key = (Path(file).read_bytes() for file in files)
    except OSError as error:
        raise ConfigurationError(f"cipherlane.keyservice.tls: {error.filename}: {error.strerror}") from None
    return ca, chain, key
