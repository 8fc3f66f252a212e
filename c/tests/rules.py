"""House rules that no linter knows: length of files and functions, no calls that are easy to misuse."""

from __future__ import annotations

import re
import sys
from pathlib import Path

MOST_LINES = 500
MOST_FUNCTION_LINES = 70
FORBIDDEN = re.compile(r"\b(strcpy|strcat|sprintf|gets|alloca|system|popen|realpath|mktemp|tmpnam|rand|atoi|TODO|FIXME)\s*\(?")
WORDS = {"TODO", "FIXME"}


def function_lengths(lines: list[str]) -> list[tuple[int, int]]:
    """First line and length of each body that starts with { and ends with } in the first column."""
    found, start = [], 0
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start:
            found.append((start, number - start - 1))
            start = 0
    return found


def problems(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [f"{path}: {len(lines)} lines"] if len(lines) > MOST_LINES else []
    found += [f"{path}:{at}: function of {size} lines" for at, size in function_lengths(lines) if size > MOST_FUNCTION_LINES]
    for number, line in enumerate(lines, 1):
        match = FORBIDDEN.search(line)
        if match and (match.group(0).endswith("(") or match.group(1) in WORDS):
            found.append(f"{path}:{number}: {match.group(1)}")
    if not lines or not lines[0].startswith(("/*", "//")):
        found.append(f"{path}:1: the first line does not say what lives there")
    return found


def main() -> int:
    found = [problem for name in sys.argv[1:] for problem in problems(Path(name))]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
