"""A consumer that decrypts, in the place of ``confluent_kafka.Consumer`` (spec/kafka.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import confluent_kafka

from cipherlane import configuration
from cipherlane.confluent.message import UndecryptableMessage
from cipherlane.decryptor import Decryptor, Record
from cipherlane.errors import DecryptionError

if TYPE_CHECKING:
    _Message = confluent_kafka.Message[Any, Any]


class Consumer(confluent_kafka.Consumer):
    """``confluent_kafka.Consumer`` with ``cipherlane.`` settings among its own.

    ``value()`` of a message gives the plaintext. A message that cannot be decrypted keeps its place; its ``value()``
    raises a ``DecryptionError``; the messages around it are readable. Null values, and messages that are errors, pass
    as they are. To skip nothing, commit what was processed: with ``enable.auto.offset.store`` (the default) and
    automatic commits, librdkafka commits past a record once it was handed out, whatever its ``value()`` does.

    Keys are asked for in ``poll`` and ``consume``, which may take ``cipherlane.keys.deadline.ms`` longer for that.

    Args:
        *args: as ``confluent_kafka.Consumer``: a dictionary of settings
        **kwargs: settings that go over those of the dictionary; ``logger``

    Raises:
        ConfigurationError: a ``cipherlane.`` setting is missing, unknown, malformed or out of range
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever settings take
        settings = {**dict(*args), **kwargs}
        ours, theirs = configuration.split(settings)
        self._decryptor = Decryptor.from_settings(ours)
        try:
            super().__init__(theirs)
        except BaseException:
            self._decryptor.close()
            raise

    def poll(self, timeout: float = -1) -> Optional[_Message]:
        """One message or None, as ``confluent_kafka.Consumer.poll``; its value is decrypted."""
        message = super().poll(timeout)
        return None if message is None else self._decrypted([message])[0]

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[_Message]:
        """Up to ``num_messages``, as ``confluent_kafka.Consumer.consume``; their keys are asked for together."""
        return self._decrypted(super().consume(num_messages, timeout))

    def commit(self, message: Optional[_Message] = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """As ``confluent_kafka.Consumer.commit``; ``message`` may be one that cannot be decrypted."""
        return super().commit(*_for_librdkafka(message), *args, **kwargs)

    def store_offsets(self, message: Optional[_Message] = None, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """As ``confluent_kafka.Consumer.store_offsets``; ``message`` may be one that cannot be decrypted."""
        super().store_offsets(*_for_librdkafka(message), *args, **kwargs)

    def close(self) -> None:
        """Leaves the group, then wipes the keys and closes the connections to the key service."""
        try:
            super().close()
        finally:
            self._decryptor.close()

    def __exit__(self, *_exception: object) -> None:
        """Closes; the one of the C type would not wipe the keys."""
        self.close()

    def _decrypted(self, messages: list[_Message]) -> list[_Message]:
        records = [message for message in messages if message.error() is None]
        outcomes = iter(self._decryptor.decrypt_all(_record(message) for message in records))
        return [_shown(message, next(outcomes)) if message.error() is None else message for message in messages]


def _record(message: _Message) -> Record:
    return Record(message.topic() or "", message.value(), message.key(), message.partition(), message.offset())


def _shown(message: _Message, outcome: object) -> _Message:
    if isinstance(outcome, DecryptionError):
        return UndecryptableMessage(message, outcome)
    message.set_value(outcome)
    return message


def _for_librdkafka(message: Optional[_Message]) -> Any:  # noqa: ANN401 - positional arguments
    """The C functions take no subclass of a message, and no None where a message may be left out."""
    if isinstance(message, UndecryptableMessage):
        return (message.as_plain_message(),)
    return () if message is None else (message,)
