"""What a forked child must not share with its parent: locks that other threads held, leases [CL-ENV-035]."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class ResetInChild(Protocol):
    """Something that a forked child must not go on using as it is."""

    def after_fork_in_child(self) -> None:
        """Starts afresh; no other thread exists, and no lock of the parent may be taken."""


_registered: weakref.WeakSet[ResetInChild] = weakref.WeakSet()


def reset_in_child(resettable: ResetInChild) -> None:
    """Has ``after_fork_in_child`` called in every forked child, for as long as the object lives."""
    _registered.add(resettable)


def _reset_all() -> None:  # pragma: no cover - runs in forked children, which the tests start, out of coverage's sight
    for resettable in list(_registered):
        resettable.after_fork_in_child()


if hasattr(os, "register_at_fork"):  # pragma: no branch - not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_reset_all)
