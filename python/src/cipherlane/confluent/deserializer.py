"""A value deserializer that decrypts and then calls the application's own [CL-KAF-013]."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional

from confluent_kafka.serialization import Deserializer, MessageField, SerializationContext

from cipherlane import configuration
from cipherlane.configuration import FAILURE_ACTION, Configuration, FailureAction
from cipherlane.decryptor import Decryptor
from cipherlane.errors import ConfigurationError

Inner = Callable[[Optional[bytes], Optional[SerializationContext]], Any]


class DecryptingDeserializer(Deserializer):
    """For ``value.deserializer`` of a ``DeserializingConsumer``, or called directly.

    It sees neither partition and offset, which its errors therefore do not name (the ``ValueDeserializationError``
    around them has the message), nor the record key: envelopes that bind it are refused with
    ``record-key-unavailable``. Safe for use by threads if ``inner`` is.

    Args:
        inner: the deserializer of the application's value; None gives the bytes
        conf: settings; those that do not start with ``cipherlane.`` are left alone

    Raises:
        ConfigurationError: a ``cipherlane.`` setting is missing, unknown, malformed or out of range; or the failure
            action is not ``fail``: a deserializer can neither leave a record out nor mark it [CL-KAF-026]
    """

    def __init__(self, inner: Optional[Inner], conf: Mapping[str, Any]) -> None:
        if inner is not None and not callable(inner):
            raise ConfigurationError("DecryptingDeserializer: the inner deserializer is not callable")
        self._inner = inner
        settings = Configuration.from_settings(configuration.split(conf)[0])
        if settings.failure_action is not FailureAction.FAIL:
            raise ConfigurationError(f"{FAILURE_ACTION}: a deserializer can only fail; use the drop-in Consumer")
        self._decryptor = Decryptor.from_configuration(settings)

    def __call__(self, value: Optional[bytes], ctx: Optional[SerializationContext] = None) -> Any:  # noqa: ANN401
        """Decrypts a value and hands the plaintext to the inner deserializer.

        Raises:
            DecryptionError: the value cannot be decrypted
            ConfigurationError: used for record keys, which are never encrypted [CL-KAF-006], or without a topic
        """
        if ctx is None or ctx.topic is None:
            raise ConfigurationError("DecryptingDeserializer: needs a SerializationContext with the topic")
        if ctx.field != MessageField.VALUE:
            raise ConfigurationError("DecryptingDeserializer: record keys are never encrypted; use it for values")
        plaintext = self._decryptor.decrypt(ctx.topic, value)
        return plaintext if self._inner is None else self._inner(plaintext, ctx)

    def close(self) -> None:
        """Wipes the keys and closes connections."""
        self._decryptor.close()
