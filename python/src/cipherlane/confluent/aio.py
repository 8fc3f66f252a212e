"""The asyncio clients of confluent-kafka, with encryption. What may wait for a key does so in a thread."""

from __future__ import annotations

import asyncio
from typing import Any, Mapping, NoReturn, Optional

import confluent_kafka.aio

from cipherlane.confluent.consumer import for_librdkafka
from cipherlane.confluent.message import UndecryptableMessage
from cipherlane.confluent.producer import key_bytes, opened
from cipherlane.confluent.reader import Reader
from cipherlane.confluent.serializing import refusal, refuse_mark
from cipherlane.counts import Numbers
from cipherlane.errors import DecryptionError

Settings = Mapping[str, Any]


class AIOProducer(confluent_kafka.aio.AIOProducer):
    """``confluent_kafka.aio.AIOProducer`` with ``cipherlane.`` settings among its own; see :class:`..Producer`.

    Futures resolve to messages with the application's own value.

    Raises:
        ConfigurationError: a ``cipherlane.`` setting is missing, unknown, malformed or out of range
    """

    def __init__(self, producer_conf: Settings, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as confluent_kafka
        with opened(producer_conf) as (self._encryptor, theirs):
            super().__init__(theirs, *args, **kwargs)

    async def produce(self, topic: str, value: Any = None, key: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """As ``AIOProducer.produce``; the value is encrypted.

        Raises:
            EncryptionError: nothing was sent [CL-KAF-001]
        """
        plaintext = value.encode() if isinstance(value, str) else value
        encrypted = self._encryptor.encrypt_at_once(topic, plaintext)
        if encrypted is None:
            loop = asyncio.get_running_loop()
            arguments = topic, plaintext, key_bytes(key)
            encrypted = await loop.run_in_executor(self.executor, self._encryptor.encrypt, *arguments)
        future = await super().produce(topic, encrypted, key, *args, **kwargs)
        # Callbacks run in the order in which they were added: this one before any of the application's.
        future.add_done_callback(lambda done: _show(done, plaintext))
        return future

    def cipherlane_numbers(self) -> Numbers:
        """What this client reports of itself (spec/kafka.md, "Numbers")."""
        return self._encryptor.numbers()

    async def close(self) -> None:
        """Sends what is queued, then wipes the keys and closes the connections to the key service."""
        try:
            await super().close()
        finally:
            await asyncio.get_running_loop().run_in_executor(None, self._encryptor.close)


class AIOConsumer(confluent_kafka.aio.AIOConsumer):
    """``confluent_kafka.aio.AIOConsumer`` with ``cipherlane.`` settings among its own; see :class:`..Consumer`.

    Raises:
        ConfigurationError: a ``cipherlane.`` setting is missing, unknown, malformed or out of range
    """

    def __init__(self, consumer_conf: Settings, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        with Reader.opened(consumer_conf, self._refused) as (self._reader, theirs):
            super().__init__(theirs, *args, **kwargs)

    async def poll(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """As ``AIOConsumer.poll``; the value is decrypted."""
        return await self._call(self._reader.poll, self._consumer.poll, *args, **kwargs)

    async def consume(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """As ``AIOConsumer.consume``; the keys of the messages are asked for together."""
        return await self._call(self._reader.consume, self._consumer.consume, *args, **kwargs)

    async def commit(self, message: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """As ``AIOConsumer.commit``; ``message`` may be one that cannot be decrypted."""
        return await super().commit(*for_librdkafka(message), *args, **kwargs)

    async def store_offsets(self, message: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """As ``AIOConsumer.store_offsets``; ``message`` may be one that cannot be decrypted."""
        return await super().store_offsets(*for_librdkafka(message), *args, **kwargs)

    def cipherlane_numbers(self) -> Numbers:
        """What this client reports of itself (spec/kafka.md, "Numbers")."""
        return self._reader.numbers()

    async def close(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Leaves the group, then wipes the keys and closes the connections to the key service."""
        try:
            return await super().close(*args, **kwargs)
        finally:
            self._reader.close()

    @staticmethod
    def _refused(message: Any, error: DecryptionError) -> Any:  # noqa: ANN401
        return UndecryptableMessage(message, error)


class AsyncSerializingProducer(confluent_kafka.aio.AsyncSerializingProducer, AIOProducer):  # type: ignore[misc]
    """``AsyncSerializingProducer`` that encrypts what its value serializer made; ``await`` it to make one."""

    async def __init__(self, conf: Settings, **kwargs: Any) -> None:  # type: ignore[misc] # noqa: ANN401
        with opened(conf) as (self._encryptor, theirs):
            await super().__init__(theirs, **kwargs)


class AsyncDeserializingConsumer(confluent_kafka.aio.AsyncDeserializingConsumer, AIOConsumer):
    """``AsyncDeserializingConsumer`` that gives its value deserializer the plaintext; ``await`` it to make one.

    A record that cannot be decrypted is a ``ValueDeserializationError``, whose ``exception`` is the
    ``DecryptionError`` and whose ``kafka_message`` has the record's place.

    Raises:
        ConfigurationError: also for ``cipherlane.failure.action`` ``mark``: a deserializer cannot read ciphertext
    """

    async def __init__(self, conf: Settings, **kwargs: Any) -> None:  # type: ignore[misc] # noqa: ANN401
        refuse_mark(conf)
        with Reader.opened(conf, self._refused) as (self._reader, theirs):
            await super().__init__(theirs, **kwargs)

    @staticmethod
    def _refused(message: Any, error: DecryptionError) -> NoReturn:  # noqa: ANN401
        raise refusal(message, error)


def _show(done: asyncio.Future[Any], value: Optional[bytes]) -> None:
    if not done.cancelled() and done.exception() is None:
        done.result().set_value(value)
