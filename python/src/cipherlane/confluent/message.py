"""The message that stands in the place of one that cannot be decrypted [CL-KAF-010]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import confluent_kafka

if TYPE_CHECKING:
    from cipherlane.errors import DecryptionError


class UndecryptableMessage(confluent_kafka.Message):
    """A consumed message whose ``value()`` raises; the rest is as it was read [CL-KAF-012].

    It goes into ``commit`` and ``store_offsets`` of the drop-in consumer, and into a pickle. It is never falsy and
    holds no value, so that nothing passes it over or takes the envelope for the plaintext.

    Attributes:
        decryption_error: what ``value()`` raises
    """

    decryption_error: DecryptionError

    def __init__(self, message: confluent_kafka.Message[Any, Any], error: DecryptionError) -> None:
        super().__init__(**_fields(message))
        self.decryption_error = error
        self._size = len(message)

    def value(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Raises the ``DecryptionError`` that names topic, partition, offset, kid and code."""
        raise self.decryption_error.with_traceback(None)

    def deserialized_value(self) -> NoReturn:
        """Raises, as :meth:`value`."""
        self.value()

    def as_plain_message(self) -> confluent_kafka.Message[Any, Any]:
        """Its place, key and headers without a value, for functions of librdkafka that take no subclass."""
        return confluent_kafka.Message(**_fields(self))

    def __len__(self) -> int:
        """Bytes of the value as it was read."""
        return self._size

    def __bool__(self) -> bool:
        """True: ``if not message`` must not pass over a record that was not read."""
        return True

    def __repr__(self) -> str:
        """The error's text."""
        return f"UndecryptableMessage({self.decryption_error})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles without the value, and stays undecryptable."""
        return _restore, (_fields(self), self._size, self.decryption_error)


def _fields(message: confluent_kafka.Message[Any, Any]) -> dict[str, Any]:
    """What the constructor of a message takes; it takes no None where a number is meant."""
    fields = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "key": message.key(),
        "headers": message.headers(),
        "timestamp": message.timestamp(),
        "latency": message.latency(),
        "leader_epoch": message.leader_epoch(),
        "delivery_count": message.delivery_count(),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _restore(fields: dict[str, Any], size: int, error: DecryptionError) -> UndecryptableMessage:
    message = UndecryptableMessage(confluent_kafka.Message(**fields), error)
    message._size = size  # noqa: SLF001 - the size of the value, which is not carried along
    return message
