"""Tells whoever expects librdkafka to show the certificate that the key service issued (spec/identity.md)."""

from __future__ import annotations

import logging
from typing import Any, Mapping

from cipherlane.configuration import Configuration

_log = logging.getLogger(__name__)

_OWN = ("ssl.certificate.", "ssl.keystore.", "ssl_certificate")
"""How settings begin that give librdkafka a certificate."""


def warn_if_not_shown(configuration: Configuration, settings: Mapping[str, Any]) -> None:
    """Logs a warning if Kafka is reached by TLS without a certificate while the key service issues one.

    It is not refused: a listener may ask for none.

    Args:
        configuration: the ``cipherlane.`` settings, read
        settings: the client's others
    """
    by_tls = str(settings.get("security.protocol", "")).lower() == "ssl"
    if configuration.identity_renew and by_tls and not any(name.startswith(_OWN) for name in settings):
        _log.warning(
            "Kafka is shown no certificate: confluent-kafka cannot renew one while it runs, so that of the key service"
            " serves for the key service alone; set ssl.certificate.location and ssl.key.location, or use a sidecar"
        )
