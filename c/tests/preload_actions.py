"""Failure actions under the preload library (spec/kafka.md): unchanged programs read a topic that has records which nobody can read."""

from __future__ import annotations

import json
import subprocess

from e2e import Bench, C, check

# What nobody can read, by offset in enc.unread: an envelope under a kid that is unknown, one of another version, and injected plaintext.
UNREADABLE = {1: b"\xc1\x9e\x01" + bytes(77), 2: b"\xc1\x9e\x09" + bytes(67), 3: b"injected"}
READABLE = {0: b"canary-first", 4: b"canary-last"}
CODES = {1: "key-unknown", 2: "unsupported-version", 3: "plaintext-rejected"}


def fill_unreadable(bench: Bench) -> None:
    """One record after the other, once for all cases; all have a header of their own and, which is not the writer's to say, an error header."""
    if bench.unreadable:
        return
    bench.unreadable = True
    for offset in range(5):
        path = bench.folder / f"unread{offset}"
        path.write_bytes(UNREADABLE.get(offset) or READABLE[offset])
        command = ["kcat", "-b", bench.bootstrap, "-P", "-t", "enc.unread", "-p", "0", "-k", "key", "-H", "own=kept",
                   "-H", "cipherlane.error=a lie", str(path)]
        if offset in READABLE:
            done = bench.preloaded("producer", *command)
        else:
            done = subprocess.run(command, capture_output=True, timeout=60, check=False, env=bench.environment)
        check(done.returncode == 0, done.stderr)


PYTHON_READER = """
import json, sys
from confluent_kafka import Consumer, TopicPartition
bootstrap, verb, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unread", "enable.auto.commit": False})
consumer.assign([TopicPartition("enc.unread", 0, 0)])
read = []
while len(read) < wanted:
    messages = [consumer.poll(60)] if verb == "poll" else consumer.consume(wanted - len(read), 60)
    assert messages and None not in messages, read
    read += [{"offset": m.offset(), "error": None if m.error() is None else m.error().str() + (m.value() or b"").decode(errors="replace"),
              "value": m.value().hex(), "headers": {name: value.decode() for name, value in m.headers() or []}} for m in messages]
assert consumer.poll(2) is None, "one too many"
consumer.close()
print(json.dumps(read))
"""


def read_by_wheel(bench: Bench, verb: str, wanted: int, *settings: str) -> list[dict]:
    """What an unchanged Python program reads of enc.unread, by `poll` or by `consume`, when that many messages come."""
    python = str(C / ".venv/bin/python")
    done = bench.preloaded("consumer", python, "-c", PYTHON_READER, bench.bootstrap, verb, str(wanted), settings=settings)
    check(done.returncode == 0, done.stderr.decode())
    return json.loads(done.stdout)


def kcat_unread(bench: Bench, action: str, form: str) -> list[str]:
    done = bench.preloaded("consumer", "kcat", "-b", bench.bootstrap, "-C", "-t", "enc.unread", "-p", "0", "-o", "beginning", "-e", "-q",
                           "-f", form, settings=(f"cipherlane.failure.action={action}",))
    check(done.returncode == 0, (done.stderr, done.stdout))
    return done.stdout.decode(errors="replace").splitlines()


def check_readable(read: list[dict]) -> None:
    """Neighbours of what cannot be read come whole."""
    values = {one["offset"]: bytes.fromhex(one["value"]) for one in read if one["offset"] in READABLE}
    check(values == READABLE, read)
    check(all(one["error"] is None for one in read if one["offset"] in READABLE), read)


def preload_fails(bench: Bench) -> None:
    """The default: an error at its place, which names the cause."""
    fill_unreadable(bench)
    for verb in ("poll", "consume"):
        read = read_by_wheel(bench, verb, 5)
        check_readable(read)
        check([one["offset"] for one in read] == list(range(5)), read)
        check(all(code in read[offset]["error"] for offset, code in CODES.items()), read)


def preload_skips(bench: Bench) -> None:
    """CL-KAF-021; and CL-KAF-020: what concerns more than the record is not skipped."""
    fill_unreadable(bench)
    for verb in ("poll", "consume"):
        read = read_by_wheel(bench, verb, 2, "cipherlane.failure.action=skip")
        check_readable(read)
        check(len(read) == 2, read)
    check(kcat_unread(bench, "skip", "%o %s\n") == ["0 canary-first", "4 canary-last"], "kcat")
    done = bench.preloaded("stranger", str(C / ".venv/bin/python"), "-c", PYTHON_READER, bench.bootstrap, "poll", "4",
                           settings=("cipherlane.failure.action=skip",))
    check(done.returncode == 0, done.stderr.decode())
    outage = json.loads(done.stdout)
    # another version needs no key service to be found out
    check([one["offset"] for one in outage] == [0, 1, 3, 4], outage)


def preload_sends_letters(bench: Bench) -> None:
    """CL-KAF-022: each unreadable record, as it was, once for each reader, with the cause and where it was."""
    fill_unreadable(bench)
    for verb in ("poll", "consume"):
        check_readable(read_by_wheel(bench, verb, 2, "cipherlane.failure.action=dead-letter"))
    check(kcat_unread(bench, "dead-letter", "%o %s\n") == ["0 canary-first", "4 canary-last"], "kcat")
    letters = subprocess.run(
        ["kcat", "-b", bench.bootstrap, "-C", "-t", "enc.unread.dead-letter", "-p", "0", "-o", "beginning", "-e", "-q", "-D", "~~~", "-f", "%k;%h;%s~~~"],
        capture_output=True, timeout=60, check=True, env=bench.environment).stdout.split(b"~~~")[:-1]
    check(len(letters) == 9, letters)
    for letter, offset in zip(letters, [1, 2, 3] * 3, strict=True):
        key, headers, value = letter.split(b";", 2)
        named = dict(part.split("=", 1) for part in headers.decode().split(","))
        check(key == b"key" and value == UNREADABLE[offset], letter)
        check(named["own"] == "kept" and named["cipherlane.error"] == CODES[offset], letter)
        check((named["cipherlane.error.topic"], named["cipherlane.error.partition"], named["cipherlane.error.offset"]) == ("enc.unread", "0", str(offset)), letter)


def preload_marks(bench: Bench) -> None:
    """CL-KAF-024: as it was, with a header that says why; CL-KAF-025: injected plaintext is an error."""
    fill_unreadable(bench)
    for verb in ("poll", "consume"):
        read = read_by_wheel(bench, verb, 5, "cipherlane.failure.action=mark")
        check_readable(read)
        check([one["headers"].get("cipherlane.error") for one in read] == [None, CODES[1], CODES[2], None, None], read)
        check(all(bytes.fromhex(read[offset]["value"]) == UNREADABLE[offset] and read[offset]["error"] is None for offset in (1, 2)), read)
        check("plaintext-rejected" in read[3]["error"], read)
        check(all(read[offset]["headers"]["own"] == "kept" for offset in (0, 1, 2, 4)), read)


CASES = [preload_fails, preload_skips, preload_sends_letters, preload_marks]
