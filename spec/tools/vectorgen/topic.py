"""Vectors of kind topic: Kafka's rules for topic names (limits.md)."""

from collections.abc import Iterator

from vectorgen.vector import Vector, accepted, refused

GOOD = {
    "plain": ("claims", "letters"),
    "one-byte": ("a", "the shortest"),
    "249-bytes": ("a" * 249, "the longest"),
    "every-character": ("ABCXYZabcxyz0189._-", "one of each class"),
    "three-dots": ("...", "only . and .. are reserved"),
    "leading-dot": (".claims", "a dot in front"),
    "internal": ("__consumer_offsets", "underscores in front"),
}
BAD = {
    "empty": ("", "no byte"),
    "250-bytes": ("a" * 250, "one byte too many"),
    "dot": (".", "reserved"),
    "dot-dot": ("..", "reserved"),
    "space": ("claims 2026", "a space"),
    "slash": ("claims/2026", "a slash"),
    "path": ("../claims", "a path"),
    "colon": ("claims:2026", "a colon"),
    "star": ("claims*", "a glob"),
    "percent": ("claims%2e", "an escape of a URL"),
    "trailing-newline": ("claims\n", "a regular expression's $ lets this pass"),
    "nul": ("claims\x00", "a zero byte ends a string in C"),
    "nul-inside": ("claims\x00x", "a zero byte inside"),
    "umlaut": ("schäden", "a letter, not an ASCII one"),
    "digit": ("claims\u0663", "a digit, not an ASCII one"),
    "full-width": ("\uff43laims", "looks like an ASCII letter"),
    "emoji": ("claims\U0001f600", "outside the basic plane"),
}


def vectors() -> Iterator[Vector]:
    for name, (topic, comment) in GOOD.items():
        yield accepted(f"topic-{name}", comment, {"topic": topic}, {})
    for name, (topic, comment) in BAD.items():
        yield refused(f"topic-bad-{name}", comment, {"topic": topic}, "topic-invalid")
