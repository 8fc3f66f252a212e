"""Puts records that cannot be decrypted, as they were read, into a topic of their own [CL-KAF-022]."""

from __future__ import annotations

import functools
from typing import Any, Callable, Mapping, Optional, Sequence

import confluent_kafka

from cipherlane.configuration import Configuration
from cipherlane.confluent import transport
from cipherlane.errors import DecryptionError
from cipherlane.failure import check_letter_topic, letter_headers

# What a client needs to reach the brokers and to be let in.
_CONNECTION = (
    "bootstrap.servers", "metadata.broker.list", "broker.", "security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.",
    "oauth_cb", "https.", "client.", "socket.", "reconnect.", "api.version.", "message.max.bytes", "logger",
)  # fmt: skip

Failure = tuple[Any, DecryptionError]
"""A message as it was read, and why it cannot be decrypted."""

Settle = Callable[[Optional[str]], None]


class DeadLetters:
    """Sends dead letters and waits until they are acknowledged.

    Args:
        configuration: the ``cipherlane.`` settings, read; letters must be acknowledged within its deadline for keys
        settings: the consumer's others; those of its connection and security are taken [CL-KAF-022]
    """

    def __init__(self, configuration: Configuration, settings: Mapping[str, Any]) -> None:
        self._configuration = configuration
        self._settings = {name: value for name, value in settings.items() if name.startswith(_CONNECTION)}
        self._deadline = configuration.keys.deadline
        self._producer: Optional[confluent_kafka.Producer] = None

    def send(self, failures: Sequence[Failure]) -> list[Optional[str]]:
        """Sends records and waits for all of them.

        Returns:
            for each None, or why it is not in the dead-letter topic
        """
        reasons: list[Optional[str]] = ["no acknowledgement in time"] * len(failures)
        for index, failure in enumerate(failures):
            self._try(failure, functools.partial(reasons.__setitem__, index))
        if self._producer is not None:
            self._producer.flush(self._deadline)
        return reasons

    def _try(self, failure: Failure, settle: Settle) -> None:
        try:
            self._produce(failure, lambda error, _message: settle(None if error is None else error.str()))
        except (confluent_kafka.KafkaException, BufferError, ValueError) as error:
            settle(str(error))

    def _produce(self, failure: Failure, on_delivery: Callable[[Any, Any], None]) -> None:
        message, error = failure
        topic = self._configuration.dead_letter_topic_of(message.topic())
        check_letter_topic(message.topic(), topic)
        if self._producer is None:
            self._producer = self._new_producer()
        headers = letter_headers(message.headers(), error)
        self._producer.produce(topic, message.value(), message.key(), headers=headers, on_delivery=on_delivery)

    def _new_producer(self) -> confluent_kafka.Producer:
        own = {"acks": "all", "enable.idempotence": True, "message.timeout.ms": max(1, int(self._deadline * 1000))}
        with transport.connected(self._configuration, {**self._settings, **own}) as connected:
            return confluent_kafka.Producer(connected)
