"""The clients of confluent-kafka that serialize: what they send and read goes through the drop-in clients."""

from __future__ import annotations

from typing import Any, Mapping, NoReturn

import confluent_kafka
from confluent_kafka.error import ValueDeserializationError

from cipherlane import configuration
from cipherlane.configuration import FAILURE_ACTION
from cipherlane.confluent.consumer import Consumer
from cipherlane.confluent.message import UndecryptableMessage
from cipherlane.confluent.producer import Producer
from cipherlane.errors import ConfigurationError, DecryptionError


class SerializingProducer(confluent_kafka.SerializingProducer, Producer):  # type: ignore[misc]
    """``confluent_kafka.SerializingProducer`` that encrypts what its value serializer made; see :class:`Producer`."""


class DeserializingConsumer(confluent_kafka.DeserializingConsumer, Consumer):  # type: ignore[misc]
    """``confluent_kafka.DeserializingConsumer`` that gives its value deserializer the plaintext; see :class:`Consumer`.

    A record that cannot be decrypted is a ``ValueDeserializationError``, whose ``exception`` is the
    ``DecryptionError`` and whose ``kafka_message`` has the record's place.

    Raises:
        ConfigurationError: also for ``cipherlane.failure.action`` ``mark``: a deserializer cannot read ciphertext
    """

    def __init__(self, conf: dict[str, Any]) -> None:
        refuse_mark(conf)
        super().__init__(conf)

    @staticmethod
    def _refused(message: Any, error: DecryptionError) -> NoReturn:  # noqa: ANN401
        raise refusal(message, error)


def refuse_mark(conf: Mapping[str, Any]) -> None:
    """Raises ``ConfigurationError`` if ciphertext would be handed to a deserializer [CL-KAF-026]."""
    if configuration.split(conf)[0].get(FAILURE_ACTION) == "mark":
        raise ConfigurationError(f"{FAILURE_ACTION}: mark is not for consumers that deserialize")


def refusal(message: Any, error: DecryptionError) -> ValueDeserializationError:  # noqa: ANN401
    """What a consumer that deserializes raises for a record that cannot be decrypted."""
    return ValueDeserializationError(exception=error, kafka_message=UndecryptableMessage(message, error))
