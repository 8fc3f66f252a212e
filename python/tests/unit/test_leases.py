"""Leases of encryption keys: renewal, back-off, bounds, wiping; the clock stands still until it is told."""

from __future__ import annotations

import gc
import random
import threading
import time
import weakref
from typing import Any

import pytest

from cipherlane.errors import CipherlaneError, ErrorCode
from cipherlane.keys import (
    EncryptionGrant,
    EncryptionKeys,
    KeySettings,
    UnencryptedMode,
)
from support import QUICK, ManualClock, MemorySource, code_of, eventually, in_flight


class Bench:
    """Encryption keys of a source in memory, and the clock of their leases."""

    def __init__(self, settings: KeySettings = QUICK, **lease: float) -> None:
        self.source = MemorySource(**lease)
        self.clock = ManualClock()
        self.wiped: list[str] = []
        self.keys = EncryptionKeys(self.source, settings, on_wipe=self.wiped.append, clock=self.clock)

    def kid(self, topic: str = "t") -> bytes:
        grant = self.keys.get(topic)
        assert isinstance(grant, EncryptionGrant)
        return grant.key.kid

    def fail(self, code: ErrorCode) -> None:
        def refuse() -> None:
            raise CipherlaneError(code, "told to")

        self.source.before = refuse

    def recover(self) -> None:
        self.source.before = lambda: None

    def asked(self, count: int) -> None:
        """Waits until the source was asked so often, and all that was asked is settled."""
        eventually(lambda: len(self.source.asked) >= count and not in_flight(self.keys))
        assert len(self.source.asked) == count


@pytest.fixture
def bench() -> Any:
    made = Bench()
    made.source.add("t")
    yield made
    made.keys.close()


def test_a_lease_is_used_until_it_is_due(bench: Bench) -> None:
    """CL-KEY-005: one request for any number of uses."""
    assert len({bench.kid() for _ in range(100)}) == 1
    bench.clock.now += 149.9
    bench.kid()
    bench.asked(1)


def test_a_due_lease_is_renewed_while_the_old_one_serves(bench: Bench) -> None:
    """CL-KEY-006: off the calling thread; the caller is answered with the old key meanwhile."""
    old = bench.kid()
    gate = threading.Event()
    bench.source.before = lambda: gate.wait(10)
    new, _ = bench.source.add("t")
    bench.clock.now += 150
    assert [bench.kid() for _ in range(50)] == [old] * 50
    gate.set()
    eventually(lambda: bench.kid() == new)
    bench.asked(2)
    assert bench.wiped == ["t"]
    assert [key.wiped for key in bench.source.given] == [True, False]


def test_a_renewal_with_the_same_key_keeps_what_was_built_on_it(bench: Bench) -> None:
    """CL-KEY-006: the second copy of the key is wiped, the first goes on with the new lease."""
    grant = bench.keys.get("t")
    bench.clock.now += 150
    bench.kid()
    bench.asked(2)
    bench.clock.now += 299
    assert bench.keys.get("t") is grant
    assert [key.wiped for key in bench.source.given[:2]] == [False, True]
    assert bench.wiped == []


def test_a_lease_that_ended_is_not_used(bench: Bench) -> None:
    """CL-KEY-005, CL-KEY-007: with the error of the last attempt; the key is wiped."""
    bench.kid()
    bench.fail(ErrorCode.KEY_SERVICE_UNAVAILABLE)
    bench.clock.now += 300
    assert code_of(bench.kid) == "key-service-unavailable"
    bench.keys._cache.sweep()
    assert bench.source.given[0]._key == bytearray(32)
    assert bench.wiped == ["t"]
    bench.recover()
    bench.clock.now += 1
    bench.kid()


def test_a_failed_renewal_goes_on_with_the_old_lease_until_that_ends(bench: Bench) -> None:
    """CL-KEY-006, CL-KEY-007, CL-KEY-012."""
    kid = bench.kid()
    bench.fail(ErrorCode.KEY_SERVICE_INTERNAL)
    bench.clock.now += 150
    for attempt in range(2, 5):
        assert bench.kid() == kid
        bench.asked(attempt)
        assert bench.kid() == kid  # within the back-off: not asked again
        bench.asked(attempt)
        bench.clock.now += 0.7
    bench.clock.now = 1300
    assert code_of(bench.kid) == "internal"


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_AUTHORIZED, ErrorCode.TOPIC_FORBIDDEN, ErrorCode.TOPIC_UNKNOWN, ErrorCode.KEY_DESTROYED,
     ErrorCode.KEY_UNKNOWN, ErrorCode.SCOPE_MISMATCH, ErrorCode.UNAUTHENTICATED],
)  # fmt: skip
def test_a_refused_renewal_ends_the_lease_at_once(bench: Bench, code: ErrorCode) -> None:
    """CL-KEY-008."""
    bench.kid()
    bench.fail(code)
    bench.clock.now += 150
    bench.kid()
    eventually(lambda: bench.source.given[0].wiped)
    assert code_of(bench.kid) == code.code
    assert bench.wiped == ["t"]


def test_a_topic_that_became_forbidden_loses_its_key(bench: Bench) -> None:
    """CL-KEY-008: forbid is an answer, not an error."""
    bench.kid()
    bench.source.topics["t"] = UnencryptedMode.FORBID
    bench.clock.now += 150
    bench.keys.get("t")
    eventually(lambda: bench.source.given[0].wiped)
    assert bench.keys.get("t") is UnencryptedMode.FORBID


def test_after_a_failure_the_same_error_comes_without_asking(bench: Bench) -> None:
    """CL-KEY-012: at least 0.4 s (0.5 s less 20 % jitter), at most 0.6 s."""
    bench.fail(ErrorCode.NOT_AUTHORIZED)
    assert [code_of(bench.kid) for _ in range(50)] == ["not-authorized"] * 50
    bench.clock.now += 0.399
    code_of(bench.kid)
    bench.asked(1)
    bench.clock.now += 0.201
    code_of(bench.kid)
    bench.asked(2)


def test_the_back_off_is_spread() -> None:
    """CL-KEY-012: jitter."""
    bench = Bench()
    seeded = random.getstate()
    for number in range(200):
        code_of(lambda topic=f"t{number}": bench.keys.get(topic))  # type: ignore[misc]
    delays = [entry.retry_at - bench.clock.now for entry in bench.keys._cache._entries.values()]
    assert min(delays) >= 0.4
    assert max(delays) <= 0.6
    assert max(delays) - min(delays) > 0.1
    assert random.getstate() == seeded, "what the application seeds is left alone"


def test_a_caller_waits_no_longer_than_the_deadline() -> None:
    """CL-KEY-011: no lease before: the key service does not answer; a lease before: it expired. CL-KEY-007."""
    bench = Bench(KeySettings(deadline=0.15, retry_backoff=0.5))
    bench.source.add("t")
    gate = threading.Event()
    bench.source.before = lambda: gate.wait(10)
    started = time.monotonic()
    assert code_of(bench.kid) == "key-service-unavailable"
    assert 0.1 < time.monotonic() - started < 2
    gate.set()
    bench.asked(1)
    bench.kid()
    gate.clear()
    bench.clock.now += 300
    assert code_of(bench.kid) == "lease-expired"
    gate.set()


def test_an_overdue_caller_hears_of_the_failure_before() -> None:
    """CL-KEY-007: the error of the last attempt."""
    bench = Bench(KeySettings(deadline=0.1, retry_backoff=0.5))
    bench.fail(ErrorCode.AUDIT_UNAVAILABLE)
    assert code_of(bench.kid) == "audit-unavailable"
    gate = threading.Event()
    bench.source.before = lambda: gate.wait(10)
    bench.clock.now += 1
    assert code_of(bench.kid) == "audit-unavailable"
    gate.set()


def test_an_answer_that_comes_after_its_lease_is_of_no_use(bench: Bench) -> None:
    """CL-KEY-005: the lease begins when the request was sent."""

    def be_slow() -> None:
        bench.clock.now += 300

    bench.source.before = be_slow
    assert code_of(bench.kid) == "lease-expired"
    assert bench.source.given[0].wiped


def test_a_lease_counts_from_the_request(bench: Bench) -> None:
    """CL-KEY-005."""

    def be_slow() -> None:
        bench.clock.now += 100

    bench.source.before = be_slow
    bench.kid()
    bench.fail(ErrorCode.KEY_SERVICE_UNAVAILABLE)
    bench.clock.now += 49.9
    bench.kid()
    bench.asked(1)
    bench.clock.now += 0.1  # due, 150 s after the request was sent
    bench.kid()
    bench.asked(2)
    bench.clock.now += 149.9
    bench.kid()
    bench.clock.now += 0.1  # ended
    assert code_of(bench.kid) == "key-service-unavailable"


def test_one_request_for_200_threads() -> None:
    """CL-KEY-009."""
    bench = Bench()
    bench.source.add("t")
    start, gate = threading.Barrier(200), threading.Event()
    bench.source.before = lambda: gate.wait(10)
    found: list[bytes] = []

    def work() -> None:
        start.wait(30)
        found.append(bench.kid())

    threads = [threading.Thread(target=work) for _ in range(200)]
    for thread in threads:
        thread.start()
    eventually(lambda: bench.source.asked)
    time.sleep(0.05)
    gate.set()
    for thread in threads:
        thread.join(30)
    assert len(found) == 200
    assert len(set(found)) == 1
    assert len(bench.source.asked) == 1


def test_one_failing_request_for_200_threads() -> None:
    """CL-KEY-009, CL-KEY-012."""
    bench = Bench()
    gate = threading.Event()
    bench.source.before = lambda: gate.wait(10)
    codes: list[str] = []

    def work() -> None:
        codes.append(code_of(bench.kid))

    threads = [threading.Thread(target=work) for _ in range(200)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(30)
    assert codes == ["topic-unknown"] * 200
    assert len(bench.source.asked) == 1


def test_a_slow_topic_does_not_hold_up_another() -> None:
    """CL-KEY-009 is about one topic: others have requests of their own, at most four at once."""
    bench = Bench()
    gate, lock, most = threading.Event(), threading.Lock(), [0, 0]

    def wait() -> None:
        with lock:
            most[0] += 1
            most[1] = max(most)
        gate.wait(10)
        with lock:
            most[0] -= 1

    bench.source.before = wait
    topics = [f"t{number}" for number in range(10)]
    for topic in topics:
        bench.source.add(topic)
    threads = [threading.Thread(target=bench.kid, args=(topic,)) for topic in topics]
    for thread in threads:
        thread.start()
    eventually(lambda: most[0] == 4)
    gate.set()
    for thread in threads:
        thread.join(10)
    assert most[1] == 4
    assert len(bench.source.asked) == 10


def test_the_cache_is_bounded_and_the_least_recently_used_goes() -> None:
    """CL-KEY-013: at the limit all stay; one more, and the one not used for longest is wiped."""
    bench = Bench(KeySettings(cache_max=16))
    for number in range(17):
        bench.source.add(f"t{number}")
    for number in range(16):
        bench.clock.now += 1
        bench.kid(f"t{number}")
    assert len(bench.keys._cache) == 16
    bench.clock.now += 1
    bench.kid("t0")
    assert bench.wiped == []
    bench.clock.now += 1
    bench.kid("t16")
    assert bench.wiped == ["t1"]
    assert len(bench.keys._cache) == 16
    assert bench.source.given[1].wiped


def test_failures_are_bounded_too() -> None:
    """CL-KEY-013: unknown names do not fill the memory."""
    bench = Bench(KeySettings(cache_max=16))
    for number in range(100):
        code_of(lambda topic=f"t{number}": bench.keys.get(topic))  # type: ignore[misc]
    assert len(bench.keys._cache) == 16


def test_close_wipes_everything_and_ends_waiting() -> None:
    """CL-KEY-013: whoever waits hears that it is closed; an answer that comes later is wiped."""
    bench = Bench()
    bench.source.add("t")
    bench.source.add("slow")
    bench.kid("t")
    gate = threading.Event()
    bench.source.before = lambda: gate.wait(10)
    codes: list[str] = []
    waiting = threading.Thread(target=lambda: codes.append(code_of(lambda: bench.kid("slow"))))
    waiting.start()
    eventually(lambda: len(bench.source.asked) == 2)
    bench.keys.close()
    waiting.join(10)
    assert codes == ["closed"]
    gate.set()
    eventually(lambda: len(bench.source.given) == 2 and bench.source.given[1].wiped)
    assert bench.source.given[0].wiped
    assert bench.source.closed
    assert code_of(bench.kid) == "closed"
    bench.keys.close()


def test_an_error_that_comes_after_close_is_nobodys() -> None:
    """CL-KEY-013."""
    bench = Bench()
    gate = threading.Event()
    bench.source.before = lambda: gate.wait(10)
    waiting = threading.Thread(target=lambda: code_of(bench.kid))
    waiting.start()
    eventually(lambda: bench.source.asked)
    bench.keys.close()
    waiting.join(10)
    gate.set()
    eventually(lambda: not in_flight(bench.keys))
    assert len(bench.keys._cache) == 0


def test_the_sweeper_wipes_at_the_end_without_being_asked() -> None:
    """CL-KEY-005: on the real clock."""
    source = MemorySource(refresh_in=0.1, expires_in=0.2)
    source.add("t")
    keys = EncryptionKeys(source, QUICK)
    started = time.monotonic()
    keys.get("t")
    eventually(lambda: source.given[0].wiped)
    assert time.monotonic() - started >= 0.2
    keys.close()


def test_what_nobody_uses_is_not_renewed() -> None:
    """An entry that no record uses ends with its lease."""
    source = MemorySource(refresh_in=0.05, expires_in=0.2)
    source.add("t")
    keys = EncryptionKeys(source, QUICK)
    keys.get("t")
    eventually(lambda: source.given[0].wiped)
    assert len(source.asked) == 1
    keys.close()


def test_dropped_without_close_it_ends_its_thread_and_wipes() -> None:
    """CL-KEY-013: a key whose last reference goes is overwritten."""
    source = MemorySource()
    source.add("t")
    keys = EncryptionKeys(source, QUICK)
    keys.get("t")
    held = source.given.pop()._key
    sweeper = keys._cache._sweeper._thread
    gone = weakref.ref(keys._cache)
    assert sweeper is not None
    assert sweeper.daemon
    del keys
    eventually(lambda: gc.collect() >= 0 and gone() is None)
    assert held == bytearray(32)
    sweeper.join(5)
    assert not sweeper.is_alive()


def test_threads_that_cannot_start_are_an_error_of_their_own(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """CL-ENV-044: at the end of the interpreter, or out of threads."""

    def cannot(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", cannot)
    assert code_of(bench.kid) == "internal"
    monkeypatch.undo()
    bench.clock.now += 1
    monkeypatch.setattr(bench.keys._cache._sweeper, "start", lambda: None)
    bench.kid()


def test_a_sweeper_that_cannot_start_is_no_failure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases still end when they are looked at."""
    start = threading.Thread.start

    def only_workers(thread: threading.Thread) -> None:
        if thread.name == "cipherlane-sweeper":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", only_workers)
    bench.kid()
    bench.clock.now += 300
    bench.fail(ErrorCode.KEY_SERVICE_UNAVAILABLE)
    assert code_of(bench.kid) == "key-service-unavailable"


def test_whatever_the_source_raises_those_who_wait_hear_of_it(bench: Bench) -> None:
    """CL-ERR-003: not a missing key, not plaintext."""

    def break_down() -> None:
        raise ZeroDivisionError("secret")

    bench.source.before = break_down
    with pytest.raises(CipherlaneError, match="ZeroDivisionError") as raised:
        bench.kid()
    assert raised.value.layer == "client"
    assert "secret" not in str(raised.value)
