"""Vectors of kind decrypt: step 11 of reading, an authentic plaintext that is or is not one zstd frame."""

from collections.abc import Iterator

from vectorgen import frames
from vectorgen.crypto import KEY_BOUND, ZSTD, drbg
from vectorgen.decrypting import LIMIT, fails, opens, record, view
from vectorgen.vector import Vector, flip

TEXT = b'{"claim": 7, "state": "open"}\n' * 10


def vectors() -> Iterator[Vector]:
    yield from _good()
    yield from _bad()
    yield from _too_long()
    yield from _order()


def _value(name: str, frame: bytes) -> bytes:
    return record(f"zstd/{name}", frame, flags=ZSTD).envelope()


def _good() -> Iterator[Vector]:
    random = drbg("decrypt/zstd", 64)
    cases = {
        "compressed": ("compressed blocks, with checksum", frames.compressed(TEXT), TEXT, LIMIT),
        "stored": ("a stored block", frames.raw(TEXT), TEXT, LIMIT),
        "unsized": ("the frame does not say its size", frames.raw(TEXT, sized=False), TEXT, LIMIT),
        "empty": ("an empty value, compressed", frames.raw(b""), b"", LIMIT),
        "at-limit": ("exactly the limit; the frame is longer than that", frames.raw(random), random, 64),
        "unsized-at-limit": ("the same, size not said", frames.raw(random, sized=False), random, 64),
        "run-at-limit": ("runs of zeros", frames.run(b"\x00", 4096, sized=True), bytes(4096), 4096),
    }
    for name, (comment, frame, plaintext, limit) in cases.items():
        given = view(_value(name, frame), max_plaintext=limit)
        yield opens(f"zstd-{name}", comment, given, plaintext, ["ENV-011"])


def _bad() -> Iterator[Vector]:
    good, packed = frames.raw(TEXT), frames.compressed(TEXT)
    bodies = {
        "no-frame": ("nothing was compressed", TEXT),
        "nothing": ("an empty ciphertext is no frame", b""),
        "magic-alone": ("the frame's magic alone", good[:4]),
        "cut-header": ("cut inside the header", good[:7]),
        "cut-block": ("cut inside the block", good[:-1]),
        "cut-checksum": ("cut inside the checksum", packed[:-1]),
        "no-last-block": (
            "the last block is missing",
            frames.header(3) + frames.block(frames.RAW, 3, b"abc", last=False),
        ),
        "checksum": ("a wrong checksum", flip(packed, -1)),
        "two-frames": ("two frames", good + good),
        "empty-frame-behind": ("a second frame that holds nothing", good + frames.raw(b"")),
        "trailing-byte": ("one zero byte behind", good + b"\x00"),
        "trailing-text": ("text behind", good + b"text"),
        "skippable-behind": ("a skippable frame behind", good + frames.skippable(b"note")),
        "skippable-before": ("a skippable frame in front", frames.skippable(b"note") + good),
        "skippable-alone": ("a skippable frame alone", frames.skippable(TEXT)),
        "size-too-small": ("the header says one byte less", frames.raw(TEXT, claimed=len(TEXT) - 1)),
        "size-too-large": ("the header says one byte more", frames.raw(TEXT, claimed=len(TEXT) + 1)),
        "size-zero": ("the header says empty", frames.raw(TEXT, claimed=0)),
        "reserved-block": ("a block of the reserved type", frames.header(None) + frames.block(3, 3, b"abc", last=True)),
        "reserved-bit": (
            "the reserved bit of the header",
            frames.header(None, 8) + frames.block(0, 3, b"abc", last=True),
        ),
        "dictionary": ("a dictionary is asked for", frames.with_dictionary(b"abc")),
        "huge-window": ("a window of 2 TiB", frames.huge_window(b"abc")),
        "gzip": ("another format", bytes.fromhex("1f8b08000000000000030300") + bytes(8)),
        "zlib": ("another format", bytes.fromhex("789c030000000001")),
    }
    for name, (comment, body) in bodies.items():
        yield fails(f"zstd-bad-{name}", comment, view(_value(name, body)), "decompression-failed", ["ENV-011"])


def _too_long() -> Iterator[Vector]:
    bombs = {
        "one-over": ("one byte over the limit", frames.raw(bytes(65)), 64),
        "one-over-unsized": ("the same, size not said", frames.raw(bytes(65), sized=False), 64),
        "bomb": ("a mebibyte and a byte in some 50", frames.run(b"\x00", LIMIT + 1, sized=True), LIMIT),
        "bomb-unsized": ("the same, size not said", frames.run(b"\x00", LIMIT + 1, sized=False), LIMIT),
        "bomb-large": ("64 MiB in 2 KiB, size not said", frames.run(b"\x00", 1 << 26, sized=False), 1000),
        "compressed-over": ("compressed blocks", frames.compressed(TEXT), len(TEXT) - 1),
    }
    for name, (comment, frame, limit) in bombs.items():
        given = view(_value(f"long/{name}", frame), max_plaintext=limit)
        yield fails(f"zstd-over-{name}", comment, given, "plaintext-too-long", ["ENV-011"])


def _order() -> Iterator[Vector]:
    forged = flip(_value("forged", b"no frame"), -1)
    yield fails("zstd-bad-tag", "no frame and a wrong tag", view(forged), "authentication-failed", ["ENV-010"])
    bomb = flip(_value("forged-bomb", frames.run(b"\x00", LIMIT + 1, sized=True)), -1)
    yield fails("zstd-bomb-tag", "a bomb with a wrong tag", view(bomb), "authentication-failed", ["ENV-010"])
    bound = record("zstd/bound", frames.raw(TEXT), flags=ZSTD | KEY_BOUND, record_key=b"key-1").envelope()
    given = view(bound, record_key=b"key-1")
    yield opens("zstd-bound", "compressed and bound", given, TEXT, ["ENV-008", "ENV-011"])
    given = view(_value("unknown", b"no frame"), keys={})
    yield fails("zstd-bad-key-unknown", "no frame, and no key", given, "key-unknown", ["ENV-009"])
