"""Turns messages as they were read into messages for the application: decrypts, and meets failures (spec/kafka.md)."""

from __future__ import annotations

import contextlib
import time
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from confluent_kafka import Message

from cipherlane import configuration
from cipherlane.configuration import Configuration, FailureAction
from cipherlane.confluent import transport
from cipherlane.confluent.dead_letters import DeadLetters, Failure
from cipherlane.counts import Counts, Numbers
from cipherlane.decryptor import Decryptor, Record
from cipherlane.errors import DecryptionError
from cipherlane.failure import applies, marked, not_lettered, unmarked
from cipherlane.pure import Fields

_FIELDS = Fields(Message.topic, Message.value, Message.set_value)

Refused = Callable[[Any, DecryptionError], Any]
"""Gives what stands in the place of a message that cannot be decrypted."""


class Reader:
    """See the module. Safe for use by threads.

    Args:
        own: the ``cipherlane.`` settings, read
        settings: the consumer's others: dead letters go by its connection
        refused: what is shown under the failure action ``fail``

    Raises:
        ConfigurationError: a PEM file cannot be used
    """

    def __init__(self, own: Configuration, settings: Mapping[str, Any], refused: Refused) -> None:
        self._action = own.failure_action
        self._refused = refused
        self._dead_letters = DeadLetters(own, settings)
        self._counts = Counts()
        self.decryptor = Decryptor.from_configuration(own)

    @classmethod
    @contextlib.contextmanager
    def opened(cls, given: Mapping[str, Any], refused: Refused) -> Iterator[tuple[Reader, dict[str, Any]]]:
        """The reader of a consumer with these settings, and those for librdkafka; the block makes the consumer.

        Raises:
            ConfigurationError: a ``cipherlane.`` setting cannot be used
        """
        ours, theirs = configuration.split(given)
        settings = Configuration.from_settings(ours)
        reader = cls(settings, theirs, refused)
        try:
            with transport.connected(settings, theirs) as connected:
                yield reader, connected
        except BaseException:
            reader.close()
            raise

    def poll(self, poll: Callable[[float], Any], timeout: float = -1) -> Any:  # noqa: ANN401 - a message of the client
        """One message or None within ``timeout`` seconds (negative: no limit), by way of the client's own ``poll``."""
        until = time.monotonic() + timeout
        while True:
            message = poll(timeout)
            if message is None:
                return None
            shown = self.read([message])
            if shown:
                return shown[0]
            timeout = timeout if timeout < 0 else max(0.0, until - time.monotonic())

    def consume(
        self, consume: Callable[[int, float], list[Any]], num_messages: int = 1, timeout: float = -1
    ) -> list[Any]:
        """Up to so many messages, by way of the client's own ``consume``; their keys are asked for together."""
        until = time.monotonic() + timeout
        shown: list[Any] = []
        while True:
            try:
                messages = consume(num_messages - len(shown), timeout)
            except Exception:
                if shown:
                    return shown  # what was taken must not be lost; the next call meets the error again
                raise
            readable = self.read(messages)
            shown += readable
            timeout = timeout if timeout < 0 else max(0.0, until - time.monotonic())
            if len(readable) == len(messages) or len(shown) == num_messages:
                return shown

    def read(self, messages: list[Any]) -> list[Any]:
        """Decrypts messages in their place; those that the failure action leaves out are not in the result."""
        if self._action is FailureAction.MARK:
            _unmark(messages)
        rest = self.decryptor.decrypt_all_at_once(messages, _FIELDS)  # what is like messages before
        return self._carefully(messages, rest) if rest else messages

    def numbers(self) -> Numbers:
        """What this client reports of itself (spec/kafka.md, "Numbers")."""
        return {
            "skipped_total": 0,
            "dead_lettered_total": 0,
            "marked_total": 0,
            **self._counts.all(),
            **self.decryptor.numbers(),
        }

    def close(self) -> None:
        """Wipes the keys and closes the connections to the key service."""
        self.decryptor.close()

    def _carefully(self, messages: list[Any], rest: list[int]) -> list[Any]:
        rest = [index for index in rest if messages[index].error() is None]
        outcomes = self.decryptor.decrypt_all(_record(messages[index]) for index in rest)
        failed: dict[int, DecryptionError] = {}
        for index, outcome in zip(rest, outcomes):
            if isinstance(outcome, DecryptionError):
                failed[index] = outcome
            else:
                messages[index].set_value(outcome)
        met = self._meet([(messages[index], error) for index, error in failed.items()])
        shown = dict(zip(failed, met))
        found = [shown.get(index, message) for index, message in enumerate(messages)]
        return [message for message in found if message is not None]

    # Failure actions: for each failure what the application gets, or None.

    def _meet(self, failures: Sequence[Failure]) -> list[Any]:
        """An outage, or a principal that was refused, concerns every record: there ``fail`` is right [CL-KAF-020]."""
        chosen = [failure for failure in failures if self._applies(failure[1])]
        act = {
            FailureAction.FAIL: self._fail,
            FailureAction.SKIP: self._skip,
            FailureAction.DEAD_LETTER: self._dead_letter,
            FailureAction.MARK: self._mark,
        }[self._action]
        met = iter(act(chosen))
        return [next(met) if self._applies(failure[1]) else self._refused(*failure) for failure in failures]

    def _applies(self, error: DecryptionError) -> bool:
        return applies(self._action, error)

    def _fail(self, failures: Sequence[Failure]) -> list[Any]:
        return [self._refused(*failure) for failure in failures]

    def _skip(self, failures: Sequence[Failure]) -> list[Any]:
        for _ in failures:
            self._counts.add("skipped_total")
        return [None] * len(failures)

    def _mark(self, failures: Sequence[Failure]) -> list[Any]:
        for message, error in failures:
            self._counts.add("marked_total")
            message.set_headers(marked(message.headers(), error))
        return [message for message, _ in failures]

    def _dead_letter(self, failures: Sequence[Failure]) -> list[Any]:
        reasons = self._dead_letters.send(failures)
        return [self._lettered(failure, reason) for failure, reason in zip(failures, reasons)]

    def _lettered(self, failure: Failure, reason: Optional[str]) -> Any:  # noqa: ANN401
        if reason is None:
            self._counts.add("dead_lettered_total")
            return None
        message, error = failure
        return self._refused(message, not_lettered(error, reason))


def _record(message: Any) -> Record:  # noqa: ANN401
    return Record(message.topic() or "", message.value(), message.key(), message.partition(), message.offset())


def _unmark(messages: list[Any]) -> None:
    """Whoever wrote the record may have marked it too [CL-KAF-024]."""
    for message in messages:
        others = unmarked(message.headers())
        if others is not None:
            message.set_headers(others)
