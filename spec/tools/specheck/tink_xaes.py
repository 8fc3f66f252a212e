"""XAES-256-GCM by Tink (X-AES-GCM, RAW prefix, 12-byte salt): the judge of what vectorgen/crypto.py makes."""

import tink
from tink import aead, secret_key_access
from tink.proto import tink_pb2, x_aes_gcm_pb2

from specheck.refusal import Refused

_TYPE_URL = "type.googleapis.com/google.crypto.tink.XAesGcmKey"
aead.register()


def tink_decrypt(key: bytes, nonce_ciphertext_tag: bytes, aad: bytes) -> bytes:
    """The plaintext, or Refused("authentication-failed")."""
    try:
        return bytes(_primitive(key).decrypt(nonce_ciphertext_tag, aad))
    except tink.TinkError as error:
        raise Refused("authentication-failed") from error


def _primitive(key: bytes) -> aead.Aead:
    xaes = x_aes_gcm_pb2.XAesGcmKey(key_value=key, params=x_aes_gcm_pb2.XAesGcmParams(salt_size=12))
    data = tink_pb2.KeyData(
        type_url=_TYPE_URL, value=xaes.SerializeToString(), key_material_type=tink_pb2.KeyData.SYMMETRIC
    )
    entry = tink_pb2.Keyset.Key(key_data=data, status=tink_pb2.ENABLED, key_id=1, output_prefix_type=tink_pb2.RAW)
    keyset = tink_pb2.Keyset(primary_key_id=1, key=[entry])
    handle = tink.proto_keyset_format.parse(keyset.SerializeToString(), secret_key_access.TOKEN)
    return handle.primitive(aead.Aead)
