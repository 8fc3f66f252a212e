"""A value serializer that calls the application's own and then encrypts."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

from confluent_kafka.serialization import MessageField, SerializationContext, Serializer

from cipherlane import configuration
from cipherlane.encryptor import Encryptor
from cipherlane.errors import ConfigurationError

Inner = Callable[[Any, Optional[SerializationContext]], Optional[bytes]]


class EncryptingSerializer(Serializer):
    """For ``value.serializer`` of a ``SerializingProducer``, or called directly.

    It does not see the record key: topics that bind it are refused with ``record-key-unavailable`` [CL-KAF-031].
    Delivery callbacks see the envelope; those of the drop-in ``SerializingProducer`` see the value. Safe for use by
    threads if ``inner`` is.

    Args:
        inner: the serializer of the application's value; None takes bytes
        conf: settings; those that do not start with ``cipherlane.`` are left alone

    Raises:
        ConfigurationError: a ``cipherlane.`` setting is missing, unknown, malformed or out of range
    """

    def __init__(self, inner: Optional[Inner], conf: Mapping[str, Any]) -> None:
        if inner is not None and not callable(inner):
            raise ConfigurationError("EncryptingSerializer: the inner serializer is not callable")
        self._inner = inner
        self._encryptor = Encryptor.from_settings(configuration.split(conf)[0])

    def __call__(self, obj: Any, ctx: Optional[SerializationContext] = None) -> Optional[bytes]:  # noqa: ANN401
        """Has the inner serializer make bytes of a value and encrypts them.

        Raises:
            EncryptionError: the value cannot be encrypted; nothing must be sent
            ConfigurationError: used for record keys, which are never encrypted [CL-KAF-006], or without a topic
        """
        if ctx is None or ctx.topic is None:
            raise ConfigurationError("EncryptingSerializer: needs a SerializationContext with the topic")
        if ctx.field != MessageField.VALUE:
            raise ConfigurationError("EncryptingSerializer: record keys are never encrypted; use it for values")
        return self._encryptor.encrypt(ctx.topic, obj if self._inner is None else self._inner(obj, ctx))

    def close(self) -> None:
        """Wipes the keys and closes connections."""
        self._encryptor.close()
