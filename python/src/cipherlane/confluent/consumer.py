"""A consumer that decrypts, in the place of ``confluent_kafka.Consumer`` (spec/kafka.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

import confluent_kafka

from cipherlane.confluent.message import UndecryptableMessage
from cipherlane.confluent.reader import Reader
from cipherlane.counts import Numbers
from cipherlane.errors import DecryptionError

if TYPE_CHECKING:
    _Message = confluent_kafka.Message[Any, Any]


class Consumer(confluent_kafka.Consumer):
    """``confluent_kafka.Consumer`` with ``cipherlane.`` settings among its own.

    ``value()`` of a message gives the plaintext. With ``cipherlane.failure.action`` ``fail`` (the default) a message
    that cannot be decrypted keeps its place; its ``value()`` raises a ``DecryptionError``; the messages around it are
    readable. ``skip`` and ``dead-letter`` leave it out, ``mark`` gives the ciphertext with a header that says so. Null
    values, and messages that are errors, pass as they are. To skip nothing, commit what was processed: with
    ``enable.auto.offset.store`` (the default) and automatic commits, librdkafka commits past a record once it was
    handed out, whatever its ``value()`` does.

    Keys are asked for in ``poll`` and ``consume``, which may take ``cipherlane.keys.deadline.ms`` longer for that.

    Args:
        *args: as ``confluent_kafka.Consumer``: a dictionary of settings
        **kwargs: settings that go over those of the dictionary; ``logger``

    Raises:
        ConfigurationError: a ``cipherlane.`` setting is missing, unknown, malformed or out of range
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - whatever settings take
        with Reader.opened({**dict(*args), **kwargs}, self._refused) as (self._reader, theirs):
            super().__init__(theirs)

    def poll(self, timeout: float = -1) -> Optional[_Message]:
        """One message or None, as ``confluent_kafka.Consumer.poll``; its value is decrypted."""
        found: Optional[_Message] = self._reader.poll(super().poll, timeout)
        return found

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[_Message]:
        """Up to ``num_messages``, as ``confluent_kafka.Consumer.consume``; their keys are asked for together."""
        return self._reader.consume(super().consume, num_messages, timeout)

    def commit(self, message: Optional[_Message] = None, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """As ``confluent_kafka.Consumer.commit``; ``message`` may be one that cannot be decrypted."""
        return super().commit(*for_librdkafka(message), *args, **kwargs)

    def store_offsets(self, message: Optional[_Message] = None, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """As ``confluent_kafka.Consumer.store_offsets``; ``message`` may be one that cannot be decrypted."""
        super().store_offsets(*for_librdkafka(message), *args, **kwargs)

    def cipherlane_numbers(self) -> Numbers:
        """What this client reports of itself (spec/kafka.md, "Numbers")."""
        return self._reader.numbers()

    def close(self) -> None:
        """Leaves the group, then wipes the keys and closes the connections to the key service."""
        try:
            super().close()
        finally:
            self._reader.close()

    def __exit__(self, *_exception: object) -> None:
        """Closes; the one of the C type would not wipe the keys."""
        self.close()

    @staticmethod
    def _refused(message: _Message, error: DecryptionError) -> _Message:
        return UndecryptableMessage(message, error)


def for_librdkafka(message: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a message, or None
    """The C functions take no subclass of a message, and no None where a message may be left out."""
    if isinstance(message, UndecryptableMessage):
        return (message.as_plain_message(),)
    return () if message is None else (message,)
