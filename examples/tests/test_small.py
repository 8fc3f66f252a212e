"""The small examples, run for real, and whether their comparison tells the truth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demo import small

TIMEOUT_SECONDS = 600


@pytest.mark.parametrize(
    ("example", "comparisons"),
    [("streams", 2), ("connect", 2), ("mirrormaker", 1), ("spring", 1), ("sidecar", 1), ("cluster", 2)],
)
def test_the_example_holds_what_it_says(example: str, comparisons: int) -> None:
    command = [sys.executable, "-m", f"{example}.run"]
    outcome = subprocess.run(
        command, check=False, cwd=small.EXAMPLES, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert outcome.stdout.count("equal the input, 0 were not asked for") == comparisons
    assert "plaintext at 0 positions" in outcome.stdout


@pytest.mark.parametrize("found", [[], ["a"], ["a", "c"], ["b", "a"], ["a", "b", "b"]])
def test_what_differs_is_told(found: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert not small.compare(["a", "b"], found, "lines")
    assert "of 2 lines equal the input" in capsys.readouterr().out


def test_what_is_equal_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert small.compare(["a", "b"], ["a", "b"], "lines")
    assert capsys.readouterr().out == "2 of 2 lines equal the input, 0 were not asked for\n"


def test_a_program_that_fails_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match=r"no\.such\.Main failed"),
        small.program(tmp_path, "streams", "no.such.Main") as check,
    ):
        small.wait("anything", check, lambda: False)
