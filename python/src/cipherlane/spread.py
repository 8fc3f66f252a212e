"""Spreads what many clients would do at the same time."""

from __future__ import annotations

from random import SystemRandom

_RANDOM = SystemRandom()
"""Not the generator that programs share, whose seed may matter to the application."""


def spread(seconds: float, least: float, most: float) -> float:
    """A time between ``least * seconds`` and ``most * seconds``, each as likely. Safe for use by threads."""
    return seconds * _RANDOM.uniform(least, most)
