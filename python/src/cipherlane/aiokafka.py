"""Adapter for aiokafka: a producer that encrypts and a consumer that decrypts, in the place of aiokafka's own.

Needs the extra ``aiokafka``. Settings of aiokafka are keyword arguments, as always; Cipherlane's are a dictionary.
What may wait for a key waits in a thread, not in the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from typing import Any, AsyncIterator, Callable, Mapping, NoReturn, Optional

import aiokafka
from aiokafka.errors import IllegalStateError
from aiokafka.structs import ConsumerRecord, TopicPartition

from cipherlane.configuration import FAILURE_ACTION, PEER_IDS, Configuration, FailureAction
from cipherlane.counts import Counts, Numbers
from cipherlane.decryptor import Decryptor, Record
from cipherlane.encryptor import Encryptor
from cipherlane.errors import ConfigurationError, DecryptionError
from cipherlane.failure import applies, check_letter_topic, letter_headers, marked, not_lettered, unmarked
from cipherlane.keyservice import identity

# What a client needs to reach the brokers and to be let in.
_CONNECTION = ("bootstrap_servers", "client_id", "security_protocol", "ssl_context", "sasl_", "api_version")

Settings = Mapping[str, Any]
Serializer = Optional[Callable[[Any], Any]]


class AIOKafkaProducer(aiokafka.AIOKafkaProducer):  # type: ignore[misc] # aiokafka has no types
    """``aiokafka.AIOKafkaProducer`` whose values are encrypted. Serializers run first, record keys stay as they are.

    Args:
        cipherlane: settings, all of which start with ``cipherlane.``
        key_serializer: as aiokafka
        value_serializer: as aiokafka
        **kwargs: as aiokafka

    Raises:
        ConfigurationError: a setting is missing, unknown, malformed or out of range
    """

    def __init__(
        self,
        *,
        cipherlane: Settings,
        key_serializer: Serializer = None,
        value_serializer: Serializer = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        self._of_key, self._of_value = key_serializer, value_serializer
        settings = Configuration.from_settings(cipherlane)
        self._identity = _identity_for_kafka(settings, kwargs)
        self._encryptor = Encryptor.from_configuration(settings)
        super().__init__(**kwargs)

    async def start(self) -> None:
        """As ``AIOKafkaProducer.start``; waits for the first certificate, if Kafka is to be shown it."""
        await _first_certificate(self._identity)
        await super().start()

    async def send(
        self,
        topic: str,
        value: Any = None,  # noqa: ANN401
        key: Any = None,  # noqa: ANN401
        partition: Optional[int] = None,
        timestamp_ms: Optional[int] = None,
        headers: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """As ``AIOKafkaProducer.send``; the value is encrypted.

        Raises:
            EncryptionError: nothing was sent [CL-KAF-001]
        """
        key = key if self._of_key is None else self._of_key(key)
        value = value if self._of_value is None else self._of_value(value)
        encrypted = self._encryptor.encrypt_at_once(topic, value)
        if encrypted is None:
            encrypted = await asyncio.to_thread(self._encryptor.encrypt, topic, value, key)
        return await super().send(topic, encrypted, key, partition, timestamp_ms, headers)

    def create_batch(self) -> NoReturn:
        """Refused: a batch is filled before its topic is known, and so could not be encrypted."""
        raise NotImplementedError("create_batch: use send(); aiokafka collects batches by itself")

    async def send_batch(self, *_args: object, **_kwargs: object) -> NoReturn:
        """Refused, as :meth:`create_batch`: what is in a batch was not encrypted."""
        raise NotImplementedError("send_batch: use send(); aiokafka collects batches by itself")

    def cipherlane_numbers(self) -> Numbers:
        """What this client reports of itself (spec/kafka.md, "Numbers")."""
        return self._encryptor.numbers()

    async def stop(self) -> None:
        """Sends what is queued, then wipes the keys and closes the connections to the key service."""
        try:
            await super().stop()
        finally:
            await asyncio.to_thread(self._encryptor.close)


class AIOKafkaConsumer(aiokafka.AIOKafkaConsumer):  # type: ignore[misc]
    """``aiokafka.AIOKafkaConsumer`` whose values are decrypted; deserializers run after that.

    With the failure action ``fail`` a record that cannot be decrypted is an :class:`UndecryptableRecord`: its ``value``
    raises. The other actions are those of the specification (spec/kafka.md); dead letters go by this consumer's own
    connection.

    Args:
        *topics: as aiokafka
        cipherlane: settings, all of which start with ``cipherlane.``
        key_deserializer: as aiokafka
        value_deserializer: as aiokafka
        **kwargs: as aiokafka

    Raises:
        ConfigurationError: a setting is missing, unknown, malformed or out of range; or ``mark`` with a value
            deserializer, which cannot read ciphertext [CL-KAF-026]
    """

    def __init__(
        self,
        *topics: str,
        cipherlane: Settings,
        key_deserializer: Serializer = None,
        value_deserializer: Serializer = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        settings = Configuration.from_settings(cipherlane)
        self._action = settings.failure_action
        if self._action is FailureAction.MARK and value_deserializer is not None:
            raise ConfigurationError(f"{FAILURE_ACTION}: mark is not for consumers that deserialize values")
        self._letter_topic_of = settings.dead_letter_topic_of
        self._deadline = settings.keys.deadline
        self._identity = _identity_for_kafka(settings, kwargs)
        self._connection = {name: value for name, value in kwargs.items() if name.startswith(_CONNECTION)}
        self._letters: Any = None
        self._counts = Counts()
        self._of_key, self._of_value = key_deserializer, value_deserializer
        self._decryptor = Decryptor.from_configuration(settings)
        super().__init__(*topics, **kwargs)

    async def start(self) -> None:
        """As ``AIOKafkaConsumer.start``; waits for the first certificate, if Kafka is to be shown it."""
        await _first_certificate(self._identity)
        await super().start()

    async def getone(self, *partitions: Any) -> Any:  # noqa: ANN401
        """As ``AIOKafkaConsumer.getone``; the value is decrypted."""
        while True:
            record = await super().getone(*partitions)
            async with self._until_shown([record]):
                shown = await self._decrypted([record])
            if shown:
                return shown[0]

    async def getmany(self, *partitions: Any, **kwargs: Any) -> dict[Any, list[Any]]:  # noqa: ANN401
        """As ``AIOKafkaConsumer.getmany``; the keys of each partition's records are asked for together."""
        found = await super().getmany(*partitions, **kwargs)
        async with self._until_shown([record for records in found.values() for record in records]):
            shown = {partition: await self._decrypted(records) for partition, records in found.items()}
        return {partition: records for partition, records in shown.items() if records}

    def cipherlane_numbers(self) -> Numbers:
        """What this client reports of itself (spec/kafka.md, "Numbers")."""
        actions = {"skipped_total": 0, "dead_lettered_total": 0, "marked_total": 0, **self._counts.all()}
        return {**actions, **self._decryptor.numbers()}

    async def stop(self) -> None:
        """Leaves the group, then wipes the keys and closes the connections to the key service."""
        try:
            await super().stop()
            if self._letters is not None:
                await self._letters.stop()
        finally:
            self._decryptor.close()

    @contextlib.asynccontextmanager
    async def _until_shown(self, records: list[Any]) -> AsyncIterator[None]:
        """Who is cancelled meanwhile, or whose deserializer raises, loses nothing: the next call takes the records."""
        try:
            yield
        except BaseException:
            for record in reversed(records):
                self._give_back(TopicPartition(record.topic, record.partition), record.offset)
            raise

    def _give_back(self, partition: TopicPartition, offset: int) -> None:
        position = self._position_now(partition)
        if position is not None and position > offset:
            self.seek(partition, offset)

    def _position_now(self, partition: TopicPartition) -> Optional[int]:
        """None where it would have to be waited for: then what was taken is not what comes next anyhow."""
        asking = self.position(partition)
        try:
            asking.send(None)
        except StopIteration as known:
            found: int = known.value
            return found
        except IllegalStateError:
            return None
        asking.close()
        return None

    async def _decrypted(self, records: list[Any]) -> list[Any]:
        outcomes: list[Any] = [self._decryptor.decrypt_at_once(record.topic, record.value) for record in records]
        rest = [index for index, outcome in enumerate(outcomes) if outcome is None]
        if rest:
            asked = [_record(records[index]) for index in rest]
            for index, outcome in zip(rest, await asyncio.to_thread(self._decryptor.decrypt_all, asked)):
                outcomes[index] = outcome
        shown = [await self._shown(record, outcome) for record, outcome in zip(records, outcomes)]
        return [record for record in shown if record is not None]

    async def _shown(self, record: Any, outcome: Any) -> Any:  # noqa: ANN401
        others = unmarked(record.headers) if self._action is FailureAction.MARK else None
        if others is not None:
            record = dataclasses.replace(record, headers=tuple(others))
        key = record.key if self._of_key is None else self._of_key(record.key)
        if isinstance(outcome, DecryptionError):
            return await self._met(record, key, outcome)
        value = outcome if self._of_value is None else self._of_value(outcome)
        return dataclasses.replace(record, key=key, value=value)

    async def _met(self, record: Any, key: Any, error: DecryptionError) -> Any:  # noqa: ANN401
        """What the application gets for a record that cannot be decrypted, or None."""
        if self._action is FailureAction.FAIL or not applies(self._action, error):
            return _undecryptable(record, key, error)
        if self._action is FailureAction.MARK:
            self._counts.add("marked_total")
            return dataclasses.replace(record, key=key, headers=tuple(marked(record.headers, error)))
        if self._action is FailureAction.DEAD_LETTER:
            try:
                await asyncio.wait_for(self._send_letter(record, error), self._deadline)
            except Exception as failure:  # noqa: BLE001 - whatever it is, the record is met as under fail [CL-KAF-023]
                reason = str(failure) or type(failure).__name__
                return _undecryptable(record, key, not_lettered(error, reason))
            self._counts.add("dead_lettered_total")
            return None
        self._counts.add("skipped_total")
        return None

    async def _send_letter(self, record: Any, error: DecryptionError) -> None:  # noqa: ANN401
        """Returns when the record, as it was read, is acknowledged by all replicas [CL-KAF-022]."""
        topic = self._letter_topic_of(record.topic)
        check_letter_topic(record.topic, topic)
        if self._letters is None:
            letters = aiokafka.AIOKafkaProducer(**self._connection, acks="all")
            await letters.start()
            self._letters = letters
        headers = letter_headers(record.headers, error)
        await self._letters.send_and_wait(topic, record.value, record.key, headers=headers)


class UndecryptableRecord(ConsumerRecord):  # type: ignore[misc]
    """A record that cannot be decrypted: ``value`` raises; the rest is as it was read [CL-KAF-010] [CL-KAF-012].

    Attributes:
        decryption_error: what ``value`` raises
    """

    decryption_error: DecryptionError

    @property
    def value(self) -> NoReturn:
        """Raises the ``DecryptionError`` that names topic, partition, offset, kid and code."""
        raise self.decryption_error.with_traceback(None)

    def __repr__(self) -> str:
        """The error's text."""
        return f"UndecryptableRecord({self.decryption_error})"


def _identity_for_kafka(settings: Configuration, kwargs: dict[str, Any]) -> Optional[identity.Identity]:
    """Puts the certificate that the key service issues into a client's TLS, if it has none of its own.

    Raises:
        ConfigurationError: also where ``cipherlane.tls.peer.ids`` could not be kept [CL-TLS-012]
    """
    over_tls = str(kwargs.get("security_protocol", "")).upper() in {"SSL", "SASL_SSL"}
    if not settings.identity_renew or not over_tls or kwargs.get("ssl_context") is not None:
        if settings.peer_ids.patterns:
            raise ConfigurationError(
                f"{PEER_IDS}: needs cipherlane.identity.renew, security_protocol SSL or SASL_SSL, and no ssl_context"
            )
        return None
    used = identity.shared(settings)
    kwargs["ssl_context"] = identity.PeerContext(used, settings.peer_ids)
    return used


async def _first_certificate(used: Optional[identity.Identity]) -> None:
    if used is not None:
        await asyncio.to_thread(used.held)


def _undecryptable(record: Any, key: Any, error: DecryptionError) -> UndecryptableRecord:  # noqa: ANN401
    made = object.__new__(UndecryptableRecord)
    made.__dict__.update({**record.__dict__, "key": key, "decryption_error": error})
    del made.__dict__["value"]  # the envelope must not be found where the plaintext was looked for
    return made


def _record(record: Any) -> Record:  # noqa: ANN401
    return Record(record.topic, record.value, record.key, record.partition, record.offset)
