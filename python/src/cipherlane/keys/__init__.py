"""Data keys and leases: cache, single flight, renewal ahead of time, wipe at the end. No HTTP, no Kafka."""

from cipherlane.keys.data_key import DataKey
from cipherlane.keys.entry import Name
from cipherlane.keys.keyring import DecryptionKeys, EncryptionKeys
from cipherlane.keys.settings import KeySettings
from cipherlane.keys.source import (
    MAX_KIDS,
    DecryptionAnswer,
    DecryptionGrant,
    EncryptionAnswer,
    EncryptionGrant,
    KeySource,
    Leased,
    PlaintextPolicy,
    UnencryptedMode,
    UsageReport,
)

__all__ = [
    "MAX_KIDS",
    "DataKey",
    "DecryptionAnswer",
    "DecryptionGrant",
    "DecryptionKeys",
    "EncryptionAnswer",
    "EncryptionGrant",
    "EncryptionKeys",
    "KeySettings",
    "KeySource",
    "Leased",
    "Name",
    "PlaintextPolicy",
    "UnencryptedMode",
    "UsageReport",
]
