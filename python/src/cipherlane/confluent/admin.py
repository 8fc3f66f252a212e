"""Topics, groups and the like, over the TLS that the clients of this package have."""

from __future__ import annotations

from typing import Any, Mapping

import confluent_kafka.admin

from cipherlane import configuration
from cipherlane.configuration import Configuration
from cipherlane.confluent import transport


class AdminClient(confluent_kafka.admin.AdminClient):
    """``confluent_kafka.admin.AdminClient`` with ``cipherlane.`` settings among its own.

    It reads and writes no records: what it takes from these settings is the certificate that Kafka is shown.

    Args:
        conf: settings
        **kwargs: as ``confluent_kafka.admin.AdminClient``

    Raises:
        ConfigurationError: a ``cipherlane.`` setting is missing, unknown, malformed or out of range
    """

    def __init__(self, conf: Mapping[str, Any], **kwargs: Any) -> None:  # noqa: ANN401 - a logger
        ours, theirs = configuration.split(conf)
        with transport.connected(Configuration.from_settings(ours), theirs) as connected:
            super().__init__(connected, **kwargs)
