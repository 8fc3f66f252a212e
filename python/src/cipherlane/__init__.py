"""Cipherlane encrypts Apache Kafka record values in the client.

``cipherlane.confluent`` has the drop-in client for confluent-kafka; :class:`Encryptor` and :class:`Decryptor` serve
any other. The protocol is defined in the folder ``spec`` of the project.
"""

from cipherlane.decryptor import Decryptor, Record
from cipherlane.encryptor import Encryptor
from cipherlane.envelope import RECORD_KEY_UNAVAILABLE
from cipherlane.errors import CipherlaneError, ConfigurationError, DecryptionError, EncryptionError

__version__ = "0.1.0"

__all__ = [
    "RECORD_KEY_UNAVAILABLE",
    "CipherlaneError",
    "ConfigurationError",
    "DecryptionError",
    "Decryptor",
    "EncryptionError",
    "Encryptor",
    "Record",
]
