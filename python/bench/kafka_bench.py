"""Records a second of a produce loop and of a consume loop, with encryption and without.

The clients are those of an application: confluent-kafka's, and ours in their place. Broker and key service are real.
The runs of a case are interleaved. Beside the ratio stand the CPU microseconds of the application's thread for each
record, which say what a record costs where the broker is not the limit, and of what steps they are made: the client's
own call, the bare cipher of the same library, and all that Cipherlane adds. Figures go to
build/bench/python-kafka.json.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import confluent_kafka

from cipherlane import backend
from cipherlane.confluent import Consumer, Producer
from processes import Cluster, Service, end, group_settings, start_cluster, start_service
from report import Row, compare, publish

RUNS = 5
RECORDS = {128: 600_000, 1024: 300_000}
"""More than librdkafka fetches ahead, so that what is measured is not its queue being emptied."""
WARM_UP = 20_000
ROWS = ("plaintext", "encrypted", "encrypted-native")
"""Without; with the cipher that every installation has; with the one in C."""


class Measured(NamedTuple):
    """Of one run."""

    per_second: float
    thread_us: float
    """CPU time of the application's thread for each record, in microseconds; so is the next."""
    cipher_us: float
    """Of the bare cipher for a value of this size."""


class Bench:
    """The broker, the key service, and the clients of both kinds."""

    def __init__(self, cluster: Cluster, service: Service) -> None:
        self._cluster = cluster
        self._service = service

    def producer(self, row: str) -> confluent_kafka.Producer:
        """With room for all records of a run: what is measured is the loop, not the waiting for room."""
        conf = {"bootstrap.servers": self._cluster.bootstrap, "queue.buffering.max.messages": 2_000_000}
        conf |= {"queue.buffering.max.kbytes": 2_000_000}
        if row == "plaintext":
            return confluent_kafka.Producer(conf)
        choose(row)
        return Producer({**conf, **self._service.settings("producer")})

    def produce(self, row: str, size: int) -> tuple[Measured, str]:
        """One run into a topic of its own; the clock stops when all is acknowledged."""
        topic, value = self._cluster.topic("t"), os.urandom(size)
        producer = self.producer(row)
        _loop(producer, topic, value, WARM_UP)
        producer.flush()
        begun, cpu = time.perf_counter(), time.thread_time()
        _loop(producer, topic, value, RECORDS[size])
        cpu = time.thread_time() - cpu
        producer.flush()
        measured = _measured(RECORDS[size], begun, cpu, cipher_us(row, size, encrypts=True))
        producer.close()
        return measured, topic

    def consume(self, row: str, size: int, topic: str) -> Measured:
        """One run over all records of a topic, in batches, every value looked at."""
        # The default of a second, when librdkafka's own queue was full, would make this a measurement of waiting.
        conf = group_settings(self._cluster, **{"fetch.queue.backoff.ms": 10})
        choose(row)
        consumer: Any = (
            confluent_kafka.Consumer(conf)
            if row == "plaintext"
            else Consumer({**conf, **self._service.settings("consumer")})
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        count = len(consumer.consume(1, 30))
        begun, cpu = time.perf_counter(), time.thread_time()
        while count < RECORDS[size]:
            messages = consumer.consume(1000, 1.0)
            for message in messages:
                if len(message.value()) != size:
                    raise RuntimeError("a value of another size")
            count += len(messages)
        measured = _measured(count, begun, time.thread_time() - cpu, cipher_us(row, size, encrypts=False))
        consumer.close()
        return measured

    def rows(self, size: int) -> list[Row]:
        """All cases of a size."""
        produced = [tuple(self.produce(row, size) for row in ROWS) for _ in range(RUNS)]
        topics = dict(zip(ROWS, (topic for _, topic in produced[-1])))
        consumed = [tuple(self.consume(row, size, topics[row]) for row in ROWS) for _ in range(RUNS)]
        made = [tuple(measured for measured, _ in run) for run in produced]
        return [*_rows(f"produce/{size}B", made), *_rows(f"consume/{size}B", consumed)]


def choose(row: str) -> None:
    """Which cipher the clients made from here on use."""
    chosen = backend.native() if row == "encrypted-native" else backend.PURE
    if chosen is None:
        raise RuntimeError("cipherlane-native is not installed: make setup")
    backend.current = chosen


def cipher_us(row: str, size: int, *, encrypts: bool) -> float:
    """CPU time of this thread for a value, in microseconds, by the cipher alone that a row has."""
    if row == "plaintext":
        return 0.0
    choose(row)
    aead, nonce, associated, value = backend.current.raw(os.urandom(32)), os.urandom(12), bytes(27), os.urandom(size)
    call, data = (aead.encrypt, value) if encrypts else (aead.decrypt, aead.encrypt(nonce, value, associated))
    begun = time.thread_time()
    for _ in range(WARM_UP):
        call(nonce, data, associated)
    return (time.thread_time() - begun) / WARM_UP * 1e6


def _loop(producer: confluent_kafka.Producer, topic: str, value: bytes, count: int) -> None:
    produce, poll = producer.produce, producer.poll
    for number in range(count):
        produce(topic, value)
        if not number % 1000:
            poll(0)


def _measured(count: int, begun: float, cpu: float, cipher: float) -> Measured:
    return Measured(count / (time.perf_counter() - begun), cpu / count * 1e6, cipher)


def _rows(case: str, runs: list[tuple[Measured, ...]]) -> list[Row]:
    thread = compare(case + " (thread)", ROWS, [[measured.thread_us for measured in run] for run in runs])
    found = compare(case, ROWS, [[measured.per_second for measured in run] for run in runs])
    for index, (row, cpu) in enumerate(zip(found, thread)):
        row["thread_us"] = cpu["value"]
        row["steps_ns"] = _steps([(run[0], run[index]) for run in runs])
    return found


def _steps(runs: list[tuple[Measured, Measured]]) -> dict[str, int]:
    """What the thread's time for a record is made of, from the runs without encryption and with it."""
    parts = {
        "client": [clear.thread_us for clear, _ in runs],
        "cipher": [ours.cipher_us for _, ours in runs],
        "cipherlane": [ours.thread_us - clear.thread_us - ours.cipher_us for clear, ours in runs],
    }
    return {name: round(statistics.median(values) * 1000) for name, values in parts.items()}


@contextlib.contextmanager
def running() -> Iterator[Bench]:
    """Starts the broker and the key service, and ends them."""
    with tempfile.TemporaryDirectory() as folder:
        cluster, process = start_cluster()
        service = start_service(Path(folder) / "keyservice")
        try:
            yield Bench(cluster, service)
        finally:
            service.close()
            end(process)


def main() -> None:
    """Runs all cases."""
    with running() as bench:
        rows = [row for size in RECORDS for row in bench.rows(size)]
    publish("python-kafka", "records_per_second", RUNS, rows)


if __name__ == "__main__":
    main()
