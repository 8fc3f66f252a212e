"""The settings of a key cache."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KeySettings:
    """Times are in seconds."""

    deadline: float = 10.0
    """The longest that a caller waits [CL-KEY-011]."""
    retry_backoff: float = 0.5
    """The least time between two requests for the same thing after a failure, give or take 20 % [CL-KEY-012]."""
    cache_max: int = 10_000
    """Grants held at once [CL-KEY-013]."""
