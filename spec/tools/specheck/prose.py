"""Reads the Markdown of the specification: blocks, MUSTs and their ids, the tables of errors.md, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MUST = re.compile(r"\bMUST\b")
DEFINES_THE_WORDS = "RFC 2119"
ID = re.compile(r"\[(CL-[A-Z]{3}-\d{3})\](?!\()")
HEADING = re.compile(r"#+\s+(.*)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ERROR_ROW = re.compile(r"\| ([a-z ]+) \| `([a-z-]+)` \|")
STATUS_ROW = re.compile(r"\| (\d{3}) \| ((?:`[a-z-]+`(?:, )?)+) \|")


@dataclass(frozen=True)
class Block:
    """A table row, a list item, or a paragraph; `line` is where it starts."""

    line: int
    text: str

    def has_must(self) -> bool:
        return MUST.search(self.text) is not None and DEFINES_THE_WORDS not in self.text

    def ids(self) -> list[str]:
        return [] if DEFINES_THE_WORDS in self.text else ID.findall(self.text)


def blocks(path: Path) -> Iterator[Block]:
    """The blocks of a file, without what stands in code fences."""
    start, collected = 0, list[str]()
    for number, line in _unfenced(path):
        alone = line.startswith(("|", "#", "- ", "* "))
        if collected and (alone or not line.strip()):
            yield Block(start, "\n".join(collected))
            collected = []
        if line.strip():
            start = start if collected else number
            collected.append(line)
        if line.startswith(("|", "#")):
            yield Block(start, "\n".join(collected))
            collected = []
    if collected:
        yield Block(start, "\n".join(collected))


def _unfenced(path: Path) -> Iterator[tuple[int, str]]:
    fenced = False
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        fence = line.lstrip().startswith("```")
        yield number, "" if fenced or fence else line
        fenced ^= fence


def anchors(path: Path) -> set[str]:
    """The anchors of a file's headings, as GitHub makes them."""
    headings = (HEADING.fullmatch(line) for _, line in _unfenced(path))
    return {_anchor(heading[1]) for heading in headings if heading}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def links(path: Path) -> Iterator[tuple[int, str]]:
    """Line and target of each link."""
    for number, line in _unfenced(path):
        for target in LINK.findall(line):
            yield number, target


def layers(errors: Path) -> set[tuple[str, str]]:
    """Layer and code of each error; layers are written as in vectors (`key-id`, `key-service`)."""
    rows = ERROR_ROW.findall(errors.read_text("utf-8"))
    return {(layer.strip().replace(" ", "-"), code) for layer, code in rows}


def codes_by_status(errors: Path) -> dict[int, set[str]]:
    """The codes of each HTTP status."""
    rows = STATUS_ROW.findall(errors.read_text("utf-8"))
    return {int(status): set(re.findall(r"`([a-z-]+)`", codes)) for status, codes in rows}
