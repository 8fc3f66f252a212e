"""How the demo speaks: numbered chapters, indented lines, and checks that decide the exit code."""

from __future__ import annotations

import time


class Story:
    """Prints the story and remembers whether each check held."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._chapter = 0
        self.failed: list[str] = []
        self.passed = 0

    def chapter(self, title: str) -> None:
        """Begin a numbered chapter."""
        self._chapter += 1
        print(f"\n{self._chapter}. {title}  ({time.monotonic() - self._started:.0f} s)", flush=True)

    def say(self, text: str = "") -> None:
        """Print one indented line."""
        print(f"   {text}".rstrip(), flush=True)

    def check(self, holds: bool, text: str) -> None:
        """Print a check and its outcome."""
        print(f"   {'ok  ' if holds else 'FAIL'} {text}", flush=True)
        if holds:
            self.passed += 1
        else:
            self.failed.append(text)

    def end(self) -> int:
        """Print the outcome; return the exit code."""
        seconds = time.monotonic() - self._started
        print(f"\n{self.passed} checks held, {len(self.failed)} did not; {seconds:.0f} s.")
        for text in self.failed:
            print(f"did not hold: {text}")
        return 1 if self.failed else 0
