"""Drop-in clients, serializer and deserializer for confluent-kafka. Knows nothing of key bytes, ciphers and HTTP.

The asyncio clients are in :mod:`cipherlane.confluent.aio`, the client for topics and groups in :mod:`.admin`.
"""

from cipherlane.confluent.consumer import Consumer
from cipherlane.confluent.deserializer import DecryptingDeserializer
from cipherlane.confluent.message import UndecryptableMessage
from cipherlane.confluent.producer import Producer
from cipherlane.confluent.serializer import EncryptingSerializer
from cipherlane.confluent.serializing import DeserializingConsumer, SerializingProducer
from cipherlane.errors import CipherlaneError, ConfigurationError, DecryptionError, EncryptionError

__all__ = [
    "CipherlaneError",
    "ConfigurationError",
    "Consumer",
    "DecryptingDeserializer",
    "DecryptionError",
    "DeserializingConsumer",
    "EncryptingSerializer",
    "EncryptionError",
    "Producer",
    "SerializingProducer",
    "UndecryptableMessage",
]
