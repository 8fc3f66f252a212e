#!/usr/bin/env python3
"""The conformance driver of the Python SDK (spec/conformance.md): one JSON object a line in, one out."""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any, Callable, Optional, Union, cast

import confluent_kafka
from cipherlane import RECORD_KEY_UNAVAILABLE, CipherlaneError, Decryptor, Encryptor, backend
from cipherlane.cipher import decrypt, derive
from cipherlane.confluent import Consumer, Producer
from cipherlane.decryptor import Record
from cryptography.exceptions import InvalidTag

Json = dict[str, Any]
FEATURES = ["record-key", "compression", "transactions", "failure-actions"]


class DriverError(Exception):
    """A failure that has a code of its own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def from_hex(text: Optional[str]) -> Optional[bytes]:
    """Bytes as the protocol writes them; null stays null."""
    return None if text is None else bytes.fromhex(text)


def to_hex(value: Optional[bytes]) -> Optional[str]:
    """The inverse of from_hex."""
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
        """What the operation gives, or why it failed."""
        operation = self._operations.get(request["op"], _unsupported)
        try:
            return {"id": request["id"], "ok": operation(request)}
        except Exception as error:  # noqa: BLE001 - whatever it is, the runner judges it
            return {"id": request["id"], "error": failure(error)}

    def hello(self, _request: Json) -> Json:
        """Who the driver is and what it can do."""
        version = importlib.metadata.version("cipherlane")
        operations = list(self._operations)
        return {"protocol": 1, "name": "python", "version": version, "operations": operations, "features": FEATURES}

    def open(self, request: Json) -> Json:
        """Opens the SDK with settings, in place of what was open."""
        self.close()
        self._settings = request["settings"]
        self._encryptor = Encryptor.from_settings(self._settings)
        self._decryptor = Decryptor.from_settings(self._settings)
        return {}

    def close(self) -> None:
        """Closes the SDK."""
        for part in (self._encryptor, self._decryptor):
            if part is not None:
                part.close()

    def rotate(self, _request: Json) -> Json:
        """Forgets the keys, so that the next record asks for the current one."""
        return self.open({"settings": self._settings})

    def encrypt(self, request: Json) -> Json:
        """A value as it would go to the broker."""
        assert self._encryptor is not None
        value = from_hex(request["value"])
        return {"value": to_hex(self._encryptor.encrypt(request["topic"], value, *_record_key(request)))}

    def decrypt(self, request: Json) -> Json:
        """A value as it came from the broker."""
        assert self._decryptor is not None
        value = from_hex(request["value"])
        return {"value": to_hex(self._decryptor.decrypt(request["topic"], value, *_record_key(request)))}

    def decrypt_all(self, request: Json) -> Json:
        """Many values, each with an outcome of its own."""
        assert self._decryptor is not None
        records = [Record(request["topic"], from_hex(value), RECORD_KEY_UNAVAILABLE) for value in request["values"]]
        return {"results": [_outcome(outcome) for outcome in self._decryptor.decrypt_all(records)]}

    def xaes_decrypt(self, request: Json) -> Json:
        """XAES-256-GCM alone, as the SDK has it."""
        nonce = bytes.fromhex(request.get("nonce", ""))
        cipher = derive(bytes.fromhex(request["key"]), nonce[:12])
        additional, ciphertext = (from_hex(request.get(name, "")) or b"" for name in ("aad", "ciphertext"))
        try:
            return {"plaintext": cipher.decrypt(nonce[12:], ciphertext, additional).hex()}
        except InvalidTag:
            raise DriverError("authentication-failed", "xaes") from None

    def primitive(self, request: Json) -> Json:
        """A primitive that the SDK is made of."""
        key, nonce, additional, given = (
            from_hex(request.get(name, "")) or b"" for name in ("key", "nonce", "aad", "input")
        )
        if request["name"] == "aes-256-gcm-decrypt":
            return {"value": decrypt(backend.current.raw(key), bytes(12) + nonce, given, additional).hex()}
        if request["name"] == "xaes-256-gcm-encrypt":
            return {"value": derive(key, nonce[:12]).encrypt(nonce[12:], given, additional).hex()}
        raise DriverError("unsupported-operation", request["name"])

    def produce(self, request: Json) -> Json:
        """Writes records to Kafka, in a transaction where one is asked for."""
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
        producer.close()
        return {"results": results}

    def load(self, request: Json) -> Json:
        """Writes records at a rate while a file is there."""
        producer = Producer(_kafka(request["settings"], {}, drop=("isolation.level",)))
        prefix = bytes.fromhex(request["value"])
        results: list[Json] = []
        begun = time.monotonic()
        until, file = begun + request["timeout_ms"] / 1000, Path(request["while"])
        while time.monotonic() < until and file.exists():
            value = prefix + len(results).to_bytes(8, "big")
            result: Json = {"ms": int((time.monotonic() - begun) * 1000)}
            results.append(result)
            _send(producer, request["topic"], {"key": None, "value": value.hex(), "partition": 0}, result)
            producer.poll(0)
            time.sleep(1 / request["rate"])
        producer.flush(60)
        producer.close()
        return {"results": results}

    def soak_write(self, request: Json) -> Json:
        """Writes for a long time and counts."""
        _fill_table_of_strings()
        producer = Producer(_kafka(request["settings"], {}, drop=("isolation.level",)))
        prefix, topic, file = bytes.fromhex(request["value"]), request["topic"], Path(request["while"])
        numbers = {"acknowledged": 0, "refused": 0, "failed": 0}
        reasons: Counter[str] = Counter()

        def delivered(error: Optional[confluent_kafka.KafkaError], _message: confluent_kafka.Message) -> None:
            numbers["acknowledged" if error is None else "failed"] += 1

        written = tried = 0
        begun = time.monotonic()
        while tried % 100 or file.exists():
            tried += 1
            try:
                producer.produce(topic, prefix + written.to_bytes(8, "big"), None, 0, delivered)
                written += 1
            except (CipherlaneError, BufferError) as error:
                numbers["refused"] += 1
                reasons[failure(error)["code"]] += 1
            producer.poll(0)
            time.sleep(max(0.0, begun + tried / request["rate"] - time.monotonic()))
        producer.flush(60)
        producer.close()
        return {**numbers, "reasons": reasons}

    def soak_read(self, request: Json) -> Json:
        """Reads for a long time and counts."""
        _fill_table_of_strings()
        drop = ("acks", "compression.type", "transactional.id", "max.request.size")
        own = {"group.id": f"conformance-{uuid.uuid4().hex}", "enable.auto.commit": False}
        consumer = Consumer({**_kafka(request["settings"], {}, drop), **own})
        consumer.assign([confluent_kafka.TopicPartition(request["topic"], 0, confluent_kafka.OFFSET_BEGINNING)])
        prefix, file = bytes.fromhex(request["value"]), Path(request["while"])
        numbers = {"read": 0, "wrong": 0, "unreadable": 0}
        reasons: Counter[str] = Counter()
        while file.exists():
            for message in consumer.consume(500, 0.5):
                if message.error() is not None:
                    raise DriverError("driver", str(message.error()))
                expected = prefix + sum(numbers.values()).to_bytes(8, "big")
                try:
                    numbers["read" if message.value() == expected else "wrong"] += 1
                except CipherlaneError as error:
                    numbers["unreadable"] += 1
                    reasons[failure(error)["code"]] += 1
        consumer.close()
        return {**numbers, "reasons": reasons}

    def consume(self, request: Json) -> Json:
        """Reads records from Kafka."""
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


def _unsupported(request: Json) -> Json:
    raise DriverError("unsupported-operation", request["op"])


def _fill_table_of_strings() -> None:
    """Lets CPython's table of interned strings grow now: else it does, once, by 0.5 MiB, when strings that came and went
    have filled it, which takes half an hour."""
    for number in range(1 << 16):
        sys.intern(f"interned {number}")


def _record_key(request: Json) -> tuple[Optional[bytes], ...]:
    return (from_hex(request["record_key"]),) if "record_key" in request else ()


def _outcome(outcome: Union[bytes, CipherlaneError, None]) -> Json:
    if isinstance(outcome, CipherlaneError):
        return {"error": failure(outcome)}
    return {"value": to_hex(outcome)}


def _kafka(settings: Json, renamed: dict[str, str], drop: tuple[str, ...]) -> Json:
    return {renamed.get(name, name): value for name, value in settings.items() if name not in drop}


def _send(producer: Producer, topic: str, record: Json, result: Json) -> None:
    def delivered(error: Optional[confluent_kafka.KafkaError], message: confluent_kafka.Message) -> None:
        if error is not None:
            result["error"] = {"code": "driver", "message": str(error)}
        else:
            result["offset"] = message.offset()

    headers = [(name, from_hex(value)) for name, value in record.get("headers") or []]
    key, value = from_hex(record["key"]), from_hex(record["value"])

    def tried() -> bool:
        try:
            producer.produce(topic, value, key, record["partition"], delivered, headers=headers)
        except BufferError:
            producer.poll(0.1)
            return False
        return True

    try:
        while not tried():
            pass
    except Exception as error:  # noqa: BLE001 - each record has an outcome of its own
        result["error"] = failure(error)


def _read(consumer: Consumer, request: Json) -> list[Json]:
    topic = request["topic"]
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, p, confluent_kafka.OFFSET_BEGINNING) for p in partitions])
    records: list[Json] = []
    until = time.monotonic() + request["timeout_ms"] / 1000
    while len(records) < request["count"] and time.monotonic() < until:
        records += [_record(message) for message in consumer.consume(500, 0.5)]
    return records


def _record(message: confluent_kafka.Message) -> Json:
    if message.error() is not None:
        raise DriverError("driver", str(message.error()))
    headers = cast("list[tuple[str, Optional[bytes]]]", message.headers() or [])
    record: Json = {
        "partition": message.partition(),
        "offset": message.offset(),
        "key": to_hex(message.key()),
        "headers": [[name, to_hex(value)] for name, value in headers],
    }
    try:
        record["value"] = to_hex(message.value())
    except CipherlaneError as error:
        record["error"] = failure(error)
    return record


def main() -> None:
    """Answers until standard input ends."""
    driver = Driver()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(driver.answer(json.loads(line))) + "\n")
        sys.stdout.flush()
    driver.close()


if __name__ == "__main__":
    main()
