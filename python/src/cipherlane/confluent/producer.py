"""A producer that encrypts, in the place of ``confluent_kafka.Producer`` (spec/kafka.md)."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, Mapping, Optional, Union

import confluent_kafka

from cipherlane import configuration
from cipherlane.configuration import Configuration
from cipherlane.confluent import transport
from cipherlane.counts import Numbers
from cipherlane.encryptor import Encryptor

Delivered = Callable[[Any, Any], Any]
"""Takes the error (or None) and the message."""

_produce = confluent_kafka.Producer.produce


class Producer(confluent_kafka.Producer):
    """``confluent_kafka.Producer`` with ``cipherlane.`` settings among its own.

    Values are encrypted as the key service's policy says; ``produce`` raises if one cannot be, and nothing is sent.
    Keys, headers, timestamps and partitions are passed on as they are. Delivery callbacks see the application's own
    value; to show it, the value is kept until then, for records with a callback only.

    The first record of a topic waits for its key, at most ``cipherlane.keys.deadline.ms``. Whether a record is too
    large (``message.max.bytes``) is decided on the envelope, which has 60 bytes more than the value.

    Args:
        *args: as ``confluent_kafka.Producer``: a dictionary of settings
        **kwargs: settings that go over those of the dictionary; ``logger``

    Raises:
        ConfigurationError: a ``cipherlane.`` setting is missing, unknown, malformed or out of range
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever settings take
        given = {**dict(*args), **kwargs}
        # It is called by way of each record's own callback, which knows the value.
        self._on_delivery: Optional[Delivered] = given.pop("on_delivery", None)
        with opened(given) as (self._encryptor, theirs):
            super().__init__(theirs)

    def produce(
        self,
        topic: str,
        value: Optional[Union[str, bytes]] = None,
        key: Optional[Union[str, bytes]] = None,
        partition: int = -1,
        callback: Optional[Delivered] = None,
        on_delivery: Optional[Delivered] = None,
        timestamp: int = 0,
        headers: Any = None,  # noqa: ANN401 - as confluent_kafka
    ) -> None:
        """As ``confluent_kafka.Producer.produce``; the value is encrypted.

        Raises:
            EncryptionError: nothing was sent [CL-KAF-001]; ``retriable`` says whether to try again later
        """
        plaintext = value.encode() if isinstance(value, str) else value
        encrypted = self._encryptor.encrypt_at_once(topic, plaintext)
        if encrypted is None:
            encrypted = self._encryptor.encrypt(topic, plaintext, key_bytes(key))
        told = callback or on_delivery or self._on_delivery
        if told is not None:
            told = functools.partial(_tell, told, plaintext)
        elif not timestamp and headers is None:
            _produce(self, topic, encrypted, key, partition)  # arguments that are left out cost no time
            return
        _produce(self, topic, encrypted, key, partition, told, None, timestamp, headers)

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int = -1,
        callback: Optional[Delivered] = None,
        on_delivery: Optional[Delivered] = None,
    ) -> int:
        """As ``confluent_kafka.Producer.produce_batch``; the values are encrypted, in copies of the dictionaries.

        Raises:
            EncryptionError: one of the values was not encrypted; nothing of the batch was sent [CL-KAF-001]
        """
        if not isinstance(messages, list):
            raise TypeError("messages must be a list")
        told = callback or on_delivery or self._on_delivery
        encrypted = [self._encrypted(topic, message, told) for message in messages]
        queued = super().produce_batch(topic, encrypted, partition)
        for message, copied in zip(messages, encrypted):
            if "_error" in copied:
                message["_error"] = copied["_error"]
        return queued

    def cipherlane_numbers(self) -> Numbers:
        """What this client reports of itself (spec/kafka.md, "Numbers")."""
        return self._encryptor.numbers()

    def close(self) -> bool:
        """Sends what is queued, then wipes the keys and closes the connections to the key service."""
        try:
            return super().close()
        finally:
            self._encryptor.close()

    def __exit__(self, *_exception: object) -> None:
        """Closes; the one of the C type would not wipe the keys."""
        self.close()

    def _encrypted(self, topic: str, message: dict[str, Any], told: Optional[Delivered]) -> dict[str, Any]:
        if not isinstance(message, dict):
            raise TypeError("a message must be a dict")
        value = message.get("value")
        value = value.encode() if isinstance(value, str) else value
        copied = {**message, "value": self._encryptor.encrypt(topic, value, key_bytes(message.get("key")))}
        told = message.get("callback") or told
        if told is not None:
            copied["callback"] = functools.partial(_tell, told, value)
        return copied


@contextlib.contextmanager
def opened(given: Mapping[str, Any]) -> Iterator[tuple[Encryptor, dict[str, Any]]]:
    """The encryptor of a producer with these settings, and those for librdkafka; the block makes the producer.

    Raises:
        ConfigurationError: a ``cipherlane.`` setting cannot be used
    """
    ours, theirs = configuration.split(given)
    settings = Configuration.from_settings(ours)
    encryptor = Encryptor.from_configuration(settings)
    try:
        with transport.connected(settings, theirs) as connected:
            yield encryptor, connected
    except BaseException:
        encryptor.close()
        raise


def key_bytes(key: Any) -> Any:  # noqa: ANN401 - whatever the application gave; the encryptor refuses what is no key
    """A record key as confluent-kafka sends it: text in UTF-8."""
    return key.encode() if isinstance(key, str) else key


def _tell(callback: Delivered, value: Optional[bytes], error: Any, message: Any) -> None:  # noqa: ANN401
    message.set_value(value)
    callback(error, message)
