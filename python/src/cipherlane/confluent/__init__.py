"""Drop-in client and deserializer for confluent-kafka. Knows nothing of key bytes, ciphers and HTTP."""

from cipherlane.confluent.consumer import Consumer
from cipherlane.confluent.deserializer import DecryptingDeserializer
from cipherlane.confluent.message import UndecryptableMessage
from cipherlane.errors import CipherlaneError, ConfigurationError, DecryptionError

__all__ = [
    "CipherlaneError",
    "ConfigurationError",
    "Consumer",
    "DecryptingDeserializer",
    "DecryptionError",
    "UndecryptableMessage",
]
