"""The conformance driver of the Python SDK (spec/conformance.md): one JSON object a line in, one out."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import time
import uuid
from typing import Any, Callable, Optional

import confluent_kafka

from cipherlane import CipherlaneError, Decryptor, Encryptor
from cipherlane.cipher import decrypt, derive
from cipherlane.confluent import Consumer, Producer
from cipherlane.decryptor import RECORD_KEY_UNAVAILABLE, Record
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Json = dict[str, Any]
FEATURES = ["record-key", "compression", "transactions", "failure-actions"]


class DriverError(Exception):
    """A failure that has a code of its own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def from_hex(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else bytes.fromhex(text)


def to_hex(value: Optional[bytes]) -> Optional[str]:
    return None if value is None else value.hex()


def failure(error: Exception) -> Json:
    """The error as the protocol has it; what is none of the SDK's has the code of the driver."""
    code = getattr(error, "code", None)
    name = code if isinstance(error, (CipherlaneError, DriverError)) and isinstance(code, str) else "driver"
    return {"code": name, "message": str(error) or type(error).__name__}


class Driver:
    """Does what the runner says. Used by one thread."""

    def __init__(self) -> None:
        self._settings: Json = {}
        self._encryptor: Optional[Encryptor] = None
        self._decryptor: Optional[Decryptor] = None
        self._operations: dict[str, Callable[[Json], Json]] = {
            "hello": self.hello,
            "open": self.open,
            "encrypt": self.encrypt,
            "decrypt": self.decrypt,
            "decrypt-all": self.decrypt_all,
            "xaes-decrypt": self.xaes_decrypt,
            "primitive": self.primitive,
            "produce": self.produce,
            "consume": self.consume,
            "load": self.load,
            "soak-write": self.soak_write,
            "soak-read": self.soak_read,
            "rotate": self.rotate,
        }

    def answer(self, request: Json) -> Json:
        operation = self._operations.get(request["op"])
        try:
            if operation is None:
                raise DriverError("unsupported-operation", request["op"])
            return {"id": request["id"], "ok": operation(request)}
        except Exception as error:  # noqa: BLE001: whatever it is, the runner judges it
            return {"id": request["id"], "error": failure(error)}

    def hello(self, _request: Json) -> Json:
        version = importlib.metadata.version("cipherlane")
        operations = list(self._operations)
        return {"protocol": 1, "name": "python", "version": version, "operations": operations, "features": FEATURES}

    def open(self, request: Json) -> Json:
        self.close()
        self._settings = request["settings"]
        self._encryptor = Encryptor.from_settings(self._settings)
        self._decryptor = Decryptor.from_settings(self._settings)
        return {}

    def close(self) -> None:
        for part in (self._encryptor, self._decryptor):
            if part is not None:
                part.close()

    def rotate(self, _request: Json) -> Json:
        return self.open({"settings": self._settings})

    def encrypt(self, request: Json) -> Json:
        assert self._encryptor is not None
        value = from_hex(request["value"])
        return {"value": to_hex(self._encryptor.encrypt(request["topic"], value, *_record_key(request)))}

    def decrypt(self, request: Json) -> Json:
        assert self._decryptor is not None
        value = from_hex(request["value"])
        return {"value": to_hex(self._decryptor.decrypt(request["topic"], value, *_record_key(request)))}

    def decrypt_all(self, request: Json) -> Json:
        assert self._decryptor is not None
        records = [Record(request["topic"], from_hex(value), RECORD_KEY_UNAVAILABLE) for value in request["values"]]
        return {"results": [_outcome(outcome) for outcome in self._decryptor.decrypt_all(records)]}

    def xaes_decrypt(self, request: Json) -> Json:
        nonce = bytes.fromhex(request.get("nonce", ""))
        cipher = derive(bytes.fromhex(request["key"]), nonce[:12])
        additional, ciphertext = (from_hex(request.get(name, "")) or b"" for name in ("aad", "ciphertext"))
        try:
            return {"plaintext": cipher.decrypt(nonce[12:], ciphertext, additional).hex()}
        except InvalidTag:
            raise DriverError("authentication-failed", "xaes") from None

    def primitive(self, request: Json) -> Json:
        key, nonce, additional, given = (
            from_hex(request.get(name, "")) or b"" for name in ("key", "nonce", "aad", "input")
        )
        if request["name"] == "aes-256-gcm-decrypt":
            return {"value": decrypt(AESGCM(key), bytes(12) + nonce, given, additional).hex()}
        if request["name"] == "xaes-256-gcm-encrypt":
            return {"value": derive(key, nonce[:12]).encrypt(nonce[12:], given, additional).hex()}
        raise DriverError("unsupported-operation", request["name"])

    def produce(self, request: Json) -> Json:
        settings = _kafka(request["settings"], {"max.request.size": "message.max.bytes"}, drop=("isolation.level",))
        producer = Producer(settings)
        results: list[Json] = [{} for _ in request["records"]]
        transaction = request.get("transaction")
        if transaction:
            producer.init_transactions(30)
            producer.begin_transaction()
        for record, result in zip(request["records"], results):
            _send(producer, request["topic"], record, result)
        producer.flush(60)
        if transaction:
            producer.commit_transaction(30) if transaction == "commit" else producer.abort_transaction(30)
        _close(producer)
        return {"results": results}

    def load(self, request: Json) -> Json:
        producer = Producer(_kafka(request["settings"], {}, drop=("isolation.level",)))
        prefix = bytes.fromhex(request["value"])
        results: list[Json] = []
        begun = time.monotonic()
        until, file = begun + request["timeout_ms"] / 1000, request["while"]
        while time.monotonic() < until and os.path.exists(file):
            value = prefix + len(results).to_bytes(8, "big")
            result: Json = {"ms": int((time.monotonic() - begun) * 1000)}
            results.append(result)
            _send(producer, request["topic"], {"key": None, "value": value.hex(), "partition": 0}, result)
            producer.poll(0)
            time.sleep(1 / request["rate"])
        producer.flush(60)
        _close(producer)
        return {"results": results}

    def soak_write(self, request: Json) -> Json:
        producer = Producer(_kafka(request["settings"], {}, drop=("isolation.level",)))
        prefix, topic, file = bytes.fromhex(request["value"]), request["topic"], request["while"]
        numbers = {"acknowledged": 0, "refused": 0, "failed": 0}

        def delivered(error: Any, _message: Any) -> None:
            numbers["acknowledged" if error is None else "failed"] += 1

        written = tried = 0
        begun = time.monotonic()
        while tried % 100 or os.path.exists(file):
            tried += 1
            try:
                producer.produce(topic, prefix + written.to_bytes(8, "big"), None, 0, delivered)
                written += 1
            except (CipherlaneError, BufferError):
                numbers["refused"] += 1
            producer.poll(0)
            time.sleep(max(0.0, begun + tried / request["rate"] - time.monotonic()))
        producer.flush(60)
        _close(producer)
        return numbers

    def soak_read(self, request: Json) -> Json:
        drop = ("acks", "compression.type", "transactional.id", "max.request.size")
        own = {"group.id": f"conformance-{uuid.uuid4().hex}", "enable.auto.commit": False}
        consumer = Consumer({**_kafka(request["settings"], {}, drop), **own})
        consumer.assign([confluent_kafka.TopicPartition(request["topic"], 0, confluent_kafka.OFFSET_BEGINNING)])
        prefix = bytes.fromhex(request["value"])
        numbers = {"read": 0, "wrong": 0, "unreadable": 0}
        while os.path.exists(request["while"]):
            for message in consumer.consume(500, 0.5):
                if message.error() is not None:
                    raise DriverError("driver", str(message.error()))
                expected = prefix + sum(numbers.values()).to_bytes(8, "big")
                try:
                    numbers["read" if message.value() == expected else "wrong"] += 1
                except CipherlaneError:
                    numbers["unreadable"] += 1
        consumer.close()
        return numbers

    def consume(self, request: Json) -> Json:
        own = {
            "group.id": f"conformance-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 9_000_000,
        }
        drop = ("acks", "compression.type", "transactional.id", "max.request.size")
        consumer = Consumer({**_kafka(request["settings"], {}, drop), **own})
        try:
            return {"records": _read(consumer, request)}
        finally:
            consumer.close()


def _record_key(request: Json) -> tuple[Optional[bytes], ...]:
    return (from_hex(request["record_key"]),) if "record_key" in request else ()


def _outcome(outcome: Any) -> Json:
    if isinstance(outcome, CipherlaneError):
        return {"error": failure(outcome)}
    return {"value": to_hex(outcome)}


def _kafka(settings: Json, renamed: dict[str, str], drop: tuple[str, ...]) -> Json:
    return {renamed.get(name, name): value for name, value in settings.items() if name not in drop}


def _send(producer: Any, topic: str, record: Json, result: Json) -> None:
    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            result["error"] = {"code": "driver", "message": str(error)}
        else:
            result["offset"] = message.offset()

    headers = [(name, from_hex(value)) for name, value in record.get("headers") or []]
    key, value = from_hex(record["key"]), from_hex(record["value"])
    try:
        while True:
            try:
                producer.produce(topic, value, key, record["partition"], delivered, headers=headers)
                return
            except BufferError:
                producer.poll(0.1)
    except Exception as error:  # noqa: BLE001: each record has an outcome of its own
        result["error"] = failure(error)


def _close(producer: Any) -> None:
    close = getattr(producer, "close", None)
    if close is not None:
        close()


def _read(consumer: Any, request: Json) -> list[Json]:
    topic = request["topic"]
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, p, confluent_kafka.OFFSET_BEGINNING) for p in partitions])
    records: list[Json] = []
    until = time.monotonic() + request["timeout_ms"] / 1000
    while len(records) < request["count"] and time.monotonic() < until:
        records += [_record(message) for message in consumer.consume(500, 0.5)]
    return records


def _record(message: Any) -> Json:
    if message.error() is not None:
        raise DriverError("driver", str(message.error()))
    headers = [[name, to_hex(value)] for name, value in message.headers() or []]
    record = {
        "partition": message.partition(),
        "offset": message.offset(),
        "key": to_hex(message.key()),
        "headers": headers,
    }
    try:
        record["value"] = to_hex(message.value())
    except CipherlaneError as error:
        record["error"] = failure(error)
    return record


def main() -> None:
    driver = Driver()
    for line in sys.stdin:
        print(json.dumps(driver.answer(json.loads(line))), flush=True)
    driver.close()


if __name__ == "__main__":
    main()
