"""Whether Kafka can be reached with a client's settings, by way of confluent-kafka where it is installed."""

from __future__ import annotations

from typing import Any, Mapping, Optional

from cipherlane.configuration import Configuration

_CONNECTION = ("bootstrap.servers", "security.protocol", "ssl.", "sasl.", "enable.ssl.", "broker.address.", "client.id")
_TIMEOUT = 10.0
"""Seconds."""

_HUNG_UP = (
    "it hung up: security.protocol is not that of this listener, or a proxy without a broker behind it, or TLS was"
    " refused, of which a line CIPHERLANE says why"
)

# What librdkafka says, in parts.
_BY_TEXT = (
    ("refused", "nothing listens there: does the broker run, and is the port right?"),
    ("resolve", "the host's name is not known: look at bootstrap.servers and at DNS"),
    ("certificate verify failed", "ssl.ca.location is not the CA of the broker's certificate"),
    ("PLAINTEXT broker", "the port does not speak TLS: security.protocol is not that of this listener"),
    ("wrong version number", "the port does not speak TLS: security.protocol is not that of this listener"),
    ("handshake failed", "the broker refuses this client's certificate, or the port does not speak TLS"),
    ("SASL", "the broker does not take these credentials: look at sasl.*"),
    ("Disconnected", _HUNG_UP),
    ("brokers are down", _HUNG_UP),  # all that librdkafka says of it
)


class UnreachableError(Exception):
    """No broker answered; ``fix`` says what to do."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        known = (fix for part, fix in _BY_TEXT if part.lower() in what.lower())
        self.fix = next(known, "look at bootstrap.servers, security.protocol, and what lies in between")


def brokers(ours: Configuration, settings: Mapping[str, Any]) -> Optional[int]:
    """How many there are.

    Args:
        ours: the ``cipherlane.`` settings: brokers may be shown the certificate that the key service issues
        settings: the client's others

    Returns:
        their number; None if the settings name none, or confluent-kafka is not installed

    Raises:
        UnreachableError: within ten seconds
    """
    if not settings.get("bootstrap.servers"):
        return None
    try:
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        from cipherlane.confluent import transport  # noqa: PLC0415
    except ImportError:
        return None
    said: list[str] = []
    own: dict[str, Any] = {name: value for name, value in settings.items() if name.startswith(_CONNECTION)}
    own |= {"error_cb": lambda error: said.append(error.str()), "log_level": 0}
    try:
        with transport.connected(ours, own) as connected:
            admin = AdminClient(connected)
    except KafkaException as error:
        raise UnreachableError(error.args[0].str()) from None
    try:
        return len(admin.list_topics(timeout=_TIMEOUT).brokers)
    except KafkaException as error:
        admin.poll(0)  # calls error_cb
        raise UnreachableError(next(iter(said), error.args[0].str())) from None
