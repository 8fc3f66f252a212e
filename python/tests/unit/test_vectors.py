"""All vectors of spec/vectors, through the real parts. The MUST ids that each covers stand in the vector."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.exceptions import InvalidTag

from cipherlane import cipher, envelope
from cipherlane.cipher import EncryptingSession
from cipherlane.configuration import Writing
from cipherlane.decryptor import Decryptor, Record
from cipherlane.encryptor import Encryptor
from cipherlane.envelope import RECORD_KEY_UNAVAILABLE
from cipherlane.errors import CipherlaneError
from cipherlane.keys import DataKey, EncryptionGrant, PlaintextPolicy, UnencryptedMode
from cipherlane.keyservice import answers
from cipherlane.names import check_topic
from support import QUICK, MemorySource, by_id, error_code, vectors


def expect(vector: Any, outcome: CipherlaneError) -> None:
    assert {"layer": outcome.layer, "code": outcome.code} == vector["error"]


def unhex(text: Any) -> Any:
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("vector", vectors("key-id"), ids=by_id)
def test_key_id(vector: Any) -> None:
    """CL-ENV-020."""
    key = bytes.fromhex(vector["input"]["key"])
    if vector["result"] == "ok":
        assert cipher.key_id(key).hex() == vector["output"]["kid"]
        return
    with pytest.raises(CipherlaneError) as raised:
        DataKey(bytes(16), key)
    expect(vector, raised.value)


@pytest.mark.parametrize("vector", vectors("xaes"), ids=by_id)
def test_xaes(vector: Any) -> None:
    """CL-ENV-022."""
    given = {name: bytes.fromhex(text) for name, text in vector["input"].items()}
    gcm = cipher.derive(given["key"], given["nonce"][:12])
    nonce = given["nonce"][12:]
    if "plaintext" in given:
        assert gcm.encrypt(nonce, given["plaintext"], given["aad"]).hex() == vector["output"]["ciphertext"]
    elif vector["result"] == "ok":
        assert gcm.decrypt(nonce, given["ciphertext"], given["aad"]).hex() == vector["output"]["plaintext"]
    else:
        assert vector["error"]["code"] == "authentication-failed"
        with pytest.raises(InvalidTag):
            gcm.decrypt(nonce, given["ciphertext"], given["aad"])


@pytest.mark.parametrize("vector", vectors("encrypt"), ids=by_id)
def test_encrypt(vector: Any) -> None:
    """CL-ENV-021, CL-ENV-022, CL-ENV-043."""
    given = vector["input"]
    key = bytes.fromhex(given["key"])
    data_key = DataKey(cipher.key_id(key), key)
    header = envelope.header(given["flags"], data_key.kid)
    additional_data = envelope.additional_data(header, given["scope"], unhex(given.get("record_key")))
    session = EncryptingSession(data_key, prefix=bytes.fromhex(given["nonce_prefix"]), counter=given["counter"])
    written = session.encrypt(bytes.fromhex(given["plaintext"]), additional_data, header)
    assert written.hex() == vector["output"]["envelope"]


@pytest.mark.parametrize("vector", vectors("write"), ids=by_id)
def test_write(vector: Any) -> None:
    """CL-ENV-040, CL-ENV-041, CL-ENV-042."""
    given = vector["input"]
    source = MemorySource()
    source.add("t")
    if given["mode"] != "encrypt":
        source.topics["t"] = UnencryptedMode(given["mode"])
    value = unhex(given["value"])
    with Encryptor(source, QUICK, Writing(given["max_plaintext"])) as encryptor:
        if vector["result"] == "error":
            with pytest.raises(CipherlaneError) as raised:
                encryptor.encrypt("t", value)
            expect(vector, raised.value)
            return
        written = encryptor.encrypt("t", value)
    if vector["output"]["action"] == "unchanged":
        assert written == value
    else:
        assert written is not None
        assert envelope.parse(written).kid in source.keys
        assert len(written) == len(value) + envelope.OVERHEAD


@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
@pytest.mark.parametrize("vector", vectors("decrypt"), ids=by_id)
def test_decrypt(vector: Any, batch: bool) -> None:
    """CL-ENV-001 to CL-ENV-013, CL-ERR-002, in a call for one record and in a call for many."""
    given = vector["input"]
    source = MemorySource()
    source.plaintext = PlaintextPolicy(given["plaintext"])
    for kid, answer in given["keys"].items():
        error = answer.get("error")
        source.keys[bytes.fromhex(kid)] = (
            CipherlaneError(error_code(error), "refused") if error else (answer["scope"], bytes.fromhex(answer["key"]))
        )
    record_key = unhex(given["record_key"]) if "record_key" in given else RECORD_KEY_UNAVAILABLE
    with Decryptor(source, QUICK, max_plaintext=given["max_plaintext"]) as decryptor:
        outcome = decrypt(decryptor, given["topic"], unhex(given["value"]), record_key, batch=batch)
    if vector["result"] == "ok":
        assert outcome == unhex(vector["output"]["plaintext"])
        return
    assert isinstance(outcome, CipherlaneError)
    expect(vector, outcome)
    assert outcome.topic == given["topic"]


def decrypt(decryptor: Decryptor, topic: str, value: Any, record_key: Any, *, batch: bool) -> Any:
    if batch:
        return decryptor.decrypt_all([Record(topic, value, record_key)])[0]
    try:
        return decryptor.decrypt(topic, value, record_key)
    except CipherlaneError as error:
        return error


@pytest.mark.parametrize("vector", vectors("encryption-key-answer"), ids=by_id)
def test_encryption_key_answer(vector: Any) -> None:
    """CL-KEY-003, CL-KEY-004, CL-ERR-006."""
    given = vector["input"]
    try:
        answer = answers.encryption_key(given["status"], given["content_type"], given["body"].encode())
    except CipherlaneError as error:
        assert vector["result"] == "error", error
        expect(vector, error)
        return
    found: dict[str, Any] = {"refresh_in": answer.refresh_in, "expires_in": answer.expires_in}
    if isinstance(answer.grant, EncryptionGrant):
        found.update(mode="encrypt", scope=answer.grant.scope, kid=answer.grant.key.kid.hex())
    else:
        found.update(mode=answer.grant.value)
    assert found == vector.get("output")


@pytest.mark.parametrize("vector", vectors("decryption-keys-answer"), ids=by_id)
def test_decryption_keys_answer(vector: Any) -> None:
    """CL-KEY-003, CL-KEY-004, CL-ERR-006."""
    given = vector["input"]
    kids = [bytes.fromhex(kid) for kid in given["kids"]]
    try:
        answer = answers.decryption_keys(kids, given["status"], given["content_type"], given["body"].encode())
    except CipherlaneError as error:
        assert vector["result"] == "error", error
        expect(vector, error)
        return
    keys = {
        kid.hex(): {"error": leased.code} if isinstance(leased, CipherlaneError) else {"scope": leased.grant.scope}
        for kid, leased in answer.keys.items()
    }
    assert {"plaintext": answer.plaintext.grant.value, "keys": keys} == vector.get("output")


@pytest.mark.parametrize("vector", vectors("topic"), ids=by_id)
def test_topic(vector: Any) -> None:
    topic = vector["input"]["topic"]
    if vector["result"] == "ok":
        check_topic(topic)
        return
    with pytest.raises(CipherlaneError) as raised:
        check_topic(topic)
    expect(vector, raised.value)
