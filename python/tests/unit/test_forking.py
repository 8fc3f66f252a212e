"""Forked children, also those that C code forks behind the interpreter's back. CL-ENV-035."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cipherlane import forking

FORKED_BY_C = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from cipherlane.configuration import Writing
from cipherlane.encryptor import Encryptor
from support import QUICK, MemorySource

source = MemorySource()
source.add("t")
encryptor = Encryptor(source, QUICK, Writing(100))
first = encryptor.encrypt("t", b"x")[20:44]
# A thread that asks for the interpreter's lock at this moment would be waited for in the child, where it is not.
sys.setswitchinterval(1000)
pid = ctypes.PyDLL(None).fork()
mine = [encryptor.encrypt("t", b"x")[20:44].hex() for _ in range(50)]
if pid == 0:
    with open(sys.argv[2], "w") as file:
        file.write("\\n".join(mine))
    os._exit(0)
os.waitpid(pid, 0)
theirs = open(sys.argv[2]).read().split()
assert len(theirs) == 50 and not set(theirs) & {*mine, first.hex()}, "a nonce was used twice"
assert {nonce[:40] for nonce in theirs} != {first.hex()[:40]}
print("distinct")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux empties pages in a child")
def test_a_child_that_c_code_forked_repeats_no_nonce(tmp_path: Path) -> None:
    """CL-ENV-035: no hook of Python runs there; the kernel empties the mark."""
    tests = str(Path(__file__).resolve().parents[1])
    command = [sys.executable, "-c", FORKED_BY_C, tests, str(tmp_path / "nonces")]
    outcome = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (outcome.returncode, outcome.stdout) == (0, "distinct\n"), outcome.stderr


def test_the_mark_is_new_in_a_child() -> None:
    mark = forking.mark()
    assert mark[0] == 1
    assert forking.mark() is mark
    forking._reset_all()  # what the hook does in a child
    assert mark[0] == 0
    assert forking.mark() is not mark
    assert forking.mark()[0] == 1


@pytest.mark.parametrize("where", ["another system", "an old kernel"])
def test_where_the_kernel_does_not_help_the_hook_does(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unhelpful(mmap.mmap):
        def madvise(self, *_arguments: Any) -> None:
            raise OSError("Invalid argument")

    if where == "another system":
        monkeypatch.setattr(sys, "platform", "plan9")
    else:
        monkeypatch.setattr(mmap, "mmap", Unhelpful)
    monkeypatch.setattr(forking, "_marks", [])
    mark = forking.mark()
    assert (type(mark), mark[0]) == (bytearray, 1)
    forking._reset_all()
    assert mark[0] == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_hook_runs_in_a_child() -> None:
    mark = bytearray(b"\1")
    forking._marks.append(mark)
    try:
        pid = os.fork()
        if pid == 0:  # pragma: no cover - the child
            os._exit(mark[0])
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        forking._marks.remove(mark)
