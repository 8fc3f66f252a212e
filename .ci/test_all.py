"""Run `make setup test` in every folder and add up the JUnit files that the tests leave.

The last line is `N passed, N failed`; the one before says how many were skipped. A folder whose make fails without a failed
test counts as one failure, so that a crash cannot look like success. Exit code 0 only if nothing failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT_PATTERNS = ("build/test-results/*.xml", "*/target/surefire-reports/TEST-*.xml")


@dataclass
class Tally:
    """Numbers of tests by outcome."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed"


def result_files(folder: Path) -> list[Path]:
    """JUnit files below a folder."""
    return sorted(file for pattern in RESULT_PATTERNS for file in folder.glob(pattern))


def count(file: Path) -> Tally:
    """Outcomes of the test cases in one JUnit file."""
    tally = Tally()
    for case in ElementTree.parse(file).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            tally.failed += 1
        elif case.find("skipped") is not None:
            tally.skipped += 1
        else:
            tally.passed += 1
    return tally


def make(verb: str, folder: Path) -> int:
    """Exit code of make, whose programs leave nothing behind: not even those that tests kill."""
    with tempfile.TemporaryDirectory(prefix="cl-", ignore_cleanup_errors=True) as temporary:
        os.chmod(temporary, 0o711)  # some tests are other users
        command = ["make", "--no-print-directory", "-C", str(folder), verb]
        return subprocess.run(command, env={**os.environ, "TMPDIR": temporary}).returncode


def run_folder(name: str) -> Tally:
    """Set up and test one folder; old results go first, so that only this run counts."""
    folder = ROOT / name
    for stale in result_files(folder):
        stale.unlink()
    print(f"== {name}", flush=True)
    started = time.monotonic()
    code = 0
    for verb in ("setup", "test"):
        code = code or make(verb, folder)
    tally = Tally()
    for file in result_files(folder):
        tally.add(count(file))
    if code != 0 and tally.failed == 0:
        print(f"{name}: make ended with {code} although no test reported a failure", flush=True)
        tally.failed += 1
    print(f"== {name}: {tally} in {time.monotonic() - started:.0f} s", flush=True)
    return tally


def main(folders: list[str]) -> int:
    tallies = {name: run_folder(name) for name in folders}
    total = Tally()
    print("\nfolder              result")
    for name, tally in tallies.items():
        print(f"{name:<19} {tally}, {tally.skipped} skipped")
        total.add(tally)
    print(f"{total.skipped} skipped")
    print(total, flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
