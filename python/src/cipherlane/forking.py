"""What a forked child must not share with its parent: nonces, locks that other threads held, leases [CL-ENV-035]."""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from typing import Protocol, Union

Mark = Union[mmap.mmap, bytearray]
"""Its first byte is 1 in the process that made it, and 0 in a forked child."""

_MADV_WIPEONFORK = 18  # <linux/mman.h>, Linux 4.14; the module mmap does not name it


class ResetInChild(Protocol):
    """Something that a forked child must not go on using as it is."""

    def after_fork_in_child(self) -> None:
        """Starts afresh; no other thread exists, and no lock of the parent may be taken."""


_registered: weakref.WeakSet[ResetInChild] = weakref.WeakSet()
_marks: list[Mark] = []


def reset_in_child(resettable: ResetInChild) -> None:
    """Has ``after_fork_in_child`` called in every forked child, for as long as the object lives."""
    _registered.add(resettable)


def mark() -> Mark:
    """The mark of this process. To look at it costs no system call, and on Linux needs no help of the interpreter.

    A process that C code forked (uWSGI does) does not run the hooks of ``os.register_at_fork``; the kernel empties the
    mark all the same.
    """
    if not _marks or not _marks[-1][0]:
        _marks[:] = [_new_mark()]
    return _marks[-1]


def _new_mark() -> Mark:
    made = _page() if sys.platform == "linux" else bytearray(1)
    made[0] = 1
    return made


def _page() -> Mark:
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        page.madvise(_MADV_WIPEONFORK)
    except OSError:  # an old kernel: the hook alone must do
        return bytearray(1)
    return page


def _reset_all() -> None:
    for old in _marks:
        old[0] = 0
    for resettable in list(_registered):
        resettable.after_fork_in_child()


if hasattr(os, "register_at_fork"):  # pragma: no branch - not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_reset_all)
